/** Gateways with volumetric rules, and clients that send POST requests to them. */
import type { Test } from 'tap'
import { type TestGateway, testGateway } from '../../helpers/gateway.js'
import { type Received, type Sent, send, startApp } from '../../helpers/http.js'

/** Only sustained quotas matter: within a test nothing is refilled. */
export const LIMITS = `version: 1
kind: project-limits
buckets: { scarce: [/scarce], catch-all: ["*"] }
limits:
  - for: [{ environments: [development, staging, production] }]
    quotas: { scarce: { burst: 1000, sustained: 2 }, catch-all: { burst: 1000, sustained: 20 } }
`

/** A volumetric policy with these rules. */
export const rulesOf = (...rules: string[]) =>
  ['version: 1', 'kind: volumetric', 'rules:', ...rules.map(rule => `  - { ${rule} }`)].join('\n')

export interface Started extends TestGateway {
  post(path: string, headers?: Record<string, string>, sent?: Sent): Promise<Received>
  /** Statuses of requests sent one after the other. */
  statuses(times: number, path: string, headers?: Record<string, string>): Promise<number[]>
  passed(): number
}

/** Starts a gateway in front of an upstream that responds with `done`. */
export async function start(t: Test, settings: string, policies: Record<string, string>): Promise<Started> {
  let passed = 0
  const upstream = await startApp(t, (req, res) => {
    passed += 1
    req.resume()
    res.end('done')
  })
  const gateway = await testGateway(t, { upstream, settings, policies })
  const post = (path: string, headers: Record<string, string> = {}, sent: Sent = {}) =>
    send(gateway.url + path, { method: 'POST', ...sent, headers: { host: 'acme.localhost', ...headers } })
  const statuses = async (times: number, path: string, headers?: Record<string, string>) => {
    const seen: number[] = []
    for (let i = 0; i < times; i++) seen.push((await post(path, headers)).status)
    return seen
  }
  return { ...gateway, post, statuses, passed: () => passed }
}
