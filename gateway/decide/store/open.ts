/** The counter store of a process: Redis, with a local fallback, or this process alone. */
import type { Log, OnStoreError } from '../../types.js'
import type { CreditStore } from '../credit/credit.js'
import { Backlog } from '../fallback/backlog.js'
import type { StoreOp } from '../fallback/breaker.js'
import { FallbackStore } from '../fallback/fallback-store.js'
import { Guard } from '../fallback/guard.js'
import { LastAnswers } from '../fallback/last-answers.js'
import { Refunds } from '../fallback/refunds.js'
import type { LeaseAnswer, LeaseCall, LeaseClient } from '../leases/lease-client.js'
import { type Behind, LeasedStore } from '../leases/leased-store.js'
import { RedisLeaseClient } from '../leases/redis-lease-client.js'
import { shownAddress } from '../redis/address.js'
import { ClusterStore } from '../redis/cluster-store.js'
import { hasSlots, nodeOf, onClosed, troubleOf } from '../redis/connection.js'
import { RedisCredit } from '../redis/redis-credit.js'
import { RedisStore } from '../redis/redis-store.js'
import { wallClock } from '../windows/date-clock.js'
import { MemoryStore } from './memory.js'
import type { Answer, Ask, CounterStore } from './store.js'

export interface StoreSettings {
  /** Address of Redis; empty means that this process counts alone. */
  readonly redis: string
  /** How long a request waits for Redis, in milliseconds. */
  readonly deadline: number
  /** Gateways that share the quotas. */
  readonly instances: number
  readonly onError: OnStoreError
}

/** Events of the store for other parts of the gateway. */
export interface StoreHooks {
  /** A call ended after `ms`, successfully or not. */
  called?(ms: number): void
  /** A call failed or came too late. */
  failed(op: StoreOp): void
  /** An answer came after its deadline: what it had charged was refunded. */
  late(): void
  /** Redis went away, or came back. */
  awayChanged(away: boolean): void
}

/** How long the start waits for Redis before it goes on without. */
const PATIENCE_MS = 1000

/** Time between two log lines about late answers; the metric counts them all. */
const QUIET_MS = 10_000

export interface OpenedStore {
  readonly store: CounterStore
  /** Forgets what was counted by a key; rejects if Redis cannot be reached. */
  forget(key: string): Promise<void>
  /** What operators add to lifetime windows. */
  readonly credit: CreditStore
  /** Checks whether Redis is away, even if no request calls it. */
  suspect(): void
}

/** Opens the store that the settings describe; Redis may be away. */
export async function openStore(
  { redis, deadline, instances, onError }: StoreSettings,
  log: Log,
  hooks: StoreHooks,
): Promise<OpenedStore> {
  const now = () => performance.now()
  const dates = wallClock(now)
  if (redis === '') {
    const store = new MemoryStore(now, 'memory', undefined, dates)
    return { store, forget: async key => store.forget(key), credit: store.credit, suspect() {} }
  }
  const remote = new RedisStore({ url: redis, log })
  const address = shownAddress(redis)
  const isThere = await remote.answers(PATIENCE_MS)
  if (isThere) await remote.learnSlots(PATIENCE_MS)
  else {
    const reason = troubleOf(remote.connection)
    const message = `Redis at ${address} does not answer${reason ? ` (${reason})` : ''}: starting without it`
    log.warn({ redis: address, reason }, message)
  }
  let quietUntil = Number.NEGATIVE_INFINITY
  const onLate = () => {
    hooks.late()
    if (now() < quietUntil) return
    quietUntil = now() + QUIET_MS
    log.warn({ deadline }, 'Redis answered after the deadline: what it had charged was refunded')
  }
  const guard = new Guard({
    deadlineMs: deadline,
    nodeOf: key => nodeOf(remote.connection, key),
    ping: key => remote.ping(key),
    onCalled: ms => hooks.called?.(ms),
    onFailure: op => hooks.failed(op),
    onChange({ node, away, anyAway }) {
      hooks.awayChanged(anyAway)
      const fields = node === '' ? {} : { node }
      if (away)
        log.warn(
          { ...fields, redis: address, reason: troubleOf(remote.connection), onStoreError: onError },
          'Redis is away: each rule follows its onStoreError',
        )
      else log.info(fields, 'Redis is back: counting there again')
    },
  })
  const suspect = () => guard.suspect()
  onClosed(remote.connection, suspect)
  if (!isThere) suspect()
  const local = new MemoryStore(now, 'local', key => remote.slotsHeld(key), dates)
  const lastAnswers = new LastAnswers(now)
  const backlog = new Backlog(now)
  const refunds = new Refunds()
  const resilient = new FallbackStore({
    remote,
    guard,
    local,
    instances,
    lastAnswers,
    backlog,
    refunds,
    onLate,
  })
  const leases = leaseClientOf(remote, guard, resilient, onLate)
  const split = new ClusterStore(resilient, () => hasSlots(remote.connection))
  const behind: Behind = Object.assign(split, { countLocally: resilient.countLocally.bind(resilient) })
  const store = new LeasedStore(behind, leases, now)
  const forget = async (key: string) => {
    await remote.reset(key)
    store.forget(key)
    local.forget(key)
    lastAnswers.forget(key)
    backlog.forget(key)
    refunds.forget(key)
  }
  return { store, forget, credit: new RedisCredit(remote.connection), suspect }
}

/** Lends from Redis while it answers in time. */
function leaseClientOf(
  remote: RedisStore,
  guard: Guard,
  countLocally: FallbackStore,
  onLate: () => void,
): LeaseClient {
  const redisLeases = new RedisLeaseClient(remote.connection)
  return {
    async lease(call, late) {
      const undo = (answer: LeaseAnswer) => {
        onLate()
        giveBackAdmitted(remote, call, answer)
        countLocally.settle([askOf(call)])
        late?.(answer)
      }
      const lease = () => {
        countLocally.settle([askOf(call)])
        return redisLeases.lease(call)
      }
      const answer = await guard.within('lease', call.key, lease, undo)
      if (answer !== undefined) countLocally.hear([askOf(call)], [answerOf(answer)])
      return answer
    },
    peek: call => guard.within('peek', call.key, () => redisLeases.peek(call)),
  }
}

/** Gives back what a late call charged for waiting requests: they have been decided without it. */
function giveBackAdmitted(remote: RedisStore, call: LeaseCall, answer: LeaseAnswer): void {
  const asks = Array<Ask>(answer.admitted).fill(askOf(call))
  remote.giveBack(asks, Array<Answer>(answer.admitted).fill(answerOf(answer)))
}

function askOf({ key, demand }: LeaseCall): Ask {
  return { key, demand, group: 0, onStoreError: 'local' }
}

function answerOf({ counts, at }: LeaseAnswer): Answer {
  return { granted: true, unavailable: false, store: 'redis', counts, at }
}
