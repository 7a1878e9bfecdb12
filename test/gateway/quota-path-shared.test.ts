/** `quotaPath` where several processes count on one Redis, where Redis is away, and over HTTP/2. */
import t, { type Test } from 'tap'
import { testGateway } from '../helpers/gateway.js'
import { send, startApp } from '../helpers/http.js'
import { redisCommand, startRedis } from '../helpers/redis.js'
import { twoWorkers } from '../helpers/two-workers.js'
import { waitUntil } from '../helpers/wait.js'
import { ask, onBothWires } from './listen/http2-scene.js'

const PATH = '/.well-known/quota'
const policies = {
  'limits.yaml': `version: 1
kind: project-limits
buckets: { counted: ["/counted"], all: ["*"] }
limits: [{ for: [{}], quotas: { counted: { sustained: 10 }, all: { sustained: 1000 } } }]
`,
}
const HEADERS = { host: 'acme.localhost' }

interface Answer {
  readonly buckets: readonly { windows: readonly Record<string, unknown>[] }[]
}

t.test('two workers tell the same windows, and share the one call a second', async t => {
  const gateway = await twoWorkers(t, policies, { quotaPath: PATH })
  if (gateway === undefined) return
  // Each on a connection of its own, so that both workers take part.
  const ask = (path: string) => send(gateway.url + path, { headers: { ...HEADERS, connection: 'close' } })
  for (let i = 0; i < 6; i += 1) await ask('/counted')
  const answers = await Promise.all(Array.from({ length: 8 }, () => ask(PATH)))
  const statuses = answers.map(({ status }) => status)
  t.ok(statuses.filter(status => status === 200).length <= 2, String(statuses))
  t.ok(statuses.filter(status => status === 429).length >= 6)
  const told = answers.find(({ status }) => status === 200)?.json<Answer>()
  t.match(told?.buckets[0]?.windows, [{ window: 'sustained', quota: 10, used: 6, left: 4 }])
})

async function away(t: Test, onError: string) {
  const redis = await startRedis()
  t.teardown(() => redis.stop())
  const upstream = await startApp(t, (_req, res) => res.end('here'))
  const settings = `quotaPath: ${PATH}\nredis: ${redis.url}\nstore: { deadline: 250ms, onError: ${onError} }`
  const { url } = await testGateway(t, { upstream, policies, settings })
  const ask = (path: string) => send(url + path, { headers: HEADERS })
  await waitUntil('Redis to count', async () => (await ask(PATH)).status === 200)
  return { redis, ask }
}

t.test('while Redis does not answer, it says in time what can be known', async t => {
  if (redisCommand(t) === undefined) return
  for (const [onError, window] of [
    ['local', { used: 1, left: 9 }],
    ['closed', { quota: 10, used: null, left: null, resets: null }],
  ] as const) {
    const { redis, ask } = await away(t, onError)
    redis.pause()
    await ask('/counted')
    let told: Answer | undefined
    await waitUntil(`${onError}: a call`, async () => {
      const startedAt = performance.now()
      const answer = await ask(PATH)
      t.ok(performance.now() - startedAt < 3000, 'bounded in time')
      if (answer.status === 200) told = answer.json<Answer>()
      return told !== undefined
    })
    t.match(told?.buckets[0]?.windows[0], window, onError)
    redis.resume()
  }
})

onBothWires(t, (t, { scene }) => {
  t.test('it is answered on a stream, and a second call is told when to come back', async t => {
    const { session, upstream } = await scene(t, undefined, { policies, settings: `quotaPath: ${PATH}` })
    const first = await ask(session, { ':path': PATH })
    t.match(first, { status: 200, headers: { 'content-type': 'application/json' } })
    t.match(JSON.parse(first.body), { project: 'acme', buckets: [{ bucket: 'counted' }, { bucket: 'all' }] })
    t.match(await ask(session, { ':path': PATH }), { status: 429, headers: { 'retry-after': '1' } })
    t.match(await ask(session, { ':path': PATH, ':method': 'HEAD', ':authority': 'dev.localhost' }), {
      status: 200,
      body: '',
    })
    t.same(upstream.connections, [])
  })
})
