/** A gateway whose projects get limits of their own on its admin port, and the calls for it. */
import type { Test } from 'tap'
import { type TestGatewayOptions, testGateway } from '../../helpers/gateway.js'
import { send, startApp } from '../../helpers/http.js'

export const POLICIES = {
  'limits.yaml': `version: 1
kind: project-limits
buckets:
  all: ["*"]
  search: [/search/**]
  export: { match: [/export], cost: 5 }
limits:
  - for: [{ plans: [developer, production, essential, growth, scale] }]
    quotas: { all: { sustained: 3 }, export: { sustained: 10 } }
  - for: [{ plans: [enterprise] }]
    quotas: { all: { sustained: 3 }, export: { sustained: 10 }, search: { sustained: 1 } }
`,
}

export const PROJECTS = `version: 1
projects:
  - { id: dev, plan: developer, environment: development, hosts: [dev.localhost] }
  - { id: acme, plan: growth, environment: production, hosts: [acme.localhost] }
  - { id: "big:corp", plan: enterprise, environment: production, hosts: [big.localhost], overrides: { all: { burst: 40 } } }
`

export const WHY = { why: 'Contract of 1 May', by: 'anna' }

export type Reported = Readonly<Record<string, unknown>>

export async function start(t: Test, settings = '', more: Partial<TestGatewayOptions> = {}) {
  const upstream = await startApp(t, (_req, res) => res.end('here'))
  const options = { upstream, policies: POLICIES, projects: PROJECTS, settings }
  const gateway = await testGateway(t, { ...options, ...more })
  return { ...gateway, ...callsOf(gateway) }
}

export function callsOf({ url, adminUrl }: { readonly url: string; readonly adminUrl: string }) {
  const headers = { 'content-type': 'application/json' }
  const json = async <T = Reported>(path: string) => (await send(adminUrl + path)).json<T>()
  const path = (project: string, bucket: string) =>
    `${adminUrl}/projects/${encodeURIComponent(project)}/overrides/${encodeURIComponent(bucket)}`
  return {
    get: (path: string, project = 'acme') => send(url + path, { headers: { host: `${project}.localhost` } }),
    /** How many of 60 requests are admitted. */
    async admitted(path: string, project = 'acme') {
      for (let i = 0; i < 60; i += 1) {
        const { status } = await send(url + path, { headers: { host: `${project}.localhost` } })
        if (status !== 200) return i
      }
      return 60
    },
    put: (project: string, bucket: string, body: object) =>
      send(path(project, bucket), { method: 'PUT', headers, body: JSON.stringify({ ...WHY, ...body }) }),
    undo: (project: string, bucket: string) =>
      send(`${path(project, bucket)}?why=over&by=bob`, { method: 'DELETE' }),
    json,
    /** All that are set. */
    set: async () => (await json<{ overrides: Reported[] }>('/projects/overrides')).overrides,
    overrides: async () => (await json<{ overrides: Reported[] }>('/overrides')).overrides,
    explain: async (target: string, more: object) =>
      (
        await send(`${adminUrl}/explain`, {
          method: 'POST',
          headers,
          body: JSON.stringify({ method: 'GET', target, ...more }),
        })
      ).json(),
  }
}
