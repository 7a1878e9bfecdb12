/** What is given back while Redis cannot be reached. */
import t, { type Test } from 'tap'
import { openStore } from '../../../gateway/decide/store/open.js'
import type { Answer, Ask } from '../../../gateway/decide/store/store.js'
import { faultProxy } from '../../helpers/faults.js'
import { redisCommand, startRedis } from '../../helpers/redis.js'
import { sleep, waitUntil } from '../../helpers/wait.js'

const quiet = { debug() {}, info() {}, warn() {}, error() {} }
const hooks = { failed() {}, late() {}, awayChanged() {} }
const MANY = 150

const askOf = (key: string): Ask => {
  const windows = [{ name: 'hour', quota: 1000, ms: 3_600_000, algorithm: 'sliding-window' }] as const
  return { key, demand: { kind: 'windows', windows, lease: false }, group: 0, onStoreError: 'local' }
}

/** Two gateways on one Redis; the first reaches it through a proxy. */
async function scene(t: Test, deadline = 5000) {
  const redis = await startRedis()
  const proxy = await faultProxy(redis.port)
  t.teardown(async () => {
    await proxy.stop()
    await redis.stop()
  })
  const open = async (url: string) => {
    const settings = { redis: url, deadline, instances: 1, onError: 'local' } as const
    return (await openStore(settings, quiet, hooks)).store
  }
  const [store, other] = [await open(`redis://127.0.0.1:${proxy.port}`), await open(redis.url)]
  t.teardown(() => other.close())
  return {
    store,
    proxy,
    async takeMany(ask: Ask): Promise<Answer[]> {
      const answers: Answer[] = []
      for (let i = 0; i < MANY; i += 1) answers.push(...(await store.take([ask], 'holder')))
      return answers
    },
    /** What the other gateway would find used if it asked. */
    async used(ask: Ask): Promise<number | undefined> {
      return ((await other.peek([ask])) as [Answer])[0].counts[0]?.used
    },
  }
}

t.test('it reaches Redis once that is back, whatever else is asked, and even if nobody noticed', async t => {
  if (redisCommand(t) === undefined) return
  const { store, proxy, takeMany, used } = await scene(t)
  t.teardown(() => store.close())
  const ask = askOf('{away}')
  const answers = await takeMany(ask)
  t.equal(await used(ask), MANY + 1)
  await proxy.set({ kind: 'refuse' })
  // The connection has ended, and no request has found out.
  await sleep(50)
  for (const answer of answers) store.giveBack([ask], [answer])
  await sleep(50)
  t.equal(await used(ask), MANY + 1)
  await proxy.set({ kind: 'pass' })
  await waitUntil('all to be back', async () => (await used(ask)) === 1)
})

t.test('it reaches a Redis that is back before the gateway ends', async t => {
  if (redisCommand(t) === undefined) return
  const { store, proxy, takeMany, used } = await scene(t)
  const [ask, unrelated] = [askOf('{ends}'), askOf('{unrelated}')]
  const answers = await takeMany(ask)
  await proxy.set({ kind: 'refuse' })
  await waitUntil(
    'it to be away',
    async () => (await store.take([unrelated], 'holder'))[0]?.store === 'local',
  )
  for (const answer of answers) store.giveBack([ask], [answer])
  await proxy.set({ kind: 'pass' })
  await waitUntil(
    'it to be back',
    async () => (await store.take([unrelated], 'holder'))[0]?.store === 'redis',
  )
  await store.close()
  await waitUntil('all to be back', async () => (await used(ask)) === 1)
})

t.test('what was granted here while Redis was late is given back to Redis, which was told of it', async t => {
  if (redisCommand(t) === undefined) return
  const { store, proxy, used } = await scene(t, 100)
  t.teardown(() => store.close())
  const take = async (ask: Ask) => (await store.take([ask], 'holder')) as [Answer]
  const cost = 10
  const windows = [{ name: 'hour', quota: 1000, ms: 3_600_000, algorithm: 'sliding-window' }] as const
  const ask: Ask = {
    ...askOf('{late}'),
    demand: { kind: 'windows', windows, lease: false, cost },
  }
  await waitUntil('Redis to count', async () => (await take(askOf('{unrelated}')))[0].store === 'redis')
  await proxy.set({ kind: 'blackhole' })
  const part: Ask = { ...ask, demand: { kind: 'windows', windows, lease: false, cost: 7 } }
  const local: Answer[] = []
  for (let i = 0; i < 3; i += 1) {
    const [answer] = await take(ask)
    t.equal(answer.store, 'local')
    local.push(answer)
    await sleep(2)
  }
  const [first, second, third] = local as [Answer, Answer, Answer]
  for (const early of [first, second]) store.giveBack([part], [early])
  await proxy.set({ kind: 'pass' })
  await waitUntil('Redis to be back', async () => (await take(askOf('{unrelated}')))[0].store === 'redis')
  await take(ask)
  // What is seen includes one more request. The late call may have been executed, too: then it is given back.
  await waitUntil('all to be counted', async () => (await used(ask)) === 5 * cost - 14)
  store.giveBack([part], [third])
  await waitUntil('the last one to be given back', async () => (await used(ask)) === 5 * cost - 21)
})

for (const { name, redis } of [
  { name: 'in process', redis: false },
  { name: 'on Redis, reset by another gateway', redis: true },
]) {
  t.test(`${name}, what was charged before a reset takes nothing from what is spent after it`, async t => {
    if (redis && redisCommand(t) === undefined) return
    const server = redis ? await startRedis() : undefined
    if (server !== undefined) t.teardown(() => server.stop())
    const settings = { redis: server?.url ?? '', deadline: 5000, instances: 1, onError: 'local' } as const
    const here = await openStore(settings, quiet, hooks)
    const other = redis ? await openStore(settings, quiet, hooks) : here
    t.teardown(() => Promise.all([here.store.close(), redis && other.store.close()]))
    const month = { unit: 'month', timezone: 'UTC' } as const
    for (const [algorithm, calendar] of [
      ['sliding-window'],
      ['fixed-window'],
      ['token-bucket'],
      ['fixed-window', month],
    ] as const) {
      const windows = [{ name: 'w', quota: 1000, ms: 2_678_400_000, algorithm, calendar }]
      const ask: Ask = {
        ...askOf(`{${name} ${algorithm} ${calendar?.unit}}`),
        demand: { kind: 'windows', windows, lease: false, cost: 10 },
      }
      const [before] = (await here.store.take([ask], 'holder')) as [Answer]
      await sleep(2)
      await other.forget(ask.key)
      await sleep(2)
      const [after] = (await here.store.take([ask], 'holder')) as [Answer]
      const used = async () => ((await here.store.peek([ask])) as [Answer])[0].counts[0]?.used
      here.store.giveBack([ask], [before])
      t.equal(Math.ceil((await used()) ?? 0), 20, `${algorithm}: 10 more than was spent`)
      here.store.giveBack([ask], [after])
      await waitUntil('what was spent since to be given back', async () => (await used()) === 10)
    }
  })
}

t.test(
  'what was granted while Redis was away is charged there soon after, or before the gateway ends',
  async t => {
    if (redisCommand(t) === undefined) return
    const { store, proxy, used } = await scene(t)
    const [ask, last] = [askOf('{soon}'), askOf('{last}')]
    const isCounting = async () => (await store.take([askOf('{unrelated}')], 'holder'))[0]?.store
    for (const [own, ends] of [
      [ask, async () => undefined],
      [last, () => store.close()],
    ] as const) {
      await waitUntil('Redis to count', async () => (await isCounting()) === 'redis')
      await proxy.set({ kind: 'refuse' })
      await waitUntil('Redis to be away', async () => (await isCounting()) === 'local')
      for (let i = 0; i < 3; i += 1) await store.take([own], 'holder')
      await proxy.set({ kind: 'pass' })
      await waitUntil('Redis to be back', async () => (await isCounting()) === 'redis')
      await ends()
      await waitUntil('all to be charged', async () => (await used(own)) === 4)
    }
  },
)
