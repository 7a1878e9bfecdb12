/** Slots in Redis while Redis restarts or is silent, or when the rule has been edited. */
import type { ServerResponse } from 'node:http'
import { Redis } from 'ioredis'
import t from 'tap'
import { RedisStore } from '../../../gateway/decide/redis/redis-store.js'
import { RedisSlots } from '../../../gateway/decide/redis/slots.js'
import type { Ask } from '../../../gateway/decide/store/store.js'
import { testGateway } from '../../helpers/gateway.js'
import { send, startApp } from '../../helpers/http.js'
import { redisCommand, redisUrl, startRedis } from '../../helpers/redis.js'
import { redisSettings } from '../../helpers/stores.js'
import { sleep, waitUntil } from '../../helpers/wait.js'
import { WaitingApp } from '../../helpers/waiting-app.js'

const quiet = { debug() {}, info() {}, warn() {}, error() {} }
// Each test has its own options object: tap buffers output in it and would mix the results of several tests.
t.jobs = 4

function slot(key: string, max: number, ttlMs: number): Ask {
  return { key, demand: { kind: 'slots', max, ttlMs }, group: 0, onStoreError: 'closed' }
}

t.test(
  'slots held when Redis restarts empty are not recreated, and the log stays short',
  { buffered: true },
  async t => {
    if (redisCommand(t) === undefined) return
    const redis = await startRedis()
    t.teardown(() => redis.stop())
    const app = new WaitingApp()
    const upstream = await startApp(t, app.handler)
    const policy = `version: 1
kind: in-flight
rules: [{ id: work, match: [POST /**], key: [project, full-path], slotTtl: 2s }]
`
    const { url, adminUrl, lines } = await testGateway(t, {
      upstream,
      settings: redisSettings(redis.url),
      timeouts: '{ head: 20s }',
      policies: { 'in-flight.yaml': policy },
    })
    const post = (number: number, wait: boolean) =>
      send(`${url}/${number}`, {
        method: 'POST',
        headers: { host: 'acme.localhost', ...(wait && { 'x-wait': '1' }) },
      })
    const held = async () => {
      const { body } = await send(`${adminUrl}/metrics`)
      return Number(/^sluice_inflight\{rule="work"\} (\d+)$/m.exec(body)?.[1])
    }
    const SLOTS = 20
    const answers = Array.from({ length: SLOTS }, (_, i) => post(i, true))
    await waitUntil('all in flight', () => app.waiting.length === SLOTS)
    t.equal((await post(0, false)).status, 429)
    t.equal(await held(), SLOTS)

    await redis.restart()
    await waitUntil('the losses to be known', async () => (await held()) === 0)
    const client = new Redis(redis.url)
    t.teardown(() => client.disconnect())
    await sleep(1200)
    t.same(await client.keys('*work*'), [], 'no renewal recreates a slot')
    const again = post(0, true)
    await waitUntil('a second one in flight', () => app.waiting.length === SLOTS + 1)
    t.equal((await post(0, false)).status, 429, 'the next request is refused as before')
    t.equal(await held(), 1)

    app.finish()
    for (const answer of [...answers, again]) t.equal((await answer).status, 200)
    await waitUntil('no slot to be held', async () => (await held()) === 0)
    t.ok(lines.filter(({ level }) => level !== 'info').length <= 4, JSON.stringify(lines))
    t.equal(lines.filter(({ rule, level }) => rule === 'work' && level === 'warn').length, 1)
  },
)

t.test('a gateway that drains frees its slots at once', { buffered: true }, async t => {
  const url = await redisUrl(t)
  if (url === undefined) return
  const client = new Redis(url)
  t.teardown(() => client.disconnect())
  const waiting: ServerResponse[] = []
  const upstream = await startApp(t, (req, res) => {
    req.resume()
    waiting.push(res)
  })
  const policy = `version: 1
kind: in-flight
rules: [{ id: work, match: [POST /**], key: [project, full-path] }]
`
  const gateway = await testGateway(t, {
    upstream,
    settings: redisSettings(url),
    policies: { 'in-flight.yaml': policy },
  })
  const cut = send(`${gateway.url}/a`, { method: 'POST', headers: { host: 'acme.localhost' } }).catch(
    () => 'cut',
  )
  await waitUntil('the request to be in flight', () => waiting.length === 1)
  t.equal((await client.keys('*work*')).length, 1)
  await gateway.drain()
  t.equal(await cut, 'cut')
  await waitUntil('the slot to be free', async () => (await client.keys('*work*')).length === 0, 10_000)
})

t.test(
  'a renewal without an answer gives the connection up, and is tried again',
  { buffered: true },
  async t => {
    /** How many renewals had been sent when the connection was given up for the first time. */
    let sentAtSilence: number | undefined
    let renewals = 0
    let answer: ((error?: Error) => void) | undefined
    const commands = {
      renew: () => {
        renewals += 1
        return new Promise<number>((resolve, reject) => {
          answer = error => (error ? reject(error) : resolve(1))
        })
      },
      zrem: async () => 1,
    }
    const slots = new RedisSlots(commands, quiet, () => {
      sentAtSilence ??= renewals
      answer?.(new Error('connection given up'))
    })
    t.teardown(() => slots.close())
    const one = slots.hold({ key: '{k}', holder: 'holder', ttlMs: 3000 })
    let lost = 0
    one.onLost(() => {
      lost += 1
    })
    await waitUntil('the connection to be given up', () => sentAtSilence)
    t.equal(sentAtSilence, 1, 'only one renewal is sent at a time')
    await waitUntil('the next', () => renewals >= 2)
    answer?.()
    t.equal(lost, 0)
    one.release()
    one.release()
    const sent = renewals
    await sleep(1500)
    t.equal(renewals, sent, 'a released slot is not renewed')
  },
)

t.test('a shorter slotTtl does not shorten slots taken under the longer one', { buffered: true }, async t => {
  const url = await redisUrl(t)
  if (url === undefined) return
  const client = new Redis(url)
  const store = new RedisStore({ url, log: quiet })
  t.teardown(() => {
    client.disconnect()
    return store.close()
  })
  await store.answers(5000)
  await store.take([slot('{s}', 2, 60_000)], 'before')
  const [short] = await store.take([slot('{s}', 2, 3000)], 'after')
  t.ok((await client.pttl('{s}')) > 50_000)
  await sleep(2000)
  t.ok((await client.pttl('{s}')) > 50_000, 'a renewal does not shorten them either')
  t.match(await store.take([slot('{s}', 2, 3000)], 'third'), [{ granted: false }])
  short?.release?.()
  t.match(await store.take([slot('{s}', 2, 3000)], 'third'), [{ granted: true }])
  t.same(await client.zrange('{s}', '0', '-1'), ['third@3000000', 'before@60000000'])
})

t.test(
  'the slot of a dead holder expires within its TTL even when the clock was set back',
  { buffered: true },
  async t => {
    const url = await redisUrl(t)
    if (url === undefined) return
    const clock = { at: 1_700_000_000_000 }
    const store = new RedisStore({ url, log: quiet, clock: () => clock.at * 1000 })
    t.teardown(() => store.close())
    await store.answers(5000)
    const granted = async (ask: Ask, holder: string) => (await store.take([ask], holder))[0]?.granted
    t.equal(await granted(slot('{back}', 2, 60_000), 'long'), true)
    t.equal(await granted(slot('{back}', 2, 1000), 'short'), true)
    clock.at -= 3_600_000
    t.equal(await granted(slot('{back}', 2, 1000), 'next'), false)
    clock.at += 1001
    t.equal(await granted(slot('{back}', 2, 1000), 'next'), true, 'the slot with the short TTL has expired')
    clock.at += 500
    t.equal(await granted(slot('{back}', 2, 1000), 'third'), false, 'the slot with the long TTL has not')
    clock.at += 58_500
    t.equal(await granted(slot('{back}', 1, 1000), 'third'), true)
  },
)
