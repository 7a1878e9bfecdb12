/** A gateway with one rule of each kind, and helpers that call its admin port. */
import type { Test } from 'tap'
import { type TestGateway, testGateway } from '../../helpers/gateway.js'
import { type Received, send, startApp } from '../../helpers/http.js'

export const POLICIES = {
  'limits.yaml': `version: 1
kind: project-limits
buckets: { all: ["*"], reads: [GET /reads] }
limits: [{ for: [{}], quotas: { all: { burst: 100, sustained: 3 }, reads: { burst: 9, sustained: 90 } } }]
`,
  'in-flight.yaml': `version: 1
kind: in-flight
rules: [{ id: slow, match: [/slow/**], key: [project, full-path] }]
`,
  'flood.yaml': `version: 1
kind: volumetric
rules:
  - { id: flood, match: [/flood], key: [project], quota: { requests: 1, per: 60s } }
  - { id: by-ip, match: [/ip], key: [client-ip], quota: { requests: 1, per: 60s } }
  - { id: by-header, match: [/header], key: [header:x-device], missing: skip, quota: { requests: 1, per: 60s } }
`,
}
export const KEY = 'canary-0123456789abcdef'

export interface Asked extends TestGateway {
  post(path: string): Promise<number>
  ask(path: string, method?: string, headers?: Record<string, string>): Promise<Received>
  /** Lets the waiting requests under `/slow` finish. */
  finish(): void
}

export async function start(t: Test, settings = '', adminKey = ''): Promise<Asked> {
  const waiting: (() => void)[] = []
  let isFinished = false
  const upstream = await startApp(t, (req, res) => {
    if (!isFinished && req.url?.startsWith('/slow')) waiting.push(() => res.end('done'))
    else res.end('done')
  })
  const gateway = await testGateway(t, { upstream, settings, adminKey, policies: POLICIES })
  return {
    ...gateway,
    post: async path =>
      (await send(gateway.url + path, { method: 'POST', headers: { host: 'acme.localhost' } })).status,
    ask: (path, method = 'GET', headers = {}) => send(gateway.adminUrl + path, { method, headers }),
    finish() {
      isFinished = true
      for (const end of waiting) end()
    },
  }
}
