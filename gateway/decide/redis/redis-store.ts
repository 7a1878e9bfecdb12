/** Counters in Redis: one script call for everything that is asked together. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Log } from '../../types.js'
import { type BacklogEntry, backlogEntry, toMicroseconds } from '../fallback/backlog.js'
import { at as pick } from '../store/groups.js'
import {
  type Answer,
  type Ask,
  type Count,
  counted,
  isChargedLater,
  type LateCharge,
  type RemoteStore,
  SLOT_RETRY_MS,
  type UnsentRefund,
  uncounted,
} from '../store/store.js'
import { calendarLength } from '../windows/calendar.js'
import { connectRedis, hasSlots, inOneWrite, isUnsent, type RedisClient, reconnect } from './connection.js'
import { hashTag } from './hash-slot.js'
import { KEY_SPACE } from './key-space.js'
import { type AskTally, askArguments, keysOf, meterArguments, spentBy, talliesOf } from './script-values.js'
import { RedisSlots } from './slots.js'

/** Holder for calls that take no slot. */
const NOBODY = ''
const PING_PATIENCE_MS = 1000
const CONNECT_TICK_MS = 10
/** Longer than requests last. */
const RESET_REMEMBERED_MS = 86_400_000

/** What `take.lua` returns for an ask it could not read, in place of the number of admitted requests. */
const BROKEN = -1

export interface RedisStoreOptions {
  readonly url: string
  readonly log: Log
  /** Microseconds; for tests in virtual time. Unset means Redis's own clock. */
  readonly clock?: () => number
  /** Milliseconds since the epoch, for tests: this process's clock, if it is not that of Redis. */
  readonly wall?: () => number
}

export class RedisStore implements RemoteStore {
  /** For other uses of the same Redis, such as leases. */
  readonly connection: RedisClient
  readonly #clock: (() => number) | undefined
  /** Milliseconds since the epoch. */
  readonly #wall: () => number
  readonly #slots: RedisSlots
  readonly #log: Log

  constructor({ url, log, clock, wall }: RedisStoreOptions) {
    this.#log = log
    this.#clock = clock
    this.#wall = wall ?? (clock === undefined ? Date.now : () => clock() / 1000)
    this.connection = connectRedis(url, log)
    this.#slots = new RedisSlots(this.connection, log, key => reconnect(this.connection, key))
  }

  async take(asks: readonly Ask[], holder: string): Promise<Answer[]> {
    const [answers] = await this.takeMany(asks, holder, 1)
    return answers as Answer[]
  }

  together(calls: () => void): void {
    inOneWrite(this.connection, calls)
  }

  takeMany(asks: readonly Ask[], holder: string, times: number): Promise<Answer[][]> {
    const keys = keysOf(asks)
    return this.connection
      .take(keys.length, ...keys, ...this.#arguments(asks, holder, times))
      .then(result => {
        const tallies = talliesOf(asks, result)
        const requests: Answer[][] = []
        for (let i = 0; i < times; i += 1) {
          requests.push(
            asks.map((ask, j) => this.#answer(ask, tallies[j] as AskTally, i, result[0] as number, holder)),
          )
        }
        return requests
      })
  }

  async peek(asks: readonly Ask[]): Promise<Answer[]> {
    const keys = keysOf(asks)
    const result = await this.connection.peek(keys.length, ...keys, ...this.#arguments(asks, NOBODY, 1))
    const at = result[0] as number
    return talliesOf(asks, result).map((tally, i) => this.#answer(asks[i] as Ask, tally, 0, at, NOBODY))
  }

  /**
   * Counts on a key of its own, on the node of `key`: a Redis that is loading, read-only or out of memory answers PING,
   * but does not count. Rejects when it fails; a connection that does not answer is replaced.
   */
  async ping(key: string): Promise<void> {
    const probe = probeBeside(key)
    const timer = setTimeout(() => reconnect(this.connection, probe.key), PING_PATIENCE_MS)
    try {
      await this.take([probe], NOBODY)
    } finally {
      clearTimeout(timer)
    }
  }

  /** Whether Redis answers within `patienceMs`, asked repeatedly: at the start the connection is not open yet. */
  async answers(patienceMs: number): Promise<boolean> {
    const until = performance.now() + patienceMs
    while (performance.now() < until) {
      const isThere = await this.ping('').then(
        () => true,
        () => false,
      )
      if (isThere) return true
      await sleep(CONNECT_TICK_MS)
    }
    return false
  }

  /**
   * Runs a script over two slots, which a store that keeps keys in slots refuses: it is known as such from then on,
   * before a request has to fail for it.
   *
   * @returns why it was refused, if it was
   */
  async learnSlots(patienceMs: number): Promise<string | undefined> {
    if (hasSlots(this.connection)) return undefined
    const asks = [probeBeside('{one}'), probeBeside('{two}')]
    const tried = this.peek(asks).then(
      () => undefined,
      (error: Error) => error.message,
    )
    const waited = sleep(patienceMs, 'no answer in time', { ref: false })
    return Promise.race([tried, waited])
  }

  /** One script call serves all keys of one server; where they live in slots, `ClusterStore` separates these. */
  rides(): boolean {
    return true
  }

  giveBack(asks: readonly Ask[], answers: readonly Answer[], unsent?: UnsentRefund): void {
    const charged: number[] = []
    const args: (string | number)[] = []
    let at: number | undefined
    for (const [i, answer] of answers.entries()) {
      if (!answer.granted) continue
      const ask = asks[i] as Ask
      answer.release?.()
      if (answer.at === undefined || ask.demand.kind === 'slots' || isChargedLater(ask.demand)) continue
      // All were charged by one call, so at one time.
      at ??= answer.at
      charged.push(i)
      args.push(...askArguments(ask, this.#wall))
    }
    if (at === undefined) return
    const refunded = pick(asks, charged)
    const counters = refunded.map(({ key }) => key)
    this.connection
      .refund(2 * charged.length, ...counters, ...counters.map(resetKey), this.#clock?.() ?? '', at, ...args)
      .catch((error: Error) => {
        this.#log.debug({ err: error }, 'tokens not given back')
        if (isUnsent(error)) unsent?.(refunded, pick(answers, charged))
      })
  }

  charge(charges: readonly LateCharge[]): void {
    this.settle(charges.map(backlogEntry)).catch(error =>
      this.#log.debug({ err: error }, 'a late charge was lost'),
    )
  }

  settle(backlog: readonly BacklogEntry[]): Promise<number> {
    const args = backlog.flatMap(({ ask, spent }) => {
      const us = spent.map((value, i) => (i % 2 === 0 ? toMicroseconds(value) : value))
      return [us.length, ...us, ...askArguments(ask, this.#wall)]
    })
    const keys = backlog.map(({ ask }) => ask.key)
    return this.connection.settle(keys.length, ...keys, this.#clock?.() ?? '', ...args)
  }

  /** Deletes a counter. Requests that it has counted give nothing back any more. */
  async reset(key: string): Promise<void> {
    await this.connection.reset(2, key, resetKey(key), RESET_REMEMBERED_MS)
  }

  confirm(asks: readonly Ask[]): void {
    const keys: string[] = []
    const args: (string | number)[] = []
    for (const { key, demand, reserves } of asks) {
      if (demand.kind !== 'meter' || !reserves || isChargedLater(demand)) continue
      keys.push(key)
      args.push(...meterArguments(demand, true))
    }
    if (keys.length === 0) return
    this.connection
      .confirm(keys.length, ...keys, this.#clock?.() ?? '', ...args)
      .catch(error => this.#log.debug({ err: error }, 'a reservation was not confirmed'))
  }

  slotsHeld(key: string): number {
    return this.#slots.heldOf(key)
  }

  abandon(asks: readonly Ask[], holder: string): void {
    for (const { key, demand } of asks) {
      if (demand.kind === 'slots') this.#slots.abandon({ key, holder, ttlMs: demand.ttlMs })
    }
  }

  async close(): Promise<void> {
    this.#slots.close()
    this.connection.disconnect()
  }

  #arguments(asks: readonly Ask[], holder: string, times: number): (string | number)[] {
    const args: (string | number)[] = [this.#clock?.() ?? '', times, holder]
    for (const ask of asks) args.push(ask.group, ...askArguments(ask, this.#wall))
    return args
  }

  /** The answer for the `i`-th of the requests that asked together. */
  #answer(ask: Ask, { admitted, counts }: AskTally, i: number, at: number, holder: string): Answer {
    if (admitted === BROKEN)
      return { granted: false, unavailable: true, store: 'none', counts: uncounted(ask) }
    const { demand } = ask
    const granted = i < admitted
    const slots = demand.kind === 'slots'
    const requestsAfter = granted ? admitted - 1 - i : 0
    const own = counts.map((count, j): Count => {
      const { quota, used = 0, violated, resetMs } = count
      const before = used - spentBy(demand, requestsAfter, granted && used > quota)
      const windowMs = calendarLength(demand, j, at / 1000)
      const now = counted(quota, before, violated && !granted, slots ? SLOT_RETRY_MS : resetMs, windowMs)
      return count.credit === undefined ? now : { ...now, credit: count.credit }
    })
    const answer = { unavailable: false, store: 'redis', counts: own } as const
    if (!granted) return { ...answer, granted }
    if (!slots) return { ...answer, granted, at }
    return holder === NOBODY
      ? { ...answer, granted }
      : { ...answer, granted, ...this.#slots.hold({ key: ask.key, holder, ttlMs: demand.ttlMs }) }
  }
}

/** Keeps the time of a counter's last reset, in the same slot. */
function resetKey(counter: string): string {
  return `${counter}:reset`
}

/** A harmless ask for a key in the Cluster slot of `key`, or in a slot of its own if `key` has no hash tag. */
function probeBeside(key: string): Ask {
  const windows = [{ name: 'probe', quota: 1_000_000, ms: 1000, algorithm: 'sliding-window' }] as const
  const tag = hashTag(key) ?? 'probe'
  return {
    key: `${KEY_SPACE}{${tag}}:probe`,
    demand: { kind: 'windows', windows, lease: false },
    group: 0,
    onStoreError: 'open',
  }
}
