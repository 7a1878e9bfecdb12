/** The gateway in the pictures: a small shop's, with a configuration that is edited while it runs. */
import { writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { gatewayProcess, writeConfig } from '../../test/helpers/gateway-process.js'
import type { Scope } from '../../test/helpers/scope.js'

const PROJECTS = ['acme-production', 'globex-production', 'initech-staging'].map(id => ({
  ...{ id, plan: 'growth', environment: id.split('-')[1], hosts: [`${id}.localhost`] },
}))
const limits = (imports: number) => `version: 1
kind: project-limits
buckets:
  imports: [POST /imports]
  search: [GET /search]
  catch-all: ["*"]
limits:
  - for: [{}]
    quotas:
      imports: { burst: ${imports}, sustained: 600 }
      search: { burst: 30, sustained: 1800, trial: { burst: 10, sustained: 900 } }
      catch-all: { burst: 200, sustained: 6000 }
`
const IN_FLIGHT = `version: 1
kind: in-flight
rules: [{ id: reports, match: [POST /reports], key: [project], max: 3 }]
`
const VOLUMETRIC = `version: 1
kind: volumetric
rules:
  - { id: signup-rush, match: [POST /signup], key: [client-ip], quota: { requests: 20, per: 60s }, mode: report-only, since: 2026-11-01 }
`
const BROKEN = VOLUMETRIC.replace('20, per: 60s', '20, per: sixty')

/** Starts two upstreams and the gateway in front of them. */
export async function startShop(t: Scope) {
  const [app, lost] = [await startApp(t), await startApp(t)]
  const folder = writeConfig(
    t,
    {
      upstreams: { shop: { urls: [urlOf(app), urlOf(lost)] } },
      routes: [{ path: '/**', upstream: 'shop' }],
    },
    { 'limits.yaml': limits(50), 'in-flight.yaml': IN_FLIGHT, 'volumetric.yaml': VOLUMETRIC },
    { projects: PROJECTS },
  )
  const { url, adminUrl } = await gatewayProcess(t, folder)
  const edit = async (name: string, text: string) => {
    writeFileSync(join(folder, 'policies', name), text)
    await fetch(`${adminUrl}/reload`, { method: 'POST' })
  }
  return {
    url,
    adminUrl,
    /** Lowers the limit of imports a second. */
    tighten: () => edit('limits.yaml', limits(5)),
    /** Makes an edit that the gateway rejects. */
    mistype: () => edit('volumetric.yaml', BROKEN),
    /** Stops one of the two upstreams. */
    loseUpstream: () => stop(lost),
  }
}

/** Responds at once, and to reports after 20 s. */
async function startApp(t: Scope): Promise<Server> {
  const server = createServer((request, response) => {
    request.resume()
    setTimeout(() => response.end('done'), request.url?.startsWith('/reports') ? 20_000 : 1)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => stop(server))
  return server
}

const urlOf = (server: Server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`

function stop(server: Server): void {
  server.close()
  server.closeAllConnections()
}
