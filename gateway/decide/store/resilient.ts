/**
 * A remote store that may be away: each rule then goes on as its `onStoreError` says (design section 5, 'Redis away').
 * A hard deadline bounds what a request waits; a breaker makes a dead Redis cost nothing per request.
 */
import type { Demand } from '../../types.js'
import { type Answer, type Ask, type CounterStore, type RemoteStore, uncounted } from './store.js'

/** Failures in a row that open the breaker, and how often Redis is asked whether it is back. */
const FAILURES_TO_OPEN = 3
const PROBE_EVERY_MS = 250

export interface ResilientOptions {
  readonly remote: RemoteStore
  /** Counts here in Redis's stead. */
  readonly local: CounterStore
  readonly deadlineMs: number
  /** Gateways that share the quota: each may spend its part while Redis is away. */
  readonly instances: number
  /** Called on each failed call. */
  onFailure(error: unknown): void
  /** Called when the breaker opens and when Redis is back. */
  onChange(away: boolean): void
}

export class ResilientStore implements CounterStore {
  readonly #options: ResilientOptions
  #failures = 0
  #probe: NodeJS.Timeout | undefined
  #asking = false

  constructor(options: ResilientOptions) {
    this.#options = options
  }

  /** While Redis is away only the breaker asks it. */
  get away(): boolean {
    return this.#probe !== undefined
  }

  take(asks: readonly Ask[], holder: string): Answer[] | Promise<Answer[]> {
    if (this.away) return this.#standIn(asks, holder)
    return this.within(() => this.#options.remote.take(asks, holder), releaseAll).then(
      answers => answers ?? this.#standIn(asks, holder),
    )
  }

  /**
   * The result of one call to Redis, or undefined when it is away, when the call failed, or when it took longer than the
   * deadline: what comes after that goes to `late`. Never rejects.
   */
  within<T>(call: () => Promise<T>, late?: (result: T) => void): Promise<T | undefined> {
    if (this.away) return Promise.resolve(undefined)
    return new Promise(resolve => {
      let waiting = true
      const giveUp = (error: unknown) => {
        if (!waiting) return
        waiting = false
        this.#failed(error)
        resolve(undefined)
      }
      // The deadline measures Redis, not our own event loop: replies that already arrived are read before giving up.
      const timer = setTimeout(() => {
        setImmediate(giveUp, new Error(`no answer within ${this.#options.deadlineMs} ms`))
      }, this.#options.deadlineMs)
      call().then(
        result => {
          clearTimeout(timer)
          if (waiting) {
            waiting = false
            this.#failures = 0
            resolve(result)
          } else {
            late?.(result)
          }
        },
        error => {
          clearTimeout(timer)
          giveUp(error)
        },
      )
    })
  }

  giveBack(_asks: readonly Ask[], answers: readonly Answer[]): void {
    releaseAll(answers)
  }

  async close(): Promise<void> {
    clearInterval(this.#probe)
    await Promise.all([this.#options.remote.close(), this.#options.local.close()])
  }

  #failed(error: unknown): void {
    this.#options.onFailure(error)
    this.#failures += 1
    if (this.#failures < FAILURES_TO_OPEN || this.#probe !== undefined) return
    this.#probe = setInterval(() => this.#ask(), PROBE_EVERY_MS).unref()
    this.#options.onChange(true)
  }

  async #ask(): Promise<void> {
    if (this.#asking) return
    this.#asking = true
    const sentAt = performance.now()
    const answered = await this.#options.remote.ping().then(
      () => true,
      () => false,
    )
    this.#asking = false
    // A Redis that answers later than the deadline would only open the breaker again.
    if (!answered || performance.now() - sentAt > this.#options.deadlineMs) return
    clearInterval(this.#probe)
    this.#probe = undefined
    this.#failures = 0
    this.#options.onChange(false)
  }

  #standIn(asks: readonly Ask[], holder: string): Answer[] | Promise<Answer[]> {
    const closed = new Set(asks.filter(ask => ask.onStoreError === 'closed').map(ask => ask.group))
    const counted = asks.filter(ask => ask.onStoreError === 'local' && !closed.has(ask.group))
    const shares = counted.map(ask => ({ ...ask, demand: shareOf(ask.demand, this.#options.instances) }))
    const merge = (answers: Answer[]) => {
      const refused = new Set(counted.filter((_, i) => !answers[i]?.granted).map(ask => ask.group))
      const next = answers[Symbol.iterator]()
      return asks.map((ask): Answer => {
        if (counted.includes(ask)) return next.next().value as Answer
        const granted = !closed.has(ask.group) && !refused.has(ask.group)
        const unavailable = ask.onStoreError === 'closed'
        return { granted, unavailable, store: 'none', counts: uncounted(ask) }
      })
    }
    const answers = this.#options.local.take(shares, holder)
    return answers instanceof Promise ? answers.then(merge) : merge(answers)
  }
}

function releaseAll(answers: readonly Answer[]): void {
  for (const answer of answers) answer.release?.()
}

/** One instance's part of a whole number of requests, at least one. */
export function partOf(whole: number, instances: number): number {
  return Math.max(1, Math.floor(whole / instances))
}

/** This instance's part of a demand. */
function shareOf(demand: Demand, instances: number): Demand {
  const part = (whole: number) => partOf(whole, instances)
  if (demand.kind === 'slots') return { ...demand, max: part(demand.max) }
  return { ...demand, windows: demand.windows.map(window => ({ ...window, quota: part(window.quota) })) }
}
