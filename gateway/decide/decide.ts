/** Turns the rules that apply to a request into one verdict: builds the checks, asks the store once, merges the answers. */
import type { Limiter } from '../plugin.js'
import type { Demand, Facts, Matched, Outcome, Project, Reading, Verdict, Window } from '../types.js'
import { emailOrFlow } from './email-or-flow.js'
import { counterKey } from './key.js'
import type { Answer, Ask, CounterStore } from './store/store.js'

const ENFORCED = 0

export interface DecideRequest {
  readonly facts: Facts
  readonly project: Project
  readonly matched: readonly Matched[]
  /** The first bytes of the body, when a rule's key needed them. */
  readonly bodyPrefix?: Buffer | undefined
}

/** A rule that was asked about, and by which key. */
interface Question {
  readonly matched: Matched
  readonly key: string
  readonly demand: Demand
}

export class Decider {
  readonly #limiters: ReadonlyMap<string, Limiter<unknown>>
  readonly #store: CounterStore
  readonly #secret: Buffer
  readonly #onSlots: (rule: string, change: number) => void

  /**
   * @param secret keys the hashes that stand for e-mail addresses
   * @param onSlots hears of every slot taken and given back
   */
  constructor(
    limiters: ReadonlyMap<string, Limiter<unknown>>,
    store: CounterStore,
    secret: Buffer,
    onSlots: (rule: string, change: number) => void,
  ) {
    this.#limiters = limiters
    this.#store = store
    this.#secret = secret
    this.#onSlots = onSlots
  }

  /** A promise only when the store is remote: counting in this process costs no extra turn of the event loop. */
  decide(request: DecideRequest): Verdict | Promise<Verdict> {
    const questions: Question[] = []
    const denied: Outcome[] = []
    for (const matched of request.matched) {
      const key = this.#key(matched, request)
      if (key !== undefined) {
        questions.push({ matched, key, demand: this.#demand(matched, key) })
      } else if (matched.rule.missing === 'deny') {
        denied.push({ ...matched, key: '', result: 'limited', store: 'none', readings: [] })
      }
    }
    const deniedByEnforced = denied.some(({ rule }) => rule.mode === 'enforce')
    // A request that is refused already consumes nothing; report-only rules still see it.
    const asked = deniedByEnforced ? questions.filter(isReportOnly) : questions
    if (asked.length === 0) return this.#verdict([], denied)
    const answers = this.#store.take(asksOf(asked), request.facts.id)
    return answers instanceof Promise
      ? answers.then(given => this.#verdict(zip(asked, given), denied))
      : this.#verdict(zip(asked, answers), denied)
  }

  #key({ rule, route }: Matched, { facts, project, bodyPrefix }: DecideRequest): string | undefined {
    const identity = rule.key.includes('email-or-flow')
      ? emailOrFlow(facts, bodyPrefix, this.#secret)
      : undefined
    return counterKey(rule, { facts, project, route, emailOrFlow: identity })
  }

  #demand({ rule }: Matched, key: string): Demand {
    const limiter = this.#limiters.get(rule.kind)
    if (limiter === undefined) throw new Error(`no limit plugin is called "${rule.kind}"`)
    return limiter.demand({ rule, key })
  }

  #verdict(answered: readonly Answered[], denied: readonly Outcome[]): Verdict {
    const all = answered.map(([question, answer]) => outcomeOf(question, answer)).concat(denied)
    const outcomes = all.filter(({ rule }) => rule.mode === 'enforce')
    const held = answered.filter(([, answer]) => answer.release !== undefined)
    for (const [{ matched }] of held) this.#onSlots(matched.rule.id, 1)
    return {
      allowed: outcomes.every(({ result }) => result === 'allowed'),
      outcomes,
      reportOnly: all.filter(({ rule }) => rule.mode === 'report-only'),
      holdsSlot: held.some(([question]) => !isReportOnly(question)),
      release: () => {
        for (const [{ matched }, answer] of held.splice(0)) {
          answer.release?.()
          this.#onSlots(matched.rule.id, -1)
        }
      },
    }
  }
}

type Answered = readonly [Question, Answer]

function isReportOnly({ matched }: Question): boolean {
  return matched.rule.mode === 'report-only'
}

/** Enforced asks stand or fall together; each report-only rule is judged alone, as if it were the only one. */
function asksOf(questions: readonly Question[]): Ask[] {
  return questions.map((question, i) => ({
    key: question.key,
    demand: question.demand,
    group: isReportOnly(question) ? i + 1 : ENFORCED,
    onStoreError: question.matched.rule.onStoreError,
  }))
}

function zip(questions: readonly Question[], answers: readonly Answer[]): Answered[] {
  return questions.map((question, i) => [question, answers[i] as Answer])
}

/** Within a refused group a rule that is not violated itself counts as allowed: it was not the reason. */
function outcomeOf({ matched: { rule, route }, key, demand }: Question, answer: Answer): Outcome {
  const limited = answer.counts.some(count => count.violated)
  const result = answer.unavailable ? 'unavailable' : limited ? 'limited' : 'allowed'
  return { rule, route, key, result, store: answer.store, readings: readingsOf(rule.id, demand, answer) }
}

function readingsOf(id: string, demand: Demand, { counts }: Answer): Reading[] {
  return counts.map(({ used, left, violated, resetMs }, i) => {
    if (demand.kind === 'slots') return { policy: id, quota: demand.max, used, left, violated, resetMs }
    const { name, quota, ms: windowMs } = demand.windows[i] as Window
    return { policy: `${id}.${name}`, quota, windowMs, used, left, violated, resetMs }
  })
}
