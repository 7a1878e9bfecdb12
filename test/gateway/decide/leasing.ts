/** Gateways that lease tokens from a real Redis, in virtual time. */
import { Redis } from 'ioredis'
import type { Test } from 'tap'
import type { LeaseCall, LeaseClient } from '../../../gateway/decide/leases/lease-client.js'
import { type Behind, LeasedStore } from '../../../gateway/decide/leases/leased-store.js'
import { RedisLeaseClient } from '../../../gateway/decide/leases/redis-lease-client.js'
import { defineScripts } from '../../../gateway/decide/redis/scripts.js'
import { MemoryStore } from '../../../gateway/decide/store/memory.js'
import type { Ask } from '../../../gateway/decide/store/store.js'
import type { Window } from '../../../gateway/demand.js'
import { redisUrl } from '../../helpers/redis.js'
import { START } from './admissions.js'
import { freshKey, windows } from './counting.js'

export interface Bench {
  /** Gateways on one Redis, each with its own leases. */
  readonly instances: readonly LeasedStore[]
  /** Calls to Redis so far. */
  calls: number
  underWay: Promise<unknown>
  at: number
}

/** Opens `instances` gateways on an empty Redis; undefined when no Redis is available. */
export async function connect(t: Test): Promise<((instances: number) => Bench) | undefined> {
  const url = await redisUrl(t)
  if (url === undefined) return undefined
  const redis = new Redis(url)
  defineScripts(redis)
  t.teardown(() => redis.disconnect())
  return count => {
    const bench = {
      calls: 0,
      underWay: Promise.resolve() as Promise<unknown>,
      at: START,
      instances: [] as LeasedStore[],
    }
    for (let i = 0; i < count; i += 1) {
      const inRedis = new RedisLeaseClient(redis, () => Math.round(bench.at * 1000))
      const lender: LeaseClient = {
        lease(call: LeaseCall) {
          bench.calls += 1
          const answer = inRedis.lease(call)
          bench.underWay = Promise.all([bench.underWay, answer])
          return answer
        },
        peek: call => inRedis.peek(call),
      }
      const store = new LeasedStore(
        inProcess(() => bench.at),
        lender,
        () => bench.at,
      )
      t.teardown(() => store.close())
      bench.instances.push(store)
    }
    return bench
  }
}

/** Counts while Redis lends nothing. */
export function inProcess(now: () => number): Behind {
  const store = new MemoryStore(now, 'local')
  return {
    take: (asks, _holder) => store.take(asks),
    countLocally: (asks, _holder) => store.take(asks),
    rides: () => store.rides(),
    peek: asks => store.peek(asks),
    giveBack: (asks, answers) => store.giveBack(asks, answers),
    charge: charges => store.charge(charges),
    close: () => store.close(),
  }
}

/** An ask of a rule with leases, under a key that has not been counted yet. */
export function leased(...list: Window[]): Ask {
  const ask = windows(freshKey(), ...list)
  return { ...ask, demand: { kind: 'windows', windows: list, lease: true } }
}

/** Asks `count` times at once at one instance; returns how many were admitted. */
export async function knock(bench: Bench, instance: number, ask: Ask, count = 1): Promise<number> {
  const store = bench.instances[instance % bench.instances.length] as LeasedStore
  const answers = await Promise.all(
    Array.from({ length: count }, async () => (await store.take([ask], 'holder'))[0]),
  )
  return answers.filter(answer => answer?.granted).length
}

/** Lets `ms` pass; leases that ended in the meantime are reported. */
export async function pass(bench: Bench, ms: number): Promise<void> {
  bench.at += ms
  for (const store of bench.instances) store.sweep()
  await bench.underWay
}
