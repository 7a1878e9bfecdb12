/** `notify` of a quota, as its receiver and its clients see it. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { send } from '../../helpers/http.js'
import { startReceiver } from '../../helpers/receiver.js'
import { redisCommand, redisUrl, startRedis } from '../../helpers/redis.js'
import { twoWorkers } from '../../helpers/two-workers.js'
import { sleep, waitUntil } from '../../helpers/wait.js'
import { openSocket, webSocketUpstream } from '../../helpers/web-sockets.js'
import { ask, askTimes, isSigned, monthly, notify, SECRET, startNotifying, thresholds } from './scene.js'

/** Longer than a claim and a call take: what has not come by then does not come. */
const SETTLED_MS = 150

t.test('each threshold is reported once, in a signed message about the window', async t => {
  const receiver = await startReceiver(t)
  const gateway = await startNotifying(t, monthly(notify(receiver.url)))
  await askTimes(gateway, 7)
  await sleep(SETTLED_MS)
  t.same(receiver.calls, [], 'below the lowest threshold nothing is reported')
  const startedAt = Date.now()
  t.same(await askTimes(gateway, 6), [200, 200, 200, 429, 429, 429])
  await waitUntil('both thresholds', () => receiver.calls.length === 2)
  await sleep(SETTLED_MS)
  t.equal(receiver.calls.length, 2)
  t.same(thresholds(receiver.calls), [80, 100])
  const [first] = receiver.calls
  if (first === undefined) return
  t.ok(isSigned(first))
  const { id, at, resets, ...event } = first.event
  t.same(event, {
    type: 'quota.threshold',
    project: 'acme',
    plan: 'growth',
    environment: 'production',
    bucket: 'orders',
    mode: 'enforce',
    window: 'monthly',
    threshold: 80,
    quota: 10,
    used: 8,
    left: 2,
  })
  t.equal(first.headers['webhook-id'], id)
  t.ok(Date.parse(at) >= startedAt && Date.parse(at) <= Date.now())
  t.match(resets, /^\d{4}-\d\d-01T00:00:00\.000Z$/, 'the month ends with its last day')
  const series = (await send(`${gateway.adminUrl}/metrics`)).body
  t.match(series, 'sluice_notifications_total{result="sent"} 2')
})

t.test('a lifetime window is reported once, with no time at which it resets', async t => {
  const receiver = await startReceiver(t)
  const policies = monthly(notify(receiver.url))
  const lifetime = { 'limits.yaml': (policies['limits.yaml'] ?? '').replace('per: month', 'per: lifetime') }
  const gateway = await startNotifying(t, lifetime)
  await askTimes(gateway, 14)
  await waitUntil('both thresholds', () => receiver.calls.length === 2)
  await sleep(SETTLED_MS)
  t.same(thresholds(receiver.calls), [80, 100])
  t.match(receiver.calls[0]?.event, { quota: 10, resets: null })
})

t.test('two gateways on one Redis report each threshold once, under parallel requests', async t => {
  const redis = await redisUrl(t)
  if (redis === undefined) return
  const receiver = await startReceiver(t)
  const settings = `redis: ${redis}\nstore: { deadline: 5s }`
  const policies = monthly(notify(receiver.url, '[10%, 50%, 80%, 100%]'))
  const gateways = [
    await startNotifying(t, policies, { settings }),
    await startNotifying(t, policies, { settings }),
  ]
  const answers = await Promise.all(
    gateways.flatMap(gateway => Array.from({ length: 20 }, () => ask(gateway))),
  )
  t.equal(answers.filter(({ status }) => status === 200).length, 10)
  await waitUntil('all thresholds', () => receiver.calls.length >= 4)
  await Promise.all(gateways.map(gateway => ask(gateway)))
  await sleep(SETTLED_MS)
  t.same(thresholds(receiver.calls), [10, 50, 80, 100])
})

t.test('while Redis is away a gateway reports by what it counts itself', async t => {
  if (redisCommand(t) === undefined) return
  const redis = await startRedis()
  t.teardown(() => redis.stop())
  const receiver = await startReceiver(t)
  const settings = `redis: ${redis.url}\nstore: { deadline: 100ms }`
  const gateway = await startNotifying(t, monthly(notify(receiver.url, '[80%]')), { settings })
  await askTimes(gateway, 2)
  redis.pause()
  await askTimes(gateway, 6)
  await waitUntil('the report', () => receiver.calls.length > 0)
  await askTimes(gateway, 2)
  redis.resume()
  await askTimes(gateway, 2)
  await sleep(SETTLED_MS)
  t.same(thresholds(receiver.calls), [80])
})

t.test('the workers of a gateway report each threshold once', async t => {
  const receiver = await startReceiver(t)
  const gateway = await twoWorkers(
    t,
    monthly(notify(receiver.url)),
    {},
    { WEBHOOK_ALLOW_PRIVATE: 'true', WEBHOOK_ALLOW_HTTP: 'true' },
  )
  if (gateway === undefined) return
  const alone = () => ask(gateway, '/orders', { connection: 'close' })
  await Promise.all(Array.from({ length: 24 }, alone))
  await waitUntil('both thresholds', () => receiver.calls.length >= 2)
  await sleep(SETTLED_MS)
  t.same(thresholds(receiver.calls), [80, 100])
  t.match((await send(`${gateway.adminUrl}/metrics`)).body, 'sluice_notifications_total{result="sent"} 2')
})

t.test('each project is reported by itself', async t => {
  const receiver = await startReceiver(t)
  const projects = `version: 1
projects:
  - { id: acme, plan: growth, environment: production, hosts: [acme.localhost] }
  - { id: other, plan: growth, environment: production, hosts: [other.localhost] }
`
  const gateway = await startNotifying(t, monthly(notify(receiver.url, '[100%]')), { projects })
  for (let i = 0; i < 11; i += 1)
    for (const host of ['acme.localhost', 'other.localhost']) await ask(gateway, '/orders', { host })
  await waitUntil('both projects', () => receiver.calls.length >= 2)
  t.same(receiver.calls.map(({ event }) => event.project).sort(), ['acme', 'other'])
})

t.test('report-only quotas are reported with their mode', async t => {
  const receiver = await startReceiver(t)
  const gateway = await startNotifying(t, monthly(notify(receiver.url, '[100%]'), 'mode: report-only'))
  t.ok((await askTimes(gateway, 12)).every(status => status === 200))
  await waitUntil('the report', () => receiver.calls.length > 0)
  t.match(receiver.calls[0]?.event, { mode: 'report-only', threshold: 100, used: 10 })
})

t.test('a rule with another key names the hash of its key, never an address', async t => {
  const receiver = await startReceiver(t)
  const policies = {
    ...monthly(notify(receiver.url, '[50%]'), '', '[project, client-ip]'),
    'flood.yaml': `version: 1
kind: volumetric
rules:
  - id: by-address
    match: ["/**"]
    reads: true
    key: [client-ip]
    mode: enforce
    quota: { requests: 8, per: 1h, notify: ${notify(receiver.url, '[50%]')} }
`,
  }
  const gateway = await startNotifying(t, policies)
  await askTimes(gateway, 6)
  await waitUntil('both rules', () => receiver.calls.length >= 2)
  const events = receiver.calls.map(({ event }) => event)
  const rule = events.find(event => event.rule === 'by-address')
  const bucket = events.find(event => event.bucket === 'orders')
  t.match(rule, { project: null, plan: null, window: null, threshold: 50, quota: 8, used: 4 })
  t.match(bucket, { project: 'acme', window: 'monthly' })
  for (const { key } of [rule, bucket]) t.match(key, /^[\w-]{16}$/)
  t.notMatch(receiver.calls.map(({ text }) => text).join(), '127.0.0.1')
})

t.test('after a reload calls go to the new address, signed with the new secret', async t => {
  const [old, next] = [await startReceiver(t), await startReceiver(t)]
  const gateway = await startNotifying(t, monthly(notify(old.url)))
  await askTimes(gateway, 8)
  await waitUntil('the first threshold', () => old.calls.length === 1)
  const secret = 'another-secret-0123456789'
  const file = join(gateway.folder, 'policies', 'limits.yaml')
  writeFileSync(file, monthly(notify(next.url, undefined, secret))['limits.yaml'] as string)
  t.match(await gateway.reloader.reload('admin'), { result: 'loaded' })
  await askTimes(gateway, 2)
  await waitUntil('the second threshold', () => next.calls.length === 1)
  await sleep(SETTLED_MS)
  t.same([thresholds(old.calls), thresholds(next.calls)], [[80], [100]], 'what was reported stays reported')
  t.ok(next.calls[0] && isSigned(next.calls[0], secret))
})

t.test('secrets and paths of addresses appear nowhere', async t => {
  const receiver = await startReceiver(t)
  const address = `${new URL(receiver.url).origin}/token-in-path`
  const projects = `version: 1
projects:
  - id: acme
    plan: growth
    environment: production
    hosts: [acme.localhost]
    overrides: { orders: { burst: 100, notify: ${notify(address)} } }
`
  const policies = {
    ...monthly(notify(address)),
    'flood.yaml': `version: 1
kind: volumetric
rules:
  - id: flood
    match: ["/**"]
    key: [client-ip]
    mode: enforce
    quota: { requests: 8, per: 1h, notify: ${notify(address)} }
`,
  }
  const gateway = await startNotifying(t, policies, { projects })
  await askTimes(gateway, 10)
  await waitUntil('both thresholds', () => receiver.calls.length >= 2)
  const get = async (path: string) => (await send(gateway.adminUrl + path)).body
  const explained = await send(`${gateway.adminUrl}/explain`, {
    method: 'POST',
    body: JSON.stringify({ url: 'http://acme.localhost/orders' }),
    headers: { 'content-type': 'application/json' },
  })
  const policy = await get('/policy?project=acme')
  t.match(policy, '(hidden)', 'that there is one may be seen')
  const all = [
    policy,
    explained.body,
    await get('/state'),
    await get('/live'),
    await get('/metrics'),
    await get('/projects/acme/overrides'),
    JSON.stringify(gateway.lines),
  ].join('\n')
  t.notMatch(all, SECRET)
  t.notMatch(all, 'token-in-path')
})

t.test('the admin port takes no notify, because it shows what it has stored', async t => {
  const address = 'https://hooks.example.com/'
  const gateway = await startNotifying(t, monthly(notify(address)))
  const answer = await send(`${gateway.adminUrl}/projects/acme/overrides/orders`, {
    method: 'PUT',
    body: JSON.stringify({ burst: 5, why: 'x', notify: { at: ['80%'], url: address, secret: SECRET } }),
    headers: { 'content-type': 'application/json' },
  })
  t.equal(answer.status, 422)
  t.match(answer.body, 'Unknown key \\"notify\\"')
})

t.test('a quota of messages is reported once, too', async t => {
  const receiver = await startReceiver(t)
  const upstream = await webSocketUpstream(t)
  const quota = `{ requests: 10, per: 1h, notify: ${notify(receiver.url)} }`
  const policies = {
    'messages.yaml': `version: 1\nkind: volumetric\nrules: [{ id: chat, match: [GET /chat], key: [project], count: message, quota: ${quota} }]\n`,
  }
  const { url } = await startNotifying(t, policies, { upstream: upstream.url })
  const socket = await openSocket(t, url)
  for (let i = 0; i < 10; i += 1) socket.send('hello')
  await waitUntil('both thresholds', () => receiver.calls.length === 2)
  t.same(thresholds(receiver.calls), [80, 100])
})
