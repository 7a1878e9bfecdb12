/**
 * Spends leased tokens in this process and asks Redis for more, one call per key at a time. Requests that find the
 * lease empty wait for the call under way or join the next.
 */

import { at, refusedGroups, together } from '../store/groups.js'
import { type Answer, type Ask, type CounterStore, costOf, type LateCharge } from '../store/store.js'
import { type Account, Accounts, type Waiter } from './accounts.js'
import { answerSeen, type LeaseAnswer, type LeaseClient, type Windows } from './lease-client.js'

export interface Behind extends CounterStore {
  /** Answers without asking Redis, which has just failed to answer. */
  countLocally(asks: readonly Ask[], holder: string): Answer[] | Promise<Answer[]>
}

const SWEEP_MS = 20

export class LeasedStore implements CounterStore {
  readonly #inner: Behind
  readonly #leases: LeaseClient
  readonly #now: () => number
  readonly #accounts = new Accounts()
  readonly #sweeps: NodeJS.Timeout
  readonly #late: LateCharges

  /**
   * @param inner counts what is not leased, and counts everything while Redis lends nothing
   * @param now in milliseconds, from any origin
   */
  constructor(inner: Behind, leases: LeaseClient, now: () => number) {
    this.#inner = inner
    this.#leases = leases
    this.#now = now
    this.#late = new LateCharges(charges => inner.charge(charges))
    this.#sweeps = setInterval(() => this.sweep(), SWEEP_MS).unref()
  }

  take(asks: readonly Ask[], holder: string): Answer[] | Promise<Answer[]> {
    if (!asks.some(isLeased)) return this.#inner.take(asks, holder)
    const obtained = asks.filter(isLeased).map(ask => this.#obtain(ask, holder))
    if (obtained.some(answer => answer instanceof Promise)) {
      return Promise.all(obtained).then(answers => this.#takeRest(asks, answers, holder))
    }
    return this.#takeRest(asks, obtained as Answer[], holder)
  }

  /** With leased tokens there often is no call to join. */
  rides(observed: Ask, enforced: readonly Ask[]): boolean {
    return !isLeased(observed) && !enforced.some(isLeased) && this.#inner.rides(observed, enforced)
  }

  async peek(asks: readonly Ask[]): Promise<Answer[]> {
    // The answer to a call may bring tokens, which Redis counts as used by now.
    await Promise.all(asks.map(ask => this.#leasedTo(ask)?.underWay))
    const seen = await Promise.all(asks.map(ask => this.#peekLeased(ask)))
    const rest = asks.filter((_, i) => seen[i] === undefined)
    return together(asks, seen, rest, rest.length === 0 ? [] : await this.#inner.peek(rest))
  }

  giveBack(asks: readonly Ask[], answers: readonly Answer[]): void {
    const others = asks
      .map((_, i) => i)
      .filter(i => !this.#giveBackLeased(asks[i] as Ask, answers[i] as Answer))
    if (others.length === 0) return
    this.#inner.giveBack(at(asks, others), at(answers, others))
  }

  charge(charges: readonly LateCharge[]): void {
    this.#late.add(charges)
  }

  /** Renews the leases that are in use and ends those that are not, shortly before they would end by themselves. */
  sweep(): void {
    const now = this.#now()
    for (const account of this.#accounts.due(now)) {
      const { lease } = account
      if (account.underWay !== undefined) continue
      if (lease.wasUsed) this.#call(account, lease.demand)
      else {
        if (!lease.isEmpty) void this.#leases.lease(lease.settle(now))
        this.#accounts.delete(account)
      }
    }
  }

  /** Forgets the tokens that were lent for `key`. */
  forget(key: string): void {
    this.#accounts.find(key)?.lease.forget()
  }

  async close(): Promise<void> {
    clearInterval(this.#sweeps)
    this.#late.send()
    const now = this.#now()
    const held = [...this.#accounts].filter(({ lease }) => !lease.isEmpty)
    await Promise.all(held.map(({ lease }) => this.#leases.lease(lease.settle(now))))
    await this.#inner.close()
  }

  #obtain(ask: Ask, holder: string): Answer | Promise<Answer> {
    const account = this.#accounts.of(ask)
    const { lease } = account
    const spent = account.waiting.length === 0 ? lease.spend(ask.demand, this.#now()) : undefined
    if (spent !== undefined) {
      if (lease.runsLow && account.underWay === undefined) this.#call(account, lease.demand)
      return spent
    }
    const answer = new Promise<Answer | undefined>(resolve => account.waiting.push({ ask, resolve }))
    if (account.underWay === undefined) this.#call(account, ask.demand as Windows)
    return answer.then(async given => given ?? ((await this.#inner.countLocally([ask], holder))[0] as Answer))
  }

  /** Undefined for what `inner` counts alone. */
  async #peekLeased(ask: Ask): Promise<Answer | undefined> {
    const lease = this.#leasedTo(ask)?.lease
    if (lease === undefined || lease.isEmpty) return undefined
    const now = this.#now()
    const seen = lease.peek(ask.demand, now)
    if (seen !== undefined) return seen
    // The request's own call would give back the tokens that are too few for it, so they are not shown as used.
    const answer = await this.#leases.peek(lease.preview(ask.demand as Windows, now))
    return answer && answerSeen(answer)
  }

  #leasedTo(ask: Ask): Account | undefined {
    return isLeased(ask) ? this.#accounts.find(ask.key) : undefined
  }

  #call(account: Account, demand: Windows): void {
    const { lease } = account
    // Requests with another quota or cost wait for the next call: this one's answer says nothing about them.
    const batch = account.waiting.filter(({ ask }) => ask.demand === demand)
    account.waiting = account.waiting.filter(({ ask }) => ask.demand !== demand)
    account.calls += 1
    const number = account.calls
    this.#accounts.putLast(account, demand)
    const call = lease.refill(batch.length, demand, this.#now())
    const late = (answer: LeaseAnswer) => {
      // Otherwise a later call has reported these tokens as lost: they were counted as spent.
      if (account.calls === number) lease.regain(answer, this.#now())
    }
    account.underWay = this.#leases.lease(call, late).then(answer => {
      account.underWay = undefined
      this.#dealOut(account, batch, answer)
    })
  }

  #dealOut(account: Account, batch: readonly Waiter[], answer: LeaseAnswer | undefined): void {
    const { lease } = account
    const later = account.waiting
    account.waiting = []
    if (answer === undefined) {
      lease.forget()
      for (const waiter of [...batch, ...later]) waiter.resolve(undefined)
      return
    }
    const now = this.#now()
    const { admitted } = answer
    lease.answered(answer, now)
    for (const [i, waiter] of batch.entries()) {
      waiter.resolve(lease.answer(i < admitted, Math.max(0, admitted - 1 - i), answer, now))
    }
    // Requests that came during the call would get the same refusal from another call.
    const refused = admitted < batch.length
    for (const waiter of later) {
      const { demand } = waiter.ask
      const spent =
        refused && demand === lease.demand ? lease.answer(false, 0, answer, now) : lease.spend(demand, now)
      if (spent !== undefined) waiter.resolve(spent)
      else account.waiting.push(waiter)
    }
    const next = account.waiting[0]
    if (next !== undefined) this.#call(account, next.ask.demand as Windows)
  }

  /**
   * Demands without a lease are charged once the leased part of their group is granted; if they are refused,
   * the leased part is taken back.
   */
  #takeRest(asks: readonly Ask[], obtained: readonly Answer[], holder: string): Answer[] | Promise<Answer[]> {
    const leased = obtained[Symbol.iterator]()
    const answers = asks.map(ask => (isLeased(ask) ? (leased.next().value as Answer) : undefined))
    const refused = refusedGroups(asks, answers)
    const rest = asks.filter((ask, i) => answers[i] === undefined && !refused.has(ask.group))
    const given = rest.length === 0 ? [] : this.#inner.take(rest, holder)
    const undo = (ask: Ask, answer: Answer) => this.giveBack([ask], [answer])
    return given instanceof Promise
      ? given.then(given => together(asks, answers, rest, given, undo))
      : together(asks, answers, rest, given, undo)
  }

  #giveBackLeased(ask: Ask, answer: Answer): boolean {
    if (answer.store !== 'lease') return false
    if (!answer.granted || answer.spend === undefined) return true
    const isDone = this.#accounts.find(ask.key)?.lease.giveBack(answer.spend, costOf(ask.demand)) ?? true
    // What it spent was reported as spent after `at`, so this takes back that very token or an earlier one.
    if (!isDone) this.#inner.giveBack([ask], [{ ...answer, store: 'redis' }])
    return true
  }
}

function isLeased({ demand }: Ask): boolean {
  return demand.kind === 'windows' && demand.lease
}

/** Charges that no request waits for. Those of one turn of the event loop are sent together, merged per counter. */
export class LateCharges {
  readonly #send: (charges: readonly LateCharge[]) => void
  #waiting = new Map<string, LateCharge>()

  constructor(send: (charges: readonly LateCharge[]) => void) {
    this.#send = send
  }

  add(charges: readonly LateCharge[]): void {
    if (this.#waiting.size === 0) setImmediate(() => this.send())
    for (const { ask, units } of charges) {
      const before = this.#waiting.get(ask.key)?.units ?? 0
      this.#waiting.set(ask.key, { ask, units: before + units })
    }
  }

  send(): void {
    if (this.#waiting.size === 0) return
    const charges = [...this.#waiting.values()]
    this.#waiting = new Map()
    this.#send(charges)
  }
}
