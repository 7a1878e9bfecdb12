/** Two gateways on one Redis, as clients and operators see them, and the upstream behind them. */
import { Agent } from 'node:http'
import {
  type GatewayProcess,
  gatewayProcess,
  oneUpstream,
  projectsYaml,
  writeConfig,
} from '../../test/helpers/gateway-process.js'
import { send, startApp } from '../../test/helpers/http.js'
import type { Scope } from '../../test/helpers/scope.js'
import type { RedisForm } from './redis-forms.js'
import { complaintsOf, waitedMs } from './row.js'

export const DEADLINE_MS = 250
/** Requests a minute, and requests a second. */
export const QUOTA = 400
export const BURST = 150
/** Requests in flight at a time. */
export const SLOTS = 4
const WORK_MS = 100
/** One for each cell, and one for each check whether the gateways count together. */
export const PROJECTS = Array.from({ length: 3000 }, (_, i) => `p${i}`)

export const hostOf = (project: string): string => `${project}.localhost`

/** The setup, as the page describes it. */
export const SETTINGS = `a deadline of ${DEADLINE_MS} ms, \`onError: local\`, \`instances: 2\`; ${QUOTA} requests a minute with a burst of ${BURST} a second`

export const POLICIES = {
  'project-limits.yaml': `version: 1
kind: project-limits
buckets: { pages: [GET /] }
limits: [{ for: [{}], quotas: { pages: { burst: ${BURST}, sustained: ${QUOTA} } } }]
`,
  'in-flight.yaml': `version: 1
kind: in-flight
rules: [{ id: work, match: [POST /work], key: [project], max: ${SLOTS}, mode: enforce, slotTtl: 5s }]
`,
  'volumetric.yaml': `version: 1
kind: volumetric
rules: [{ id: watch, match: [GET /], reads: true, key: [project], quota: { requests: 5, per: 1m }, mode: report-only }]
`,
}

/** A rule whose counters lie in another slot than the project's. */
export const BY_CLIENT = {
  'clients.yaml': `version: 1
kind: volumetric
rules: [{ id: clients, match: [GET /], reads: true, key: [client-ip], quota: { requests: 1000000, per: 1m }, mode: enforce }]
`,
}

export interface WorkingApp {
  readonly url: string
  /** The most requests it worked on at once, by host. */
  readonly most: ReadonlyMap<string, number>
}

/** The upstream: answers GET at once; other requests take WORK_MS and are counted per project. */
export async function startWorkingApp(t: Scope): Promise<WorkingApp> {
  const now = new Map<string, number>()
  const most = new Map<string, number>()
  const add = (host: string, one: number) => {
    const count = (now.get(host) ?? 0) + one
    now.set(host, count)
    most.set(host, Math.max(most.get(host) ?? 0, count))
  }
  const url = await startApp(t, (req, res) => {
    if (req.method === 'GET') return void res.end('done')
    const { host = '' } = req.headers
    add(host, 1)
    res.on('close', () => add(host, -1))
    req.resume()
    setTimeout(() => res.end('done'), WORK_MS)
  })
  return { url, most }
}

export interface Gateways {
  readonly each: readonly GatewayProcess[]
  /** Whether any of them now counts locally (`isAway`), and how many store calls have failed. */
  state(): Promise<{ isAway: boolean; failed: number }>
  /** How long they and this process have waited for a core so far, in milliseconds. */
  waitedMs(): number
  /** Whether each sees what the other one counts, tried with a project that has had no requests yet. */
  countTogether(project: string): Promise<boolean>
  /** What must never be logged: warnings from Node, and errors. */
  complaints(): string[]
}

export async function startGateways(
  t: Scope,
  { url: redis, env, policies = POLICIES }: RedisForm,
  upstream: string,
): Promise<Gateways> {
  const store = { deadline: `${DEADLINE_MS}ms`, instances: 2, onError: 'local' }
  const settings = { redis, store, ...oneUpstream(upstream) }
  const folder = writeConfig(t, settings, policies, projectsYaml(PROJECTS))
  const each = await Promise.all([gatewayProcess(t, folder, env), gatewayProcess(t, folder, env)])
  const agent = new Agent({ keepAlive: true })
  t.teardown(() => agent.destroy())
  return {
    each,
    async state() {
      const pages = await Promise.all(each.map(({ adminUrl }) => send(`${adminUrl}/metrics`)))
      const failed = pages.map(({ body }) =>
        Number(/^sluice_store_errors_total\S* (\d+)/m.exec(body)?.[1] ?? 0),
      )
      return {
        isAway: pages.some(({ body }) => /^sluice_store_fallback_active 1/m.test(body)),
        failed: failed.reduce((sum, count) => sum + count, 0),
      }
    },
    waitedMs: () => waitedMs(each),
    async countTogether(project) {
      const left: number[] = []
      for (const { url } of each) {
        const { headers } = await send(url, { agent, headers: { host: hostOf(project) } })
        left.push(Number(String(headers['x-ratelimit-remaining']).split(',')[0]))
      }
      return left[0] === BURST - 1 && left[1] === BURST - 2
    },
    complaints: () => each.flatMap(complaintsOf),
  }
}
