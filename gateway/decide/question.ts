/**
 * What one request asks of its rules: each rule with the key it counts by and what is to be counted; and what the answer
 * to that means for the rule.
 */
import type { ReservedCost } from '../../config/words/reserve.js'
import { isInside } from '../../config/words/share.js'
import { compiledRule } from '../compiled-rule.js'
import type { Demand, UpstreamAnswer, Window } from '../demand.js'
import type { Limiter } from '../plugin.js'
import type { Calls, Facts, Log, Matched, Project, Rule } from '../types.js'
import type { Outcome, Reading } from '../verdict.js'
import { MOST_UNITS } from './after-answer.js'
import { emailOrFlow } from './email-or-flow.js'
import { NO_CALL } from './json-rpc.js'
import { counterKey, type Keyed, shownParts } from './key.js'
import { isRefundable, reservedCostOf, reserveOf } from './reserve/reserved.js'
import { type EndedAnswer, spentBy } from './reserve/settle.js'
import { type Answer, type Ask, type Count, costOf } from './store/store.js'
import { lengthAt } from './windows/calendar.js'

/** Who waits for the response. */
export interface Client {
  /** True once it has left, or its response has ended. */
  readonly closed: boolean
  watch(watcher: { onClose?(): void }): void
}

export interface DecideRequest {
  readonly facts: Facts
  readonly project: Project
  readonly matched: readonly Matched[]
  /** The first bytes of the body, when a rule's key needed them. */
  readonly bodyPrefix?: Buffer | undefined
  /** True if the rest of the body had not arrived in time. */
  readonly isBodyLate?: boolean | undefined
  /** The JSON-RPC calls in the body, when a rule counts by them. */
  readonly calls?: Calls | undefined
  /** True for a message of the WebSocket that the request has opened; only rules that count messages count it. */
  readonly isMessage?: true | undefined
  /** A request whose client leaves while it waits is dropped. */
  readonly client?: Client | undefined
  /** Called when the request begins to wait. */
  readonly waits?: (() => void) | undefined
  /** Called once the store has answered; `startedAt` by `performance.now()`. */
  readonly storeCalled?: ((startedAt: number, remote: boolean) => void) | undefined
}

/** A question to the counter store. */
export interface Question extends Ask {
  readonly rule: Rule
  readonly route: string
  /** What the request costs is known only with its response. */
  readonly reserved?: ReservedCost | undefined
}

/** Group of all enforced asks, which are granted together or not at all; each report-only rule is its own group. */
const ENFORCED = 0

export class Questions {
  readonly #limiters: ReadonlyMap<string, Limiter<unknown>>
  readonly #secret: Buffer
  readonly #log: Log

  /**
   * @param secret key of the hashes that replace e-mail addresses and flow ids
   * @param log receives failures of limiters
   */
  constructor(limiters: ReadonlyMap<string, Limiter<unknown>>, secret: Buffer, log: Log) {
    this.#limiters = limiters
    this.#secret = secret
    this.#log = log
  }

  /**
   * The question of one rule; `'skip'` if the rule does not apply to the request or counts nothing of it; or its
   * outcome if the store need not be asked, because the request lacks a required part of the key or the limiter threw.
   *
   * @param number index of the rule in its request; gives each report-only question a group of its own
   */
  of(matched: Matched, request: DecideRequest, number: number): Question | Outcome | 'skip' {
    const { route } = matched
    let { rule } = matched
    const { facts } = request
    if (rule.countsMessages !== request.isMessage) return 'skip'
    const limiter = this.#limiters.get(rule.kind)
    if (limiter === undefined) throw new Error(`no limit plugin is called "${rule.kind}"`)
    try {
      if (limiter.applies?.(rule, facts) === false) return 'skip'
      const keyed = this.#keyed(rule, route, request)
      let key = counterKey(rule, keyed)
      rule = ruleFor(rule, key)
      if (rule !== matched.rule) key = counterKey(rule, keyed)
      if (key === undefined)
        return rule.missing === 'deny' ? outcomeWithout({ rule, route }, 'limited') : 'skip'
      const group = rule.mode === 'enforce' ? ENFORCED : number + 1
      const reserved = reservedCostOf(matched)
      const reserve = reserved && reserveOf(reserved, facts, request)
      const demand = limiter.demand({ rule, key, route, facts, calls: keyed.calls?.count, reserve })
      const { onStoreError } = rule
      return { rule, route, key, demand, group, onStoreError, reserved, isRefundable: isRefundable(rule) }
    } catch (error) {
      this.#failed(rule, error)
      return outcomeWithout({ rule, route }, rule.onStoreError === 'closed' ? 'unavailable' : 'allowed')
    }
  }

  /**
   * What an admitted request costs by its upstream's response, in whole units. If the limiter fails to tell, it costs
   * one.
   */
  lateUnits({ rule, demand }: Question, answer: UpstreamAnswer): number {
    if (demand.kind !== 'meter' || demand.afterAnswer === undefined) return 0
    try {
      return Math.min(MOST_UNITS, Math.ceil(demand.afterAnswer(answer)))
    } catch (error) {
      this.#failed(rule, error)
      return 1
    }
  }

  /** What a request has cost that reserved `question.demand`, in units. Nothing if it was sent to no upstream. */
  settledUnits({ reserved, demand }: Question, answer: EndedAnswer | undefined): number {
    if (answer === undefined) return 0
    const spent = reserved && spentBy(reserved, answer)
    if (spent !== undefined) return Math.min(MOST_UNITS, spent)
    return reserved?.unknown === 'free' ? 0 : costOf(demand)
  }

  /** The parts of the rule's key, safe to show. */
  parts({ rule, route }: Matched, request: DecideRequest): ReturnType<typeof shownParts> {
    return shownParts(rule, this.#keyed(rule, route, request))
  }

  /** False if the rule does not apply to a request it matches. */
  applies({ rule }: Matched, { facts, isMessage }: DecideRequest): boolean {
    return (
      rule.countsMessages === isMessage && this.#limiters.get(rule.kind)?.applies?.(rule, facts) !== false
    )
  }

  #failed({ kind, id }: Rule, error: unknown): void {
    this.#log.warn({ err: error, plugin: kind, rule: id }, 'a limiter failed')
  }

  #keyed(rule: Rule, route: string, request: DecideRequest): Keyed {
    const { facts, project, bodyPrefix, isBodyLate } = request
    const looks = rule.key.includes('email-or-flow')
    const identity = looks ? emailOrFlow(facts, bodyPrefix, this.#secret, isBodyLate) : undefined
    const calls = rule.key.includes('json-rpc') ? (request.calls ?? NO_CALL) : undefined
    return { facts, project, route, emailOrFlow: identity, calls }
  }
}

/** An outcome that was not counted by any store. */
function outcomeWithout(matched: Matched, result: Outcome['result']): Outcome {
  return { ...matched, key: '', result, store: 'none', readings: [] }
}

/**
 * The rule as it applies to a key. Requests that lack a part of the key are in no share but 100%: they are all alike, and
 * a share is there to avoid refusing all of them at once.
 *
 * @param key the counter key under the rule as written
 */
function ruleFor(rule: Rule, key: string | undefined): Rule {
  const { share, mode } = rule
  if (share?.of !== 'keys' || mode !== 'enforce') return rule
  if (key === undefined ? share.percent === 100 : isInside(share.percent, key)) return rule
  const made = rule.made ?? {}
  made.reporting ??= compiledRule({ ...rule, mode: 'report-only' })
  return made.reporting
}

/** Within a refused group a rule that is not violated itself counts as allowed: it was not the reason. */
export function outcomeOf({ rule, route, key, demand }: Question, answer: Answer): Outcome {
  const readings: Reading[] = []
  let limited = false
  for (let i = 0; i < answer.counts.length; i += 1) {
    const count = answer.counts[i] as Count
    if (count.violated) limited = true
    readings.push(readingOf(rule.id, demand, i, count))
  }
  const result = answer.unavailable ? 'unavailable' : limited ? 'limited' : 'allowed'
  return { rule, route, key, result, store: answer.store, readings }
}

function readingOf(id: string, demand: Demand, i: number, count: Count): Reading {
  const { quota, used, left, violated, resetMs } = count
  if (demand.kind === 'slots') return { policy: id, quota, used, left, violated, resetMs }
  if (demand.kind === 'meter') {
    const { ms: windowMs, hidden } = demand
    const cost = demand.afterAnswer === undefined ? demand.cost : 0
    return { policy: id, quota, windowMs, used, left, violated, resetMs, hidden, cost }
  }
  const { name, ms, calendar, lifetime } = demand.windows[i] as Window
  const { cost } = demand
  if (lifetime) {
    const { credit } = count
    return { policy: `${id}.${name}`, quota, lifetime, credit, used, left, violated, resetMs, cost }
  }
  if (calendar === undefined) {
    return { policy: `${id}.${name}`, quota, windowMs: ms, used, left, violated, resetMs, cost }
  }
  // If no store counted, the current period is that of this process's clock.
  const windowMs = count.windowMs ?? lengthAt(calendar, Date.now())
  return { policy: `${id}.${name}`, quota, windowMs, calendar, used, left, violated, resetMs, cost }
}
