/** A gateway whose quotas notify a receiver. */
import { createHmac } from 'node:crypto'
import type { Test } from 'tap'
import type { RunningGateway } from '../../../gateway/run/gateway.js'
import { type TestGatewayOptions, testGateway } from '../../helpers/gateway.js'
import { send, startApp } from '../../helpers/http.js'
import type { Received } from '../../helpers/receiver.js'

export const SECRET = 'canary-secret-0123456789'
const ALLOWED = { allowPrivate: true, allowHttp: true }

/** The text of `notify` in YAML. */
export const notify = (url: string, at = '[80%, 100%]', secret = SECRET): string =>
  `{ at: ${at}, url: "${url}", secret: ${secret} }`

/** Ten requests a month for each project, with these further keys of the quota, or of the file. */
export const monthly = (more: string, ofFile = '', key = ''): Readonly<Record<string, string>> => ({
  'limits.yaml': `version: 1
kind: project-limits
${ofFile}
buckets: { orders: ${key ? `{ match: ["/**"], key: ${key} }` : '["/**"]'} }
limits:
  - for: [{}]
    quotas: { orders: { windows: [{ name: monthly, requests: 10, per: month }], notify: ${more} } }
`,
})

export async function startNotifying(
  t: Test,
  policies: Readonly<Record<string, string>>,
  options: Partial<TestGatewayOptions> = {},
) {
  const upstream = await startApp(t, (_req, res) => res.end('here'))
  return testGateway(t, { upstream, policies, webhookTargets: ALLOWED, ...options })
}

export const ask = ({ url }: Pick<RunningGateway, 'url'>, path = '/orders', headers = {}) =>
  send(url + path, { headers: { host: 'acme.localhost', ...headers } })

/** Sends so many requests one after the other; their statuses. */
export async function askTimes(gateway: Pick<RunningGateway, 'url'>, times: number): Promise<number[]> {
  const statuses: number[] = []
  for (let i = 0; i < times; i += 1) statuses.push((await ask(gateway)).status)
  return statuses
}

/** Whether the call is signed as Standard Webhooks demand. */
export function isSigned({ headers, text }: Received, secret = SECRET): boolean {
  const content = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${text}`
  const signature = createHmac('sha256', secret).update(content).digest('base64')
  return headers['webhook-signature'] === `v1,${signature}`
}

export const thresholds = (calls: readonly Received[]): number[] =>
  calls.map(({ event }) => event.threshold).sort((a, b) => a - b)
