/**
 * Logs of days of traffic: a gateway with the given policies decides generated requests, on a clock that runs ahead.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { Agent } from 'node:http'
import { join } from 'node:path'
import type { Test } from 'tap'
import { holdClocks } from '../helpers/clocks.js'
import { type TestGateway, testGateway } from '../helpers/gateway.js'
import { send, startApp } from '../helpers/http.js'
import { sleep } from '../helpers/wait.js'

export const MINUTE = 60_000
export const HOUR = 60 * MINUTE
export const DAY = 24 * HOUR

export interface AskedRequest {
  /** Milliseconds since 1970, in ascending order. */
  readonly at: number
  readonly method: string
  readonly path: string
  readonly host: string
  /** The client's address. */
  readonly from: string
}

/** The log, with all decisions, of a gateway with the projects and policies of `config` that got these requests. */
export async function logOf(t: Test, config: string, asked: readonly AskedRequest[]): Promise<string> {
  const lines: Record<string, unknown>[] = []
  let folder = ''
  await t.test(
    `a gateway decides ${asked.length} requests, the first at ${new Date(asked[0]?.at ?? 0).toISOString()}`,
    async t => {
      const gateway = await gatewayOf(t, config)
      folder = gateway.folder
      const clock = holdClocks(t, asked[0]?.at ?? 0)
      let checked = clock.ms
      const agent = new Agent({ keepAlive: true })
      t.teardown(() => agent.destroy())
      const decided = () =>
        gateway.lines.filter(({ msg, beside }) => msg === 'decision' && beside !== undefined).length
      for (const [i, { at, method, path, host, from }] of asked.entries()) {
        // Both sides would close a connection idle for this long, at the same moment.
        if (at > clock.ms + MINUTE) agent.destroy()
        // The gateway checks its clock ten times a second: a jump of over 24 hours between two checks would count as
        // overload.
        while (at > checked + 20 * HOUR) {
          clock.ms = Math.min(at, checked + 20 * HOUR)
          checked = clock.ms
          await sleep(150)
        }
        clock.ms = at
        const headers = { host, 'x-forwarded-for': from, 'content-length': '0' }
        const { status } = await send(`${gateway.url}${path}`, { method, agent, headers })
        if (status >= 500) throw new Error(`${method} ${path} was answered ${status}`)
        // The clock stands still until the decision is in the log.
        while (decided() <= i) await new Promise(setImmediate)
      }
      lines.push(...gateway.lines.filter(({ msg }) => msg === 'decision'))
    },
  )
  return lines
    .map(({ msg, ...line }) => `${JSON.stringify({ ...line, msg })}\n`.replaceAll(folder, 'config'))
    .join('')
}

async function gatewayOf(t: Test, config: string): Promise<TestGateway> {
  const policies = join(config, 'policies')
  return testGateway(t, {
    // A clock that jumps looks like a stalled event loop.
    maxEventLoopDelay: '24h',
    upstream: await startApp(t, (req, res) => res.writeHead(req.method === 'POST' ? 201 : 200).end()),
    settings: 'trustedProxies: [127.0.0.1]\nlog: { decisions: all }',
    timeouts: '{ connect: 100s, head: 100s, idle: 100s }',
    projects: readFileSync(join(config, 'projects.yaml'), 'utf8'),
    policies: Object.fromEntries(
      readdirSync(policies).map(name => [name, readFileSync(join(policies, name), 'utf8')]),
    ),
  })
}
