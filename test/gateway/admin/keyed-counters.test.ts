/** Counters are read and reset through the admin port by the part of a request that their rule counts by. */
import t, { type Test } from 'tap'
import { testGateway } from '../../helpers/gateway.js'
import { gatewayProcess, writeConfig } from '../../helpers/gateway-process.js'
import { type Sent, send, startApp } from '../../helpers/http.js'
import { matchList } from '../../helpers/lists.js'
import { redisUrl } from '../../helpers/redis.js'

const JA3 = 'e7d705a3286e19ea42f587b344ee6865'
const JA4 = 't13d1516h2_8daaf6152771_e5627efa2ab1'
const FORM = { 'content-type': 'application/x-www-form-urlencoded' }

/** Each part of a key: how the operator names it, a request that has it, and a request that has another value. */
const PARTS: Readonly<
  Record<string, readonly [string, Sent & { query?: string }, Sent & { query?: string }]>
> = {
  'header:x-device': [
    `header=${encodeURIComponent('x-device: canary')}`,
    { headers: { 'x-device': 'canary' } },
    { headers: { 'x-device': 'other' } },
  ],
  ja3: [
    `ja3=${JA3}`,
    { headers: { 'x-ja3-fingerprint': JA3 } },
    { headers: { 'x-ja3-fingerprint': 'f'.repeat(32) } },
  ],
  ja4: [
    `ja4=${JA4}`,
    { headers: { 'x-ja4-fingerprint': JA4 } },
    { headers: { 'x-ja4-fingerprint': JA4.replace('13', '12') } },
  ],
  auth: ['auth=authenticated', { headers: { authorization: 'Bearer canary' } }, {}],
  'email-or-flow': [
    'email=canary%40example.test',
    { headers: FORM, body: 'email=canary%40example.test' },
    { headers: FORM, body: 'email=other%40example.test' },
  ],
  // The same part of the key, by its other field.
  'email-or-flow ': ['flow=canary', { query: '?flow=canary' }, { query: '?flow=other' }],
}

const names = Object.keys(PARTS)
const policy = `version: 1
kind: volumetric
rules:
${names.map((part, i) => `  - { id: rule-${i}, match: [/rule-${i}], key: ["${part.trim()}"], missing: skip, quota: { requests: 1, per: 60s } }`).join('\n')}
`

async function readAndReset(t: Test, { url, adminUrl }: { url: string; adminUrl: string }): Promise<void> {
  for (const [i, part] of names.entries()) {
    const [named, sent, other] = PARTS[part] as (typeof PARTS)[string]
    const post = async ({ query = '', headers, ...more }: typeof sent) =>
      (
        await send(`${url}/rule-${i}${query}`, {
          ...more,
          method: 'POST',
          headers: { host: 'acme.localhost', ...headers },
        })
      ).status
    const counted = async () =>
      (await send(`${adminUrl}/projects/acme/counters?${named}`))
        .json<{
          counters: { rule: string; counters: { used: number; attempted: number }[] }[]
        }>()
        .counters.find(({ rule }) => rule === `rule-${i}`)?.counters
    t.same([await post(sent), await post(sent), await post(other)], [200, 429, 200], named)
    matchList(t, await counted(), [{ used: 1, attempted: 2 }], 'the other counter is not shown')
    const reset = () => send(`${adminUrl}/counters/rule-${i}?${named}`, { method: 'DELETE' })
    t.equal((await reset()).status, 200)
    matchList(t, await counted(), [{ used: 0, attempted: 0 }])
    // With two workers, both get requests.
    t.same(
      [await post(sent), await post(sent), await post(other)],
      [200, 429, 429],
      'only the named counter starts anew',
    )
  }
}

t.test('counters are read and reset by every part of a key, in one process', async t => {
  const upstream = await startApp(t, (_req, res) => res.end())
  const gateway = await testGateway(t, {
    upstream,
    settings: 'trustedProxies: [127.0.0.1]',
    policies: { 'keyed.yaml': policy },
  })
  await readAndReset(t, gateway)
})

t.test('counters are read and reset by every part of a key, with two workers on Redis', async t => {
  const redis = await redisUrl(t)
  if (redis === undefined) return
  const upstream = await startApp(t, (_req, res) => res.end())
  const folder = writeConfig(
    t,
    `version: 1
listen: { host: 127.0.0.1, port: 0, workers: 2 }
admin: { host: 127.0.0.1, port: 0 }
redis: ${redis}
store: { deadline: 5s, onError: closed }
trustedProxies: [127.0.0.1]
upstreams: { app: { url: "${upstream}" } }
routes: [{ path: /**, upstream: app }]
`,
    { 'keyed.yaml': policy },
  )
  await readAndReset(t, await gatewayProcess(t, folder))
})
