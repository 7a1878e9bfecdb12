/** A request and the same question to `explain` get the same status and the same Sluice fields. */
import t, { type Test } from 'tap'
import { faultProxy } from '../../helpers/faults.js'
import { type TestGateway, testGateway } from '../../helpers/gateway.js'
import { send, startApp } from '../../helpers/http.js'
import { redisUrl } from '../../helpers/redis.js'
import { waitUntil } from '../../helpers/wait.js'

const LIMITS = `version: 1
kind: project-limits
buckets: { all: ["*"], few: [/few] }
limits: [{ for: [{}], quotas: { all: { burst: 100, sustained: 1000 }, few: { burst: 1, sustained: 1 } } }]
`
const POLICIES = {
  'limits.yaml': LIMITS,
  'floods.yaml': `version: 1
kind: volumetric
rules:
  - { id: flood, match: [POST /flood], key: [project], quota: { requests: 1, per: 60s } }
  - { id: device, match: [POST /device], key: ["header:x-device"], missing: deny, quota: { requests: 1, per: 60s } }
`,
  'slots.yaml': `version: 1
kind: in-flight
rules:
  - { id: one-at-a-time, match: [POST /held], key: [project] }
`,
}
const OURS = /^(ratelimit|x-ratelimit-|retry-after|cache-control|allow|access-control-|vary|content-type)/

interface Question {
  readonly code: string
  readonly method: string
  readonly path: string
  readonly host?: string
}

/** Sends both. The effects of the first stay below a second, which is the resolution of all times in the fields. */
async function compare(t: Test, gateway: TestGateway, { code, method, path, host }: Question): Promise<void> {
  const headers = { host: host ?? 'acme.localhost', origin: 'https://page.test' }
  const explained = await fetch(`${gateway.adminUrl}/explain`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      method,
      target: path,
      host: headers.host,
      headers: [['origin', headers.origin]],
    }),
  })
  const { answer } = (await explained.json()) as {
    answer: { status: number; code: string; fields: [string, string][] }
  }
  const given = await send(gateway.url + path, { method, headers })
  t.equal(given.json<{ code: string }>().code, code)
  t.match(answer, { status: given.status, code })
  const fields = Object.entries(given.headers).filter(([name]) => OURS.test(name))
  t.same(
    Object.fromEntries(answer.fields.map(([name, value]) => [name.toLowerCase(), value])),
    Object.fromEntries(fields),
    `${code}: the fields are equal`,
  )
}

t.test('explain gives the gateway’s own response, for every refusal by policy', async t => {
  const upstream = await startApp(t, (req, res) => {
    if (req.url !== '/held') res.end()
  })
  const gateway = await testGateway(t, { upstream, policies: POLICIES })
  const spend = (method: string, path: string, signal?: AbortSignal) =>
    send(gateway.url + path, { method, headers: { host: 'acme.localhost' }, ...(signal && { signal }) })
  await spend('GET', '/few')
  await compare(t, gateway, { code: 'quota-exceeded', method: 'GET', path: '/few' })
  await spend('POST', '/flood')
  await compare(t, gateway, { code: 'abnormal-usage', method: 'POST', path: '/flood' })
  await compare(t, gateway, { code: 'quota-exceeded', method: 'POST', path: '/device' })
  await compare(t, gateway, { code: 'bad-target', method: 'GET', path: '/a%2Fb' })
  await compare(t, gateway, { code: 'method-not-allowed', method: 'TRACE', path: '/' })
  const leaving = new AbortController()
  const held = spend('POST', '/held', leaving.signal).catch(() => undefined)
  await waitUntil('the slot is held', async () => {
    const slots = await fetch(`${gateway.adminUrl}/slots`)
    return ((await slots.json()) as { total: number }).total === 1
  })
  await compare(t, gateway, { code: 'quota-exceeded', method: 'POST', path: '/held' })
  leaving.abort()
  await held
})

t.test(
  'explain gives the gateway’s own response to unknown projects, missing routes and a missing store',
  async t => {
    const upstream = await startApp(t, (_req, res) => res.end())
    const settings = 'unknownProject: reject'
    const gateway = await testGateway(t, { upstream, settings, route: '/api/**', policies: POLICIES })
    await compare(t, gateway, { code: 'unknown-project', method: 'GET', path: '/api/x', host: 'nobody.test' })
    await compare(t, gateway, { code: 'no-route', method: 'GET', path: '/elsewhere' })

    const alone = await testGateway(t, {
      upstream,
      settings: 'redis: redis://127.0.0.1:1\nstore: { onError: closed }',
      policies: { 'limits.yaml': LIMITS },
    })
    await compare(t, alone, { code: 'limiter-unavailable', method: 'GET', path: '/x' })
  },
)

t.test('explain gives the gateway’s own response when it refuses from its cache', async t => {
  const url = await redisUrl(t)
  if (url === undefined) return
  const proxy = await faultProxy(Number(new URL(url).port))
  t.teardown(() => proxy.stop())
  const upstream = await startApp(t, (_req, res) => res.end())
  const gateway = await testGateway(t, {
    upstream,
    settings: `redis: redis://127.0.0.1:${proxy.port}\nstore: { onError: closed, deadline: 200ms }`,
    policies: POLICIES,
  })
  const flood = { code: 'abnormal-usage', method: 'POST', path: '/flood' }
  const host = 'acme.localhost'
  for (let i = 0; i < 2; i += 1) await send(`${gateway.url}/flood`, { method: 'POST', headers: { host } })
  await compare(t, gateway, flood)
  await proxy.set({ kind: 'refuse' })
  await compare(t, gateway, flood)
  await compare(t, gateway, { code: 'limiter-unavailable', method: 'GET', path: '/x' })
})
