/**
 * Tokens of one key that this instance leased ahead, and how it spent them.
 *
 * Redis counts leased tokens as used until the end of their lease. They may be spent only before that end, and each
 * report says when they were, so no interval ever admits more than the quota, on however many instances.
 */
import type { Demand } from '../../demand.js'
import { type Answer, type Count, costOf, counted, RESERVED_MS } from '../store/store.js'
import { type LeaseAnswer, type LeaseCall, leaseMs, type Windows } from './lease-client.js'

/** Tokens spent within this part of a lease are reported together, at the time of the last: the safe side. */
const TIMES = 50
/** Refill while this many round trips' worth of tokens is left. */
const ROUND_TRIPS_AHEAD = 1.5

export class Lease {
  readonly key: string
  demand: Windows
  /** Tokens that may be spent before `#until`. */
  #tokens = 0
  #until = 0
  /** Tokens that were in hand when they were last given up. */
  #left = 0
  /** Spent and not reported yet: time, count, time, count, … */
  #spent: number[] = []
  #lastBegan = 0
  /** Spends are numbered; for each entry of `#spent`, the number of its last one. */
  #numbers: number[] = []
  #number = 0
  #reported = 0
  #forgotten = 0
  /** Counts of Redis's last answer, in which the tokens this lease held then (`#outstanding`) are used. */
  #counts: readonly Count[] = []
  #outstanding = 0
  #answeredAt = 0
  /** When Redis gave that answer, on its clock. */
  #storeTime: number | undefined
  #sentAt = 0
  /** Tokens to ask for ahead. */
  #want = 1
  #lent = 0
  #roundTripMs = 0
  /** Tokens spent per ms, between the last two calls. */
  #rate = 0

  constructor(key: string, demand: Windows) {
    this.key = key
    this.demand = demand
  }

  /** Spends a request's cost if there are enough tokens that were leased under this very quota. */
  spend(demand: Demand, now: number): Answer | undefined {
    const cost = costOf(demand)
    if (!this.#holds(demand, cost, now)) return undefined
    this.#tokens -= cost
    this.#number += 1
    const last = this.#spent.length - 2
    if (last >= 0 && now < this.#lastBegan + leaseMs(this.demand) / TIMES) {
      this.#spent[last] = now
      this.#spent[last + 1] = (this.#spent[last + 1] as number) + cost
      this.#numbers[last / 2] = this.#number
    } else {
      this.#lastBegan = now
      this.#spent.push(now, cost)
      this.#numbers.push(this.#number)
    }
    return {
      granted: true,
      unavailable: false,
      store: 'lease',
      counts: this.#countsAt(now, 0),
      spend: this.#number,
      at: this.#redisTime(now),
    }
  }

  /** What `spend` would answer; nothing is spent. */
  peek(demand: Demand, now: number): Answer | undefined {
    const cost = costOf(demand)
    if (!this.#holds(demand, cost, now)) return undefined
    return { granted: true, unavailable: false, store: 'lease', counts: this.#countsAt(now, -cost) }
  }

  /** A rule's windows are one object until its numbers change, whatever its requests cost, so identity is enough. */
  #holds(demand: Demand, cost: number, now: number): boolean {
    return this.#tokens >= cost && isOf(demand, this.demand) && now < this.#until
  }

  /** Undoes the spend of that number; false if it has been reported, so that only Redis can give its tokens back. */
  giveBack(number: number, cost: number): boolean {
    if (number <= this.#reported) return number <= this.#forgotten
    const i = this.#numbers.findIndex(last => last >= number)
    if (i < 0) return true
    this.#tokens += cost
    this.#spent[2 * i + 1] = (this.#spent[2 * i + 1] as number) - cost
    if ((this.#spent[2 * i + 1] as number) > 0) return true
    this.#spent.splice(2 * i, 2)
    this.#numbers.splice(i, 1)
    return true
  }

  get isEmpty(): boolean {
    return this.#tokens === 0 && this.#spent.length === 0
  }

  /** True when the lease should be renewed or ended by now, a little before it ends in Redis. */
  isDue(now: number): boolean {
    return now >= this.#until - leaseMs(this.demand) / 5
  }

  /** True when more tokens should be requested before these run out. */
  get runsLow(): boolean {
    return this.#lent > 0 && this.#tokens <= this.#rate * this.#roundTripMs * ROUND_TRIPS_AHEAD
  }

  get wasUsed(): boolean {
    return this.#spent.length > 0
  }

  /** Reports what was spent, and asks to charge `must` waiting requests and to lend more tokens. */
  refill(must: number, demand: Windows, now: number): LeaseCall {
    const spent = total(this.#spent)
    this.#adjust(spent + must * costOf(demand), now)
    const isSameQuota = isOf(demand, this.demand)
    // Tokens that are too few for a request go back: together with those of other instances they may suffice.
    const isEnough = must === 0 || this.#tokens >= costOf(demand)
    const held = isSameQuota && isEnough && now < this.#until ? this.#tokens : 0
    const call = this.#report(now, { must, ahead: this.#want, returned: this.#tokens - held, held, demand })
    this.#tokens = held
    this.#outstanding = held
    this.demand = demand
    return call
  }

  /** The report that `refill` would make for one request of `demand`, for which these tokens do not suffice. */
  preview(demand: Windows, now: number): LeaseCall {
    const { key } = this
    const spent = this.#spentBefore(now)
    return { key, ttlMs: leaseMs(demand), spent, must: 1, ahead: 0, returned: this.#tokens, held: 0, demand }
  }

  /** The report that ends the lease: what is left goes back. */
  settle(now: number): LeaseCall {
    const { demand } = this
    const call = this.#report(now, { must: 0, ahead: 0, returned: this.#tokens, held: 0, demand })
    this.#tokens = 0
    this.#lent = 0
    return call
  }

  /** Adds the tokens that Redis lent. */
  answered(answer: LeaseAnswer, now: number): void {
    const took = now - this.#sentAt
    this.#roundTripMs = this.#roundTripMs === 0 ? took : this.#roundTripMs * 0.8 + took * 0.2
    this.#lent = answer.ahead
    this.#tokens += answer.ahead
    this.#until = this.#sentAt + leaseMs(this.demand)
    this.#outstanding += answer.ahead
    this.#counts = answer.counts
    this.#answeredAt = now
    this.#storeTime = answer.at
  }

  /**
   * Takes over what a late answer to the last call lent: the waiting requests did without it, but the lease is valid.
   * What was spent during the call is forgotten here, so Redis will count it as lost.
   */
  regain(answer: LeaseAnswer, now: number): void {
    this.#tokens = this.#left
    this.#outstanding = this.#left
    this.answered(answer, now)
  }

  /**
   * Gives up all tokens, so that Redis may count them as spent: after a call that failed, which Redis may have executed
   * or not, or when the counter is reset.
   */
  forget(): void {
    this.#left = this.#tokens
    this.#tokens = 0
    this.#spent = []
    this.#numbers = []
    this.#reported = this.#number
    this.#forgotten = this.#number
    this.#lent = 0
  }

  /** The answer to a request that waited for the call. */
  answer(granted: boolean, before: number, answer: LeaseAnswer, now: number): Answer {
    const counts = this.#countsAt(now, before * costOf(this.demand)).map(count => {
      return granted ? { ...count, violated: false } : count
    })
    const base = { unavailable: false, store: 'redis', counts } as const
    return granted ? { ...base, granted, at: answer.at } : { ...base, granted, askAgainMs: RESERVED_MS }
  }

  /** @param before tokens spent after the request this is for; negative if its own are not counted yet */
  #countsAt(now: number, before: number): Count[] {
    const spentSince = total(this.#spent)
    const elapsed = now - this.#answeredAt
    return this.#counts.map(({ used = 0, violated, resetMs, windowMs }, i) => {
      const { quota } = this.demand.windows[i] as Windows['windows'][number]
      const spent = used - this.#outstanding + spentSince - before
      return counted(quota, spent, violated, Math.max(0, resetMs - elapsed), windowMs)
    })
  }

  /** The time on Redis's clock, or a little before it: the answer took a while to arrive. */
  #redisTime(now: number): number | undefined {
    return this.#storeTime === undefined
      ? undefined
      : this.#storeTime + Math.floor((now - this.#answeredAt) * 1000)
  }

  #report(
    now: number,
    report: Pick<LeaseCall, 'must' | 'ahead' | 'returned' | 'held' | 'demand'>,
  ): LeaseCall {
    const spent = this.#spentBefore(now)
    this.#spent = []
    this.#numbers = []
    this.#reported = this.#number
    this.#sentAt = now
    return { key: this.key, ttlMs: leaseMs(report.demand), spent, ...report }
  }

  /** Age, count, age, count, … */
  #spentBefore(now: number): number[] {
    return this.#spent.map((value, i) => (i % 2 === 0 ? now - value : value))
  }

  /**
   * Doubles the tokens to ask for while half of them are used up, so that a lease grows with the rate; otherwise
   * shrinks them to what was used.
   */
  #adjust(used: number, now: number): void {
    const elapsed = now - this.#sentAt
    this.#rate = elapsed > 0 ? used / elapsed : this.#rate
    this.#want = used * 2 >= this.#want ? this.#want * 2 : Math.max(1, used)
  }
}

function isOf(demand: Demand, { windows }: Windows): boolean {
  return demand.kind === 'windows' && demand.windows === windows
}

function total(spent: readonly number[]): number {
  let sum = 0
  for (let i = 1; i < spent.length; i += 2) sum += spent[i] as number
  return sum
}
