/** A gateway whose Redis is silent, gone, slow or cuts its responses, as its clients and operators see it. */
import { Agent, request } from 'node:http'
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { type Fault, faultProxy } from '../../helpers/faults.js'
import { testGateway } from '../../helpers/gateway.js'
import { type Received, send, startApp } from '../../helpers/http.js'
import { matchList } from '../../helpers/lists.js'
import { oneBucket } from '../../helpers/policies.js'
import { redisCommand, startRedis } from '../../helpers/redis.js'
import { sleep, waitUntil } from '../../helpers/wait.js'

const DEADLINE_MS = 250
/** Allowance for a machine that is busy with other tests. */
const SLACK_MS = 2000
const REQUESTS = 50
/** Calls of one gateway that may be pending when Redis goes away: its requests come one after the other. */
const UNDER_WAY = 3
const QUOTA = 1000

const MODES = ['local', 'open', 'closed'] as const
type Mode = (typeof MODES)[number]

const PROJECTS = `version: 1
projects: [${MODES.map(id => `{ id: ${id}, plan: growth, environment: production, hosts: [${id}.localhost] }`)}]
`
const POLICY = `version: 1
kind: project-limits
buckets: { all: ["*"] }
limits:
  - for: [{ environments: [development, staging, production] }]
    quotas: { all: { burst: ${QUOTA}, sustained: ${QUOTA} } }
`

/** How many requests of a project's minute Redis has counted. */
const COUNT = `local key = redis.call('KEYS', '*{' .. ARGV[1] .. '}:e:*')[1]
local stored = cmsgpack.unpack(redis.call('GET', key))
for i = 3, #stored, 3 do
  if stored[i] == 'sustained' then
    local sum = 0
    for j = 2, #stored[i + 2], 2 do sum = sum + stored[i + 2][j] end
    return sum
  end
end`

async function startAll(t: Test) {
  const redis = await startRedis()
  const proxy = await faultProxy(redis.port)
  const direct = new Redis(redis.url)
  const upstream = await startApp(t, (_, res) => res.end('done'))
  const agent = new Agent({ keepAlive: true })
  t.teardown(async () => {
    agent.destroy()
    direct.disconnect()
    await proxy.stop()
    await redis.stop()
  })
  const start = async (mode: Mode) => {
    const gateway = await testGateway(t, {
      upstream,
      projects: PROJECTS,
      policies: { 'project-limits.yaml': POLICY },
      settings: `redis: redis://127.0.0.1:${proxy.port}
store: { deadline: ${DEADLINE_MS}ms, onError: ${mode} }`,
    })
    const metric = async (name: string) => {
      const { body } = await send(`${gateway.adminUrl}/metrics`)
      return Number(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\d+)$`, 'm').exec(body)?.[1] ?? 0)
    }
    return {
      mode,
      lines: gateway.lines,
      metric,
      ask: () => send(gateway.url, { agent, headers: { host: `${mode}.localhost` } }),
      held: async () => Number(await direct.eval(COUNT, 0, mode)),
      isBack: async () => (await metric('sluice_store_fallback_active')) === 0,
    }
  }
  return { proxy, gateways: await Promise.all(MODES.map(start)) }
}

type TestedGateway = Awaited<ReturnType<typeof startAll>>['gateways'][number]

/** Waits until Redis counts, even on a machine that is busy with other tests. */
async function untilCounting({ mode, ask, held, metric, lines }: TestedGateway): Promise<void> {
  await waitUntil(`${mode}: Redis to count`, async () => {
    const errors = await metric('sluice_store_errors_total')
    for (let i = 0; i < 5; i += 1) await ask()
    return (await metric('sluice_store_errors_total')) === errors
  })
  // What was admitted locally in the meantime is charged to Redis soon.
  await waitUntil(`${mode}: all to be charged`, async () => {
    const before = await held()
    await sleep(200)
    return (await held()) === before
  })
  lines.length = 0
}

/** Checks that responses are truthful while the gateways do not count together. */
function expectTruthful(t: Test, mode: Mode, answers: readonly Received[]): void {
  const policy = `"all.burst";q=${QUOTA};w=1, "all.sustained";q=${QUOTA};w=60`
  for (const { status, headers, json } of answers) {
    const seen = { status, policy: headers['ratelimit-policy'], left: headers['x-ratelimit-remaining'] }
    if (mode === 'local') {
      t.match(seen, { status: 200, policy, left: /^\d+$/ })
    } else if (mode === 'open') {
      t.match(seen, { status: 200, policy, left: undefined })
      t.notOk(headers.ratelimit, 'no remaining quota is shown')
    } else {
      t.match(seen, { status: 503, left: undefined })
      t.match(headers['content-type'], /^application\/problem\+json/)
      t.match(headers['retry-after'], /^[1-9]/)
      t.equal(json().status, 503)
    }
  }
}

/** Sends requests while Redis is away; returns the check of the counters once it is back. */
async function askWhileAway(t: Test, gateway: TestedGateway): Promise<() => Promise<void>> {
  const { mode, ask, held, metric, lines, isBack } = gateway
  const before = await held()
  const errorsBefore = await metric('sluice_store_errors_total')

  const waits: number[] = []
  const answers: Received[] = []
  for (let i = 0; i < REQUESTS; i += 1) {
    const startedAt = performance.now()
    answers.push(await ask())
    waits.push(performance.now() - startedAt)
  }
  expectTruthful(t, mode, answers)
  const sorted = waits.toSorted((a, b) => a - b)
  t.ok(
    (sorted.at(-1) as number) <= DEADLINE_MS + SLACK_MS,
    `${mode}: longest ${sorted.at(-1)?.toFixed(1)} ms`,
  )
  t.ok((sorted[REQUESTS / 2] as number) < DEADLINE_MS, `${mode}: most requests do not wait`)
  t.equal(await metric('sluice_store_fallback_active'), 1)
  const errors = (await metric('sluice_store_errors_total')) - errorsBefore
  t.equal(errors, UNDER_WAY, `${mode}: the breaker opens after ${UNDER_WAY} failures`)

  return async () => {
    await waitUntil(`${mode}: Redis to be back`, isBack)
    await sleep(200)
    const late = (await held()) - before
    // What was admitted locally is charged to Redis, at the latest with the next request.
    const admitted = mode === 'local' ? REQUESTS : 0
    t.ok(late >= 0 && late <= admitted + UNDER_WAY, `${mode}: ${late} counted late, of ${REQUESTS}`)
    const left = Number((await ask()).headers['x-ratelimit-remaining'])
    const most = QUOTA - before - Math.max(late, admitted) - 1
    // The gateway cannot know that Redis charged a call whose response was cut off or, on a busy machine, came late.
    const wasSlow = (await metric('sluice_store_errors_total')) - errorsBefore > UNDER_WAY
    const unknown = UNDER_WAY + (wasSlow ? admitted : 0)
    t.ok(left <= most && left >= most - unknown, `counting continues from there: ${left} of ${most}`)
    matchList(
      t,
      lines.filter(({ msg }) => String(msg).startsWith('Redis is')),
      [
        { level: 'warn', msg: /^Redis is away/, onStoreError: mode },
        { level: 'info', msg: /^Redis is back/ },
      ],
      'each change of state is logged once',
    )
    t.equal(lines.filter(({ level }) => level === 'error').length, 0)
  }
}

t.test('while Redis is away each store.onError mode responds truthfully, and counting recovers', async t => {
  if (redisCommand(t) === undefined) return
  const { proxy, gateways } = await startAll(t)
  const faults: [name: string, fault: Fault][] = [
    ['black hole', { kind: 'blackhole' }],
    ['refused', { kind: 'refuse' }],
    ['5 s slow', { kind: 'latency', ms: 5000 }],
    ['reset', { kind: 'reset' }],
    ['cut in mid-reply', { kind: 'cut', after: 5 }],
  ]
  for (const [name, fault] of faults) {
    t.test(name, async t => {
      await Promise.all(gateways.map(untilCounting))
      await proxy.set(fault)
      const checks = await Promise.all(gateways.map(gateway => askWhileAway(t, gateway)))
      await proxy.set({ kind: 'pass' })
      await Promise.all(checks.map(check => check()))
    })
  }
})

t.test('one of four gateways without Redis shows a quarter of the quota as its limit', async t => {
  const upstream = await startApp(t, (_, res) => res.end('done'))
  const gateway = await testGateway(t, {
    upstream,
    policies: { 'project-limits.yaml': oneBucket(12) },
    settings: 'redis: redis://127.0.0.1:1\nstore: { deadline: 25ms, instances: 4 }',
  })
  const ask = () => send(`${gateway.url}/x`, { headers: { host: 'acme.localhost' } })
  t.match((await ask()).headers, {
    'ratelimit-policy': '"all.burst";q=3;w=1, "all.sustained";q=3;w=60',
    'x-ratelimit-limit': '3, 3;w=1, 3;w=60',
    'x-ratelimit-remaining': '2',
  })
  await ask()
  await ask()
  const refused = await ask()
  t.equal(refused.status, 429)
  t.match(refused.json().detail, /all admits 3 requests per minute/)
  await waitUntil('the record is written', () => gateway.lines.some(line => line.decision === 'deny'))
  const record = gateway.lines.find(line => line.decision === 'deny')
  t.match(record, { store: 'local', counters: [{ q: 3 }, { policy: 'all.sustained', q: 3, used: 3 }] })
})

t.test('a request whose client leaves before the verdict is charged and recorded', async t => {
  if (redisCommand(t) === undefined) return
  const redis = await startRedis()
  const proxy = await faultProxy(redis.port)
  t.teardown(async () => {
    await proxy.stop()
    await redis.stop()
  })
  let reached = 0
  const upstream = await startApp(t, (_, res) => {
    reached += 1
    res.end('done')
  })
  const gateway = await testGateway(t, {
    upstream,
    policies: { 'project-limits.yaml': oneBucket(5) },
    settings: `redis: redis://127.0.0.1:${proxy.port}
store: { deadline: 10s }
log: { decisions: all }`,
  })
  await proxy.set({ kind: 'latency', ms: 600 })
  const leave = () =>
    new Promise<void>(resolve => {
      const client = request(`${gateway.url}/x`, { headers: { host: 'acme.localhost' } })
      client.on('error', () => resolve()).end()
      setTimeout(() => client.destroy(), 300)
    })
  await Promise.all(Array.from({ length: 7 }, leave))
  const decisions = (decision: string) => gateway.lines.filter(line => line.decision === decision).length
  await waitUntil('all are recorded', () => decisions('allow') === 5 && decisions('deny') === 2)
  t.equal(reached, 0)
  const metrics = (await send(`${gateway.adminUrl}/metrics`)).body
  const admitted = [...metrics.matchAll(/sluice_decisions_total\{[^\n]*outcome="(?:allowed|near)"\} (\d+)/g)]
  t.equal(
    admitted.reduce((sum, [, count]) => sum + Number(count), 0),
    5,
  )
})
