/**
 * Where counters may be, in virtual time: in this process, on a Redis, on one that two gateways share, on a Cluster.
 */
import type { Test } from 'tap'
import { RedisStore } from '../../../gateway/decide/redis/redis-store.js'
import { MemoryStore } from '../../../gateway/decide/store/memory.js'
import type { Answer, Ask, CounterStore } from '../../../gateway/decide/store/store.js'
import { clusterUrl, redisUrl } from '../../helpers/redis.js'
import { START } from './admissions.js'

const quiet = { debug() {}, info() {}, warn() {}, error() {} }

/** Gateways that count together, on one clock in ms. */
export interface CountingPlace {
  at: number
  readonly stores: readonly CounterStore[]
  /** Asks `times` times at once at one of the gateways; the answers in order. */
  many(gateway: number, ask: Ask, times: number): Promise<Answer[]>
}

interface KindOfPlace {
  readonly name: string
  readonly runs: number
  /** Undefined, and reported as skipped, when no Redis is available. */
  open(t: Test): Promise<CountingPlace | undefined>
}

export const places: readonly KindOfPlace[] = [
  {
    name: 'in process',
    runs: 40,
    async open() {
      const clock = { at: START }
      const store = new MemoryStore(() => clock.at)
      const many = async (_: number, ask: Ask, times: number) =>
        Array.from({ length: times }, () => store.take([ask])[0] as Answer)
      return Object.assign(clock, { stores: [store], many })
    },
  },
  { name: 'on Redis', runs: 15, open: async t => onRedis(t, await redisUrl(t), 1) },
  { name: 'of two gateways on one Redis', runs: 15, open: async t => onRedis(t, await redisUrl(t), 2) },
  {
    name: 'on a Cluster of three',
    runs: 10,
    open: async t => onRedis(t, await clusterUrl(t), 1),
  },
]

async function onRedis(
  t: Test,
  url: string | undefined,
  gateways: number,
): Promise<CountingPlace | undefined> {
  if (url === undefined) return undefined
  const clock = { at: START }
  const stores = Array.from(
    { length: gateways },
    () => new RedisStore({ url, log: quiet, clock: () => Math.round(clock.at * 1000) }),
  )
  t.teardown(() => Promise.all(stores.map(store => store.close())))
  for (const store of stores) await store.answers(5000)
  const many = async (gateway: number, ask: Ask, times: number) => {
    const store = stores[gateway % stores.length] as RedisStore
    return (await store.takeMany([ask], 'holder', times)).map(([answer]) => answer as Answer)
  }
  return Object.assign(clock, { stores, many })
}
