/** The gateway in the pictures: a small shop's, with a configuration that is edited while it runs. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { serve } from '../lib/serve.mjs'

const projects = ['acme-production', 'globex-production', 'initech-staging']
const PROJECTS = `version: 1
projects:
${projects.map(id => `  - { id: ${id}, plan: growth, environment: ${id.split('-')[1]}, hosts: [${id}.localhost] }`).join('\n')}
`
const limits = imports => `version: 1
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

/** Starts two upstreams and the gateway in front of them; `folder` is for its configuration. */
export async function startShop(folder) {
  const apps = [await startApp(), await startApp()]
  const write = (name, text) => writeFileSync(join(folder, 'config', name), text)
  mkdirSync(join(folder, 'config', 'policies'), { recursive: true })
  write(
    'gateway.yaml',
    `version: 1
listen: { host: 127.0.0.1, port: 0 }
admin: { host: 127.0.0.1, port: 0 }
upstreams: { shop: { urls: ${JSON.stringify(apps.map(({ url }) => url))} } }
routes: [{ path: /**, upstream: shop }]
`,
  )
  write('projects.yaml', PROJECTS)
  write('policies/limits.yaml', limits(50))
  write('policies/in-flight.yaml', IN_FLIGHT)
  write('policies/volumetric.yaml', VOLUMETRIC)

  const { child, url, adminUrl } = await serve(join(folder, 'config'), { env: { DATA_DIR: folder } })
  const reload = () => fetch(`${adminUrl}/reload`, { method: 'POST' })
  return {
    url,
    adminUrl,
    /** Lowers the limit of imports a second. */
    async tighten() {
      write('policies/limits.yaml', limits(5))
      await reload()
    },
    /** Makes an edit that the gateway rejects. */
    async mistype() {
      write('policies/volumetric.yaml', BROKEN)
      await reload()
    },
    /** Stops one of the two upstreams. */
    loseUpstream: () => apps[1].stop(),
    stop() {
      child.kill('SIGKILL')
      for (const app of apps) app.stop()
    },
  }
}

/** Responds at once, and to reports after 20 s. */
async function startApp() {
  const server = createServer((request, response) => {
    request.resume()
    setTimeout(() => response.end('done'), request.url.startsWith('/reports') ? 20_000 : 1)
  })
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    stop() {
      server.close()
      server.closeAllConnections()
    },
  }
}
