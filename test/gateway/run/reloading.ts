/** Gateways whose configuration is edited while they run. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { type TestGateway, type TestGatewayOptions, testGateway } from '../../helpers/gateway.js'
import { type Sent, send, startApp } from '../../helpers/http.js'

/** Only sustained quotas matter: within a test nothing is refilled. */
export const limits = ({ scim = 5, others = 10_000 } = {}) => `version: 1
kind: project-limits
buckets: { scim: [/scim/**], catch-all: ["*"] }
limits:
  - for: [{ environments: [development, staging, production] }]
    quotas:
      scim: { burst: 1000, sustained: ${scim} }
      catch-all: { burst: 10000, sustained: ${others} }
`

/** Allows `max` concurrent writes to /jobs. */
export const inFlight = (max: number) => `version: 1
kind: in-flight
rules: [{ id: writes, match: [POST /jobs], key: [project], max: ${max}, mode: enforce }]
`

export interface Edited extends TestGateway {
  /** Writes one file of the configuration, in place. */
  write(name: string, text: string): void
  /** Writes it and asks for a reload; returns the response of the admin port. */
  edit(name: string, text: string): Promise<{ status: number; json<T>(): T }>
  ask(path: string, sent?: Sent): ReturnType<typeof send>
  state(): Promise<State>
}

interface State {
  readonly revision: string
  readonly loadedAt: string
  readonly needsRestart: string[]
  readonly lastReload: { readonly result: string; readonly problems: object[] } | null
}

/** Starts a gateway with a few sustained quotas in front of an upstream that responds with `done`. */
export async function start(t: Test, options: Partial<TestGatewayOptions> = {}): Promise<Edited> {
  const upstream = options.upstream ?? (await startApp(t, (req, res) => req.resume() && res.end('done')))
  const policies = { 'limits.yaml': limits() }
  const gateway = await testGateway(t, { policies, ...options, upstream })
  const write = (name: string, text: string) => writeFileSync(join(gateway.folder, name), text)
  return {
    ...gateway,
    write,
    edit(name, text) {
      write(name, text)
      return send(`${gateway.adminUrl}/reload`, { method: 'POST' })
    },
    ask: (path, sent) =>
      send(gateway.url + path, { ...sent, headers: { host: 'acme.localhost', ...sent?.headers } }),
    state: async () => (await send(`${gateway.adminUrl}/state`)).json<State>(),
  }
}
