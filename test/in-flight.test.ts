/** Slots shared by two gateway processes on one Redis, of which one is killed, paused or slow. */
import { once } from 'node:events'
import { type ClientRequest, request, type ServerResponse } from 'node:http'
import { Redis } from 'ioredis'
import t from 'tap'
import {
  type GatewayProcess,
  gatewayProcess,
  strictGatewayYaml,
  writeConfig,
} from './helpers/gateway-process.js'
import { send, startApp } from './helpers/http.js'
import { redisUrl } from './helpers/redis.js'
import { sleep, waitUntil } from './helpers/wait.js'

const TTL_MS = 2000
/** Allowance for a machine that is busy with other tests. */
const SLACK_MS = 4000
const POLICY = `version: 1
kind: in-flight
rules:
  - { id: killed, match: [POST /killed], key: [project, full-path], max: 2, slotTtl: ${TTL_MS}ms }
  - { id: paused, match: [POST /paused], key: [project, full-path], max: 1, slotTtl: ${TTL_MS}ms }
  - { id: long, match: [POST /long], key: [project, full-path], max: 1, slotTtl: ${TTL_MS}ms }
`

t.test('two gateways that share slots in Redis', async t => {
  const redisAt = await redisUrl(t)
  if (redisAt === undefined) return
  /** Delayed responses, by path. */
  const waiting = new Map<string, ServerResponse[]>()
  const upstream = await startApp(t, (req, res) => {
    req.resume()
    if (req.headers['x-wait'] === undefined) res.end('done')
    else waiting.set(req.url as string, [...(waiting.get(req.url as string) ?? []), res])
  })
  const folder = writeConfig(t, strictGatewayYaml(redisAt, upstream), { 'in-flight.yaml': POLICY })
  const [first, second] = await Promise.all([gatewayProcess(t, folder), gatewayProcess(t, folder)])
  const redis = new Redis(redisAt)
  t.teardown(() => redis.disconnect())

  const headers = { host: 'acme.localhost', 'content-length': '0' }
  const knock = async (gateway: GatewayProcess, path: string) =>
    (await send(gateway.url + path, { method: 'POST', headers })).status
  /** A request that stays in flight until the test lets the upstream respond. */
  const hold = async (gateway: GatewayProcess, path: string): Promise<ClientRequest> => {
    const before = waiting.get(path)?.length ?? 0
    const sent = request(gateway.url + path, { method: 'POST', headers: { ...headers, 'x-wait': '1' } })
    sent.on('error', () => {})
    sent.end()
    await waitUntil(`${path} to be in flight`, () => waiting.get(path)?.[before])
    return sent
  }
  const held = async (gateway: GatewayProcess, rule: string) => {
    const { body } = await send(`${gateway.adminUrl}/metrics`)
    return Number(new RegExp(`^sluice_inflight\\{rule="${rule}"\\} (\\d+)$`, 'm').exec(body)?.[1])
  }
  /** The requests that currently hold slots of a rule, according to Redis. */
  const members = async (rule: string) => {
    const [key] = await redis.keys(`*${rule}*`)
    const [seconds] = await redis.time()
    return key === undefined ? [] : redis.zrangebyscore(key, `(${Number(seconds)}000000`, '+inf')
  }

  /** Milliseconds until a rule's first slot expires unless it is renewed. */
  const leftMs = async (rule: string) => {
    const [key] = await redis.keys(`*${rule}*`)
    const [, score] = await redis.zrange(key as string, '0', '0', 'WITHSCORES')
    const [seconds, us] = await redis.time()
    return Number(score) / 1000 - (Number(seconds) * 1000 + Number(us) / 1000)
  }

  // Held on one gateway during all following tests, for many TTLs.
  const long = await hold(second, '/long')
  const answered = once(long, 'response')

  await t.test('a paused gateway never regains a slot that the other has taken', async t => {
    const ofFirst = await hold(first, '/paused')
    const answerOfFirst = once(ofFirst, 'response')
    t.equal(await knock(second, '/paused'), 429)
    const [memberOfFirst] = await members('paused')

    first.signal('SIGSTOP')
    const left = await leftMs('paused')
    const pausedAt = performance.now()
    await waitUntil('the slot to run out', async () => (await knock(second, '/paused')) === 200)
    t.ok(left <= TTL_MS && performance.now() - pausedAt < left + SLACK_MS, 'the slot expires within its TTL')
    await hold(second, '/paused')
    const ofSecond = await members('paused')
    t.equal(ofSecond.length, 1)
    t.not(ofSecond[0], memberOfFirst)

    first.signal('SIGCONT')
    for (let i = 0; i < 12; i += 1) {
      t.same(await members('paused'), ofSecond, 'no renewal brings the lost slot back')
      await sleep(100)
    }
    t.equal(await knock(first, '/paused'), 429)
    t.equal(await knock(second, '/paused'), 429)
    await waitUntil('the paused gateway to notice', async () => (await held(first, 'paused')) === 0)
    await waitUntil('the warning about expired slots', () =>
      /"rule":"paused".*slots expired/.test(first.out()),
    )

    waiting.get('/paused')?.[0]?.end('late')
    const [answer] = await answerOfFirst
    t.equal(answer.statusCode, 200, 'the request that lost its slot still gets its response')
    answer.resume()
    await sleep(100)
    t.same(await members('paused'), ofSecond, 'the late release does not free the slot of the other gateway')
    waiting.get('/paused')?.[1]?.end()
    await waitUntil('the slot to be free', async () => (await knock(first, '/paused')) === 200)
  })

  t.equal(await knock(first, '/long'), 429, 'a slot is renewed as long as its request lasts')

  await t.test('the slots of a killed gateway become free when their TTL ends, and not before', async t => {
    await Promise.all([hold(first, '/killed'), hold(first, '/killed')])
    await sleep(TTL_MS)
    t.equal(await knock(second, '/killed'), 429)
    await first.kill()
    const killedAt = performance.now()
    const left = await leftMs('killed')
    t.ok(left <= TTL_MS, `${left} ms are left`)
    await waitUntil('a slot to be free', async () => (await knock(second, '/killed')) === 200)
    const waited = performance.now() - killedAt
    t.ok(waited > left - 50, `no slot is free before its TTL ends: ${waited} ms`)
    t.ok(waited < left + SLACK_MS, `a slot is free soon after its TTL ends: ${waited} ms`)
    await Promise.all([hold(second, '/killed'), hold(second, '/killed')])
    t.equal(await knock(second, '/killed'), 429, 'exactly the slots of the killed gateway have become free')
    for (const res of waiting.get('/killed') ?? []) res.end()
  })

  t.equal(await knock(second, '/long'), 429)
  waiting.get('/long')?.[0]?.end('done')
  const [answer] = await answered
  t.equal(answer.statusCode, 200)
  answer.resume()
  await waitUntil('the slot to be free', async () => (await knock(second, '/long')) === 200)
  for (const rule of ['killed', 'paused', 'long']) {
    await waitUntil(`no slot of ${rule}`, async () => (await held(second, rule)) === 0)
    t.same(await members(rule), [])
  }
  t.notMatch(second.out(), /Redis is away/)
})
