/**
 * A remote store that may be away: each rule then follows its `onStoreError` (docs/scaling.md, 'While Redis is
 * away').
 */

import { at } from '../store/groups.js'
import {
  type Answer,
  type Ask,
  type CounterStore,
  type LateCharge,
  type RemoteStore,
  uncounted,
} from '../store/store.js'
import { type Backlog, type BacklogEntry, backlogEntry, toMicroseconds } from './backlog.js'
import { CoalescedCalls } from './coalesced-calls.js'
import type { Guard } from './guard.js'
import type { LastAnswers } from './last-answers.js'
import { localAnswer, shareOf } from './local-share.js'
import type { Refund, Refunds } from './refunds.js'

export interface ResilientOptions {
  readonly remote: RemoteStore
  /** Wraps all calls to the remote store. */
  readonly guard: Guard
  /** Counts in this process while Redis is away. */
  readonly local: CounterStore & { forget(key: string): void }
  /** Gateways that share the quota: each may spend its part while Redis is away. */
  readonly instances: number
  /** The remote store's last answer about each key. */
  readonly lastAnswers: LastAnswers
  /** What was admitted here and has not been sent to Redis yet. */
  readonly backlog: Backlog
  /** What could not be given back to Redis yet. */
  readonly refunds: Refunds
  /** Called when an answer came too late: what it had granted is given back. */
  onLate(): void
}

/** How often Redis is told what it has missed, and of how many keys or refunds at a time. */
const CATCH_UP_MS = 1000
const MOST_AT_ONCE = 2000

export class FallbackStore implements CounterStore {
  readonly #options: ResilientOptions
  readonly #coalesced: CoalescedCalls
  #catchingUp: NodeJS.Timeout | undefined

  constructor(options: ResilientOptions) {
    this.#options = options
    this.#coalesced = new CoalescedCalls(
      (asks, holder, times) => this.#send(asks, holder, times),
      calls => options.remote.together(calls),
    )
  }

  take(asks: readonly Ask[], holder: string): Answer[] | Promise<Answer[]> {
    if (this.#options.guard.isAway(keyOf(asks))) return this.countLocally(asks, holder)
    return this.#coalesced.take(asks, holder).then(answers => answers ?? this.countLocally(asks, holder))
  }

  rides(observed: Ask, enforced: readonly Ask[]): boolean {
    return this.#options.remote.rides(observed, enforced)
  }

  async peek(asks: readonly Ask[]): Promise<Answer[]> {
    const { guard, remote, local } = this.#options
    const answers = await guard.within('peek', keyOf(asks), async () => remote.peek(asks))
    return answers ?? this.#without(asks, shares => local.peek(shares))
  }

  giveBack(asks: readonly Ask[], answers: readonly Answer[]): void {
    const { guard, local } = this.#options
    if (guard.isAway(keyOf(asks))) this.#giveBackLater(asks, answers)
    else giveBackOf('redis', this.#refunder, asks, answers)
    giveBackOf('local', local, asks, answers)
    for (const [i, answer] of answers.entries()) this.#forgive(asks[i] as Ask, answer)
  }

  /** What was granted here is owed to Redis, or Redis was told of it: then it has to give that back. */
  #forgive(ask: Ask, answer: Answer): void {
    if (!answer.granted || answer.owed === undefined) return
    const { backlog } = this.#options
    const { countedAt } = answer.owed
    if (countedAt === undefined) backlog.forgive(ask, answer)
    else {
      void countedAt.then(at => {
        if (at === undefined) backlog.forgive(ask, answer)
        else this.giveBack([ask], [{ ...answer, store: 'redis', at, owed: undefined }])
      })
    }
  }

  readonly #giveBackLater = (asks: readonly Ask[], answers: readonly Answer[]): void => {
    const { refunds } = this.#options
    for (const [i, answer] of answers.entries()) {
      const ask = asks[i] as Ask
      if (answer.store !== 'redis') continue
      if (ask.demand.kind === 'slots') answer.release?.()
      else if (answer.granted) refunds.add({ ask, answer })
    }
    if (!refunds.isEmpty) this.#catchUpLater()
  }

  #catchUpLater(): void {
    this.#catchingUp ??= setInterval(() => this.#catchUp(), CATCH_UP_MS).unref()
  }

  /** Gives back to Redis; what cannot be sent waits. */
  readonly #refunder: Pick<CounterStore, 'giveBack'> = {
    giveBack: (asks, answers) => this.#options.remote.giveBack(asks, answers, this.#giveBackLater),
  }

  /** Tells nodes that are there what was admitted in their place, and gives back what waits for them. */
  #catchUp(most = MOST_AT_ONCE): void {
    const { backlog, guard, refunds, remote } = this.#options
    const isThere = (key: string) => !guard.isAway(key)
    const owed = backlog.settleSome(most, isThere)
    const due = refunds.takeSome(most, isThere)
    if (owed.length + due.length > 0) {
      remote.together(() => {
        // One key at a time: others may be on another node.
        for (const entry of owed) this.#tell([entry])
        this.#giveBackNow(due)
      })
    }
    if (!refunds.isEmpty || !backlog.isEmpty) return
    clearInterval(this.#catchingUp)
    this.#catchingUp = undefined
  }

  #giveBackNow(refunds: readonly Refund[]): void {
    for (const { ask, answer } of refunds) this.#refunder.giveBack([ask], [answer])
  }

  /** Confirms what reserving asks were charged. */
  confirm(asks: readonly Ask[]): void {
    this.#options.remote.confirm(asks)
  }

  /** While Redis is away, charges are counted here and sent to Redis later, like all that was admitted in its place. */
  charge(charges: readonly LateCharge[]): void {
    const { guard, remote } = this.#options
    const [first] = charges
    if (first === undefined) return
    if (guard.isAway(first.ask.key)) this.#chargeHere(charges)
    else remote.settle(charges.map(backlogEntry)).catch(() => this.#chargeHere(charges))
  }

  #chargeHere(charges: readonly LateCharge[]): void {
    const { backlog, instances, lastAnswers, local } = this.#options
    backlog.restore(charges.map(backlogEntry))
    this.#catchUpLater()
    const shares = charges.map(({ ask, units }) => {
      return { ask: shareOf(ask, instances, lastAnswers.recall(ask)), units }
    })
    local.charge(shares)
  }

  async close(): Promise<void> {
    this.#catchUp(Number.POSITIVE_INFINITY)
    clearInterval(this.#catchingUp)
    this.#options.guard.close()
    await Promise.all([this.#options.remote.close(), this.#options.local.close()])
  }

  /** Answers without Redis, as each rule's `onStoreError` says. */
  countLocally(asks: readonly Ask[], holder: string): Answer[] | Promise<Answer[]> {
    const { backlog, local } = this.#options
    const owe = (answers: Answer[]) => {
      const owed = backlog.owe(asks, answers)
      if (!backlog.isEmpty) this.#catchUpLater()
      return owed
    }
    const answers = this.#without(asks, shares => local.take(shares, holder))
    return answers instanceof Promise ? answers.then(owe) : owe(answers)
  }

  /** Sends Redis what was admitted here in its place, before it is asked for more. */
  settle(asks: readonly Ask[]): void {
    const { backlog, refunds } = this.#options
    const due = backlog.settle(asks)
    if (due.length > 0) this.#tell(due)
    this.#giveBackNow(refunds.take(asks))
  }

  #tell(due: readonly BacklogEntry[]): void {
    const { backlog, remote } = this.#options
    const heardAt = remote.settle(due).catch(() => {
      backlog.restore(due)
      this.#catchUpLater()
      return undefined
    })
    for (const { spends, spent } of due) {
      for (const [i, spend] of spends.entries()) {
        const age = toMicroseconds(spent[2 * i] as number)
        spend.countedAt = heardAt.then(at => at && at - age)
      }
    }
  }

  /**
   * Remembers Redis's answers. They include what was settled before, which need not be counted here any more.
   */
  hear(asks: readonly Ask[], answers: readonly Answer[]): void {
    const { backlog, lastAnswers, local } = this.#options
    lastAnswers.remember(asks, answers)
    for (const key of backlog.takeCounted(asks)) local.forget(key)
  }

  /** A failed call may still have been executed, so slots it took must be freed. */
  #send(asks: readonly Ask[], holder: string, times: number): Promise<Answer[][] | undefined> {
    const { guard, remote } = this.#options
    let sent = false
    const call = () => {
      sent = true
      this.settle(asks)
      return remote.takeMany(asks, holder, times)
    }
    const late = (requests: readonly Answer[][]) => this.#undo(asks, requests)
    return guard.within('take', keyOf(asks), call, late).then(answers => {
      const last = answers?.at(-1)
      if (last !== undefined) this.hear(asks, last)
      else if (sent) remote.abandon(asks, holder)
      return answers
    })
  }

  /** Gives back what late answers granted: their requests have been decided without them. */
  #undo(asks: readonly Ask[], requests: readonly Answer[][]): void {
    const { onLate, remote } = this.#options
    onLate()
    for (const answers of requests) remote.giveBack(asks, answers)
    this.settle(asks)
  }

  /** @param here asks this process's own counters */
  #without(
    asks: readonly Ask[],
    here: (shares: readonly Ask[]) => Answer[] | Promise<Answer[]>,
  ): Answer[] | Promise<Answer[]> {
    const { instances, lastAnswers } = this.#options
    const closed = new Set(asks.filter(ask => ask.onStoreError === 'closed').map(ask => ask.group))
    const counted = asks.filter(ask => ask.onStoreError === 'local' && !closed.has(ask.group))
    const last = counted.map(ask => lastAnswers.recall(ask))
    const shares = counted.map((ask, i) => shareOf(ask, instances, last[i]))
    const merge = (answers: Answer[]) => {
      const refused = new Set(counted.filter((_, i) => !answers[i]?.granted).map(ask => ask.group))
      const own = answers.map((answer, i) => localAnswer(counted[i] as Ask, answer, instances, last[i]))
      const next = own[Symbol.iterator]()
      return asks.map((ask): Answer => {
        if (counted.includes(ask)) return next.next().value as Answer
        const answer = { store: 'none', counts: uncounted(ask) } as const
        if (ask.onStoreError === 'closed') return { ...answer, granted: false, unavailable: true }
        const granted = !closed.has(ask.group) && !refused.has(ask.group)
        return { ...answer, granted, unavailable: false }
      })
    }
    const answers = here(shares)
    return answers instanceof Promise ? answers.then(merge) : merge(answers)
  }
}

/**
 * The key by which a call is guarded: one node keeps all keys of a call. An enforced key takes precedence over
 * report-only ones.
 */
function keyOf(asks: readonly Ask[]): string {
  return (asks.find(ask => ask.group === 0) ?? asks[0])?.key ?? ''
}

function giveBackOf(
  store: Answer['store'],
  counter: Pick<CounterStore, 'giveBack'>,
  asks: readonly Ask[],
  answers: readonly Answer[],
): void {
  const own = asks.map((_, i) => i).filter(i => answers[i]?.store === store)
  if (own.length === 0) return
  counter.giveBack(at(asks, own), at(answers, own))
}
