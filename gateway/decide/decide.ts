/** Turns the rules that apply to a request into one verdict: builds the checks, asks the store once, merges the answers. */
import type { Limiter } from '../plugin.js'
import type { Demand, Facts, Matched, Outcome, Project, Reading, Rule, Verdict, Window } from '../types.js'
import { emailOrFlow } from './email-or-flow.js'
import { counterKey } from './key.js'
import type { Answer, Ask, CounterStore } from './store/store.js'
import { GatheredVerdict } from './verdict.js'

/** Enforced asks stand or fall together; each report-only rule is a group of its own, as if it were the only one. */
const ENFORCED = 0

export interface DecideRequest {
  readonly facts: Facts
  readonly project: Project
  readonly matched: readonly Matched[]
  /** The first bytes of the body, when a rule's key needed them. */
  readonly bodyPrefix?: Buffer | undefined
}

/** What is asked of the store, and for which rule. */
interface Question extends Ask {
  readonly rule: Rule
  readonly route: string
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
    const verdict = new GatheredVerdict(this.#onSlots)
    let questions: Question[] = []
    for (const { rule, route } of request.matched) {
      const key = this.#key(rule, route, request)
      if (key !== undefined) {
        const group = rule.mode === 'enforce' ? ENFORCED : questions.length + 1
        const demand = this.#demand(rule, key)
        questions.push({ rule, route, key, demand, group, onStoreError: rule.onStoreError })
      } else if (rule.missing === 'deny') {
        verdict.add({ rule, route, key: '', result: 'limited', store: 'none', readings: [] })
      }
    }
    // A request that is refused already consumes nothing; report-only rules still see it.
    if (!verdict.allowed) questions = questions.filter(({ rule }) => rule.mode === 'report-only')
    if (questions.length === 0) return verdict
    const answers = this.#store.take(questions, request.facts.id)
    if (answers instanceof Promise) return answers.then(given => gather(verdict, questions, given))
    return gather(verdict, questions, answers)
  }

  #key(rule: Rule, route: string, { facts, project, bodyPrefix }: DecideRequest): string | undefined {
    const looks = rule.key.includes('email-or-flow')
    const identity = looks ? emailOrFlow(facts, bodyPrefix, this.#secret) : undefined
    return counterKey(rule, { facts, project, route, emailOrFlow: identity })
  }

  #demand(rule: Rule, key: string): Demand {
    const limiter = this.#limiters.get(rule.kind)
    if (limiter === undefined) throw new Error(`no limit plugin is called "${rule.kind}"`)
    return limiter.demand({ rule, key })
  }
}

function gather(
  verdict: GatheredVerdict,
  questions: readonly Question[],
  answers: readonly Answer[],
): Verdict {
  for (const [i, question] of questions.entries()) {
    const answer = answers[i] as Answer
    verdict.add(outcomeOf(question, answer))
    if (answer.release !== undefined) verdict.hold(question.rule, answer.release)
  }
  return verdict
}

/** Within a refused group a rule that is not violated itself counts as allowed: it was not the reason. */
function outcomeOf({ rule, route, key, demand }: Question, answer: Answer): Outcome {
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
