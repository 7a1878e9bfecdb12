/** `/usage` of whole gateways. */
import t, { type Test } from 'tap'
import type { UsageRow } from '../../../gateway/usage/row.js'
import { type TestGatewayOptions, testGateway } from '../../helpers/gateway.js'
import { gatewayProcess, oneUpstream, writeConfig } from '../../helpers/gateway-process.js'
import { send, startApp } from '../../helpers/http.js'
import { redisCommand, redisUrl, startRedis } from '../../helpers/redis.js'
import { twoWorkers } from '../../helpers/two-workers.js'
import { waitUntil } from '../../helpers/wait.js'

const POLICIES = {
  'limits.yaml': `version: 1
kind: project-limits
buckets:
  orders: { match: [/orders], cost: 3 }
  tokens:
    match: [POST /chat]
    cost: { reserve: { default: 100 }, settle: { answerHeader: x-tokens } }
  free: [/free]
limits: [{ for: [{}], quotas: { orders: { sustained: 15 }, tokens: { sustained: 1000 }, free: unlimited } }]
`,
}
const ACME = { host: 'acme.localhost' }

async function start(t: Test, settings = 'usage: {}', options: Partial<TestGatewayOptions> = {}) {
  const upstream = await startApp(t, (_req, res) => {
    res.setHeader('x-tokens', '42')
    res.end('here')
  })
  const gateway = await testGateway(t, { upstream, policies: POLICIES, settings, ...options })
  return {
    ...gateway,
    ask: (path: string, method = 'GET') => send(gateway.url + path, { method, headers: ACME }),
  }
}

async function usageOf({ adminUrl }: { adminUrl: string }, query = ''): Promise<UsageRow[]> {
  const { status, body, headers } = await send(`${adminUrl}/usage${query}`)
  if (status !== 200) throw new Error(body)
  t.equal(headers['content-type'], 'application/x-ndjson')
  return body
    .split('\n')
    .filter(line => line !== '')
    .map(line => JSON.parse(line))
}

/** The sum over hours, in case one ends during the test. */
const sum = (rows: readonly UsageRow[], what: 'requests' | 'admitted' | 'refused' | 'cost'): number =>
  rows.reduce((total, row) => total + row[what], 0)

t.test('requests are counted by project and bucket, with what was admitted, refused and spent', async t => {
  const gateway = await start(t)
  for (let i = 0; i < 7; i += 1) await gateway.ask('/orders')
  for (let i = 0; i < 2; i += 1) await gateway.ask('/chat', 'POST')
  await gateway.ask('/free')
  await gateway.ask('/elsewhere')
  const rows = await usageOf(gateway)
  const of = (bucket: string | null) => rows.filter(row => row.bucket === bucket)
  t.match(of('orders')[0], { project: 'acme', plan: 'growth', environment: 'production' })
  t.match(of('orders')[0]?.hour, /^\d{4}-\d\d-\d\dT\d\d:00:00Z$/)
  const numbers = (bucket: string | null) =>
    (['requests', 'admitted', 'refused', 'cost'] as const).map(what => sum(of(bucket), what))
  t.same(numbers('orders'), [7, 5, 2, 15])
  t.same(numbers('tokens'), [2, 2, 0, 84], 'what the responses told, not what was reserved')
  t.same(numbers('free'), [1, 1, 0, 1], 'without a limit, too')
  t.same(numbers(null), [1, 1, 0, 1])
  t.same(numbers('orders'), [7, 5, 2, 15], 'a second answer says the same')
})

t.test('a project and a time can be asked for; wrong ones are refused in a sentence', async t => {
  const gateway = await start(t)
  await gateway.ask('/orders')
  await send(`${gateway.url}/orders`, { headers: { host: 'stranger.example' } })
  const all = await usageOf(gateway)
  t.same([...new Set(all.map(({ project }) => project))], ['acme', 'client:*'])
  t.notMatch(JSON.stringify(all), '127.0.0.1', 'addresses of unknown callers are not kept')
  t.equal(sum(await usageOf(gateway, '?project=acme'), 'requests'), 1)
  const hour = 3_600_000
  const at = (ms: number) => new Date(Date.now() + ms).toISOString()
  t.same(await usageOf(gateway, `?from=${at(-5 * hour)}&to=${at(-2 * hour)}`), [])
  t.equal(sum(await usageOf(gateway, `?from=${at(-2 * hour)}`), 'requests'), 2)
  for (const [query, says] of [
    ['?from=yesterday', /"from" must be a day/],
    ['?from=2026-01-02&to=2026-01-01', /"from" must be before "to"/],
    ['?form=2026-01-01', /form/],
  ] as const) {
    const { status, body } = await send(`${gateway.adminUrl}/usage${query}`)
    t.ok(status === 422 || status === 400, `${query}: ${status}`)
    t.match(JSON.parse(body).detail, says)
  }
})

t.test('without the setting nothing is counted, and the answer says what to do', async t => {
  const gateway = await start(t, '')
  await gateway.ask('/orders')
  const { status, body } = await send(`${gateway.adminUrl}/usage`)
  t.equal(status, 404)
  t.match(body, /write \\"usage: {}\\" in gateway.yaml/)
})

t.test('gateways on one Redis have one usage, which outlives them', async t => {
  const redis = await redisUrl(t)
  if (redis === undefined) return
  const settings = `usage: {}\nredis: ${redis}\nstore: { deadline: 5s }`
  const [one, other] = [await start(t, settings), await start(t, settings)]
  await Promise.all(Array.from({ length: 20 }, (_, i) => (i % 2 ? one : other).ask('/free')))
  await one.drain()
  await usageOf(other)
  const third = await start(t, settings)
  t.equal(sum(await usageOf(third), 'requests'), 20)
})

t.test('a gateway that is killed loses only what it had not passed on', async t => {
  const redis = await redisUrl(t)
  if (redis === undefined) return
  const upstream = await startApp(t, (_req, res) => res.end('here'))
  const folder = writeConfig(t, { redis, usage: {}, ...oneUpstream(upstream) }, POLICIES)
  const gateway = await gatewayProcess(t, folder)
  const ask = () => send(`${gateway.url}/free`, { headers: ACME })
  for (let i = 0; i < 5; i += 1) await ask()
  t.equal(sum(await usageOf(gateway), 'requests'), 5)
  for (let i = 0; i < 3; i += 1) await ask()
  await gateway.signal('SIGKILL')
  const left = sum(await usageOf(await gatewayProcess(t, folder)), 'requests')
  t.ok(left >= 5 && left <= 8, String(left))
})

t.test('the workers of a gateway are counted together', async t => {
  const gateway = await twoWorkers(t, POLICIES, { usage: {} })
  if (gateway === undefined) return
  const ask = () => send(`${gateway.url}/free`, { headers: { ...ACME, connection: 'close' } })
  await Promise.all(Array.from({ length: 20 }, ask))
  await waitUntil('all of them', async () => sum(await usageOf(gateway), 'requests') === 20)
})

t.test('while Redis is away requests are counted, and the numbers are told once it is back', async t => {
  if (redisCommand(t) === undefined) return
  const redis = await startRedis()
  t.teardown(() => redis.stop())
  const gateway = await start(t, `usage: {}\nredis: ${redis.url}\nstore: { deadline: 100ms }`)
  await gateway.ask('/free')
  t.equal(sum(await usageOf(gateway), 'requests'), 1)
  redis.pause()
  await gateway.ask('/free')
  const { status, body } = await send(`${gateway.adminUrl}/usage`)
  t.equal(status, 503)
  t.match(body, 'Redis does not answer')
  await gateway.ask('/free')
  redis.resume()
  await waitUntil('both', async () => sum(await usageOf(gateway), 'requests') === 3)
  t.equal(sum(await usageOf(gateway), 'requests'), 3, 'nothing is counted twice')
})
