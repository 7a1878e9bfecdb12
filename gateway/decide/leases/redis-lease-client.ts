/** Lends tokens from Redis: one script call for each report and its request for tokens (`lua/lease-1.lua`). */
import { randomBytes } from 'node:crypto'
import type { RedisClient } from '../redis/connection.js'
import { demandArguments } from '../redis/script-values.js'
import { counted } from '../store/store.js'
import { calendarLength } from '../windows/calendar.js'
import type { LeaseAnswer, LeaseCall } from './lease-client.js'

export class RedisLeaseClient {
  readonly #redis: RedisClient
  readonly #clock: (() => number) | undefined
  /** Names this process among those that borrow. */
  readonly #instance = randomBytes(6).toString('base64url')

  /** @param clock microseconds, for tests in virtual time; unset means Redis's own */
  constructor(redis: RedisClient, clock?: () => number) {
    this.#redis = redis
    this.#clock = clock
  }

  /** Rejects when Redis cannot be reached. */
  async lease(call: LeaseCall): Promise<LeaseAnswer> {
    return answerOf(call, await this.#redis.lease(call.key, ...this.#arguments(call)))
  }

  /** What `lease` would answer now. Rejects when Redis cannot be reached. */
  async peek(call: LeaseCall): Promise<LeaseAnswer> {
    return answerOf(call, await this.#redis.peekLease(call.key, ...this.#arguments(call)))
  }

  #arguments(call: LeaseCall): (string | number)[] {
    const wall = () => (this.#clock === undefined ? Date.now() : this.#clock() / 1000)
    // An age rounded down is a later time, which is the safe side.
    const spent = call.spent.map((value, i) => (i % 2 === 0 ? Math.floor(value * 1000) : value))
    return [
      ...[this.#clock?.() ?? '', this.#instance, call.must, call.ahead, toUs(call.ttlMs)],
      ...[call.returned, call.held, spent.length, ...spent],
      ...demandArguments(call.demand, wall),
    ]
  }
}

/** Reads the numbers that `lease-1.lua` returns. */
function answerOf({ demand }: LeaseCall, result: readonly number[]): LeaseAnswer {
  const [at = 0, admitted = 0, ahead = 0, ...rest] = result
  const counts = demand.windows.map(({ quota }, i) => {
    const [used, violated, resetUs] = rest.slice(3 * i) as [number, number, number]
    const windowMs = calendarLength(demand, i, at / 1000)
    return counted(quota, used, violated === 1, resetUs / 1000, windowMs)
  })
  return { at, admitted, ahead, counts }
}

const toUs = (ms: number): number => Math.round(ms * 1000)
