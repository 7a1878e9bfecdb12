import type { KeyCounter } from '../../plugin.js'
import type { Log, OnStoreError } from '../../types.js'
import { MemoryWindows, RedisWindows } from './flexible.js'
import { Guard } from './guard.js'
import { WindowCounter } from './key-counter.js'
import { LeasedStore } from './leased-store.js'
import type { Lender } from './lender.js'
import { MemoryStore } from './memory.js'
import { RedisStore } from './redis.js'
import { nodeOf } from './redis-connection.js'
import { RedisLender } from './redis-lender.js'
import { ResilientStore } from './resilient.js'
import type { CounterStore } from './store.js'

export interface StoreSettings {
  /** Address of Redis; empty means that this process counts alone. */
  readonly redis: string
  /** How long a request waits for Redis, in milliseconds. */
  readonly deadline: number
  /** Gateways that share the quotas. */
  readonly instances: number
  readonly onError: OnStoreError
}

/** What the rest of the house wants to hear of the store. */
export interface StoreHooks {
  /** A call failed or came too late; `op` is one of the few things a store is asked for. */
  failed(op: string): void
  /** Redis went away, or came back. */
  awayChanged(away: boolean): void
}

export interface OpenStore {
  readonly store: CounterStore
  /** Counts in the same place, for limiters that count by themselves. */
  readonly counter: KeyCounter
  /** Forgets what was counted by a key. Rejects when Redis cannot be told. */
  forget(key: string): Promise<void>
}

/** How long a start waits for Redis before it goes on without. */
const PATIENCE_MS = 1000

/** Redis with this process in its stead, or this process alone. */
export async function openStore(
  { redis, deadline, instances, onError }: StoreSettings,
  log: Log,
  hooks: StoreHooks,
): Promise<OpenStore> {
  const now = () => performance.now()
  if (redis === '') {
    const local = new MemoryWindows('memory')
    const store = new MemoryStore(now)
    const forget = async (key: string) => {
      store.forget(key)
      await local.forget(key)
    }
    return { store, counter: new WindowCounter({ local, instances, now }), forget }
  }
  const remote = new RedisStore({ url: redis, log })
  if (!(await remote.answers(PATIENCE_MS))) log.warn({}, 'Redis does not answer: starting without it')
  const guard = new Guard({
    deadlineMs: deadline,
    nodeOf: key => nodeOf(remote.connection, key),
    ping: key => remote.ping(key),
    onFailure: () => hooks.failed('take'),
    onChange({ node, away, anyAway }) {
      hooks.awayChanged(anyAway)
      const fields = node === '' ? {} : { node }
      if (away)
        log.warn(
          { ...fields, onStoreError: onError },
          'Redis is away: each rule goes on as its onStoreError says',
        )
      else log.info(fields, 'Redis is back: counting there again')
    },
  })
  const inMemory = new MemoryStore(now, 'local', key => remote.slotsHeld(key))
  const resilient = new ResilientStore({ remote, guard, local: inMemory, instances })
  const redisLender = new RedisLender(remote.connection)
  const lender: Lender = { lease: call => guard.within(call.key, () => redisLender.lease(call)) }
  const local = new MemoryWindows('local')
  const counter = new WindowCounter({
    local,
    remote: { windows: new RedisWindows(remote.connection), guard },
    instances,
    now,
  })
  const store = new LeasedStore(resilient, lender, now)
  const forget = async (key: string) => {
    await remote.connection.del(key)
    store.forget(key)
    inMemory.forget(key)
    counter.forget(key)
    await local.forget(key)
  }
  return { store, counter, forget }
}
