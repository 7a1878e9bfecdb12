/** A gateway whose rules let requests wait, and what it says of them. */
import type { Test } from 'tap'
import { type TestGateway, type TestGatewayOptions, testGateway } from '../helpers/gateway.js'
import { type Sent, send, startApp } from '../helpers/http.js'
import { WaitingApp } from '../helpers/waiting-app.js'

/** The bucket `paced` with these settings, and further rules. */
export const buckets = (settings: string, quota = 'burst: 1', more = '') => ({
  'limits.yaml': `version: 1
kind: project-limits
buckets:
  paced: { match: ["/paced/**", "POST /login"], ${settings} }
  rest: ["*"]
limits:
  - for: [{}]
    quotas: { paced: { ${quota} }, rest: unlimited }
`,
  ...(more !== '' && { 'slots.yaml': more }),
})

/** An in-flight rule with one slot for each project, and these settings. */
export const exportSlots = (settings: string) => `version: 1
kind: in-flight
rules:
  - { id: exports, match: [POST /exports], key: [project], max: 1, ${settings} }
`

/** A gateway whose upstream delays its responses to requests with `x-wait`. */
export async function scene(t: Test, options: Partial<TestGatewayOptions>) {
  const app = new WaitingApp()
  const upstream = await startApp(t, app.handler)
  const settings = `log: { decisions: all, access: all }\n${options.settings ?? ''}`
  const gateway = await testGateway(t, { upstream, ...options, settings })
  return { app, gateway, ask: asking(gateway) }
}

const asking =
  ({ url }: TestGateway) =>
  (path: string, sent: Sent = {}) =>
    send(url + path, { ...sent, headers: { host: 'acme.localhost', ...sent.headers } })

/** A request that holds a slot until the upstream responds. */
export const holding = { method: 'POST', headers: { 'x-wait': '1' } }

/** The value of the first line of the metrics that matches. */
export async function metric(gateway: TestGateway, line: RegExp): Promise<number | undefined> {
  const { body } = await send(`${gateway.adminUrl}/metrics`)
  const value = line.exec(body)?.[1]
  return value === undefined ? undefined : Number(value)
}

/** How many requests wait for a rule. */
export const waitingNow = (gateway: TestGateway, rule: string) =>
  metric(gateway, new RegExp(`^sluice_waiting\\{rule="${rule}"\\} (\\d+)$`, 'm'))
