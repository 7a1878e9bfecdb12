/**
 * Turns the rules that apply to a request into one verdict. Enforced rules are asked first, those of other hash slots
 * before the project's own; who granted gives back when a later one refuses. Report-only rules ride along in the
 * project's call, or are counted beside it: they never make anybody wait.
 */
import type { Outcome, Verdict } from '../types.js'
import { Denials } from './denials.js'
import type { OnSlots } from './hold.js'
import { CountedParty, outcomeOf, type Party, partiesOf, ruledOutcome } from './party.js'
import {
  type CountedQuestion,
  type DecideRequest,
  isCounted,
  type Question,
  type Questions,
} from './question.js'
import type { SelfCounting } from './self-counting.js'
import type { CounterStore } from './store/store.js'
import { GatheredVerdict } from './verdict.js'

export interface DeciderParts {
  readonly questions: Questions
  readonly store: CounterStore
  readonly selfCounting: Pick<SelfCounting, 'spend' | 'recall'>
  /** Milliseconds, from any origin. */
  now(): number
  readonly onSlots: OnSlots
  /** Hears of a report-only rule that could not be counted. */
  onLost(error: unknown): void
}

export class Decider {
  readonly #parts: DeciderParts
  readonly #denials: Denials

  constructor(parts: DeciderParts) {
    this.#parts = parts
    this.#denials = new Denials(parts.now)
  }

  /** A promise only when something remote must be waited for: counting in this process costs no extra turn. */
  decide(request: DecideRequest): Verdict | Promise<Verdict> {
    const verdict = new GatheredVerdict(this.#parts.onSlots)
    const enforced: Question[] = []
    const observed: Question[] = []
    for (const [i, matched] of request.matched.entries()) {
      const question = this.#parts.questions.of(matched, request, i)
      if (question === 'skip') continue
      if ('result' in question) verdict.add(question)
      else (matched.rule.mode === 'enforce' ? enforced : observed).push(question)
    }
    const { id } = request.facts
    if (!verdict.allowed || enforced.length === 0 || this.#denied(enforced, verdict)) {
      return this.#observe(observed, verdict, id)
    }
    return this.#enforce(enforced, observed, verdict, id)
  }

  /** Forgets that `key` was refused. */
  forget(key: string): void {
    this.#denials.forget(key)
  }

  #enforce(
    enforced: readonly Question[],
    observed: readonly Question[],
    verdict: GatheredVerdict,
    id: string,
  ): Verdict | Promise<Verdict> {
    const parties = this.#parties(enforced)
    const last = parties.pop() as Party
    const riders = ridersOf(last, observed)
    const final = riders.length === 0 ? last : this.#join(last as CountedParty, riders)
    let rode = false
    const granted = orGiveBack(parties, () =>
      after(askAll(parties, id), granted => {
        rode = granted
        return granted && final.ask(id)
      }),
    )
    return after(granted, granted => {
      if (!granted) for (const party of parties) party.giveBack()
      for (const party of parties) party.record(verdict)
      if (rode) final.record(verdict)
      const left = rode
        ? observed.filter(question => !riders.includes(question as CountedQuestion))
        : observed
      return this.#observe(left, verdict, id)
    })
  }

  /** Counts report-only rules once the enforced verdict stands; whoever waits for it does not wait for these. */
  #observe(observed: readonly Question[], verdict: GatheredVerdict, id: string): Verdict {
    if (observed.length === 0) return verdict
    const left = observed.filter(question => !this.#denied([question], verdict))
    const waits: Promise<void>[] = []
    for (const party of this.#parties(left)) {
      const asked = party.ask(id)
      if (asked instanceof Promise) waits.push(asked.then(() => party.record(verdict)))
      else party.record(verdict)
    }
    if (waits.length > 0) {
      verdict.settled = Promise.all(waits).then(
        () => {},
        error => this.#parts.onLost(error),
      )
    }
    return verdict
  }

  /** True when one of the questions is known to be refused still: then nobody is asked, and its outcome is recorded. */
  #denied(questions: readonly Question[], verdict: GatheredVerdict): boolean {
    let denied = false
    for (const question of questions) {
      const refusal = this.#refusalOf(question)
      if (refusal === undefined) continue
      denied = true
      verdict.add(refusal)
    }
    return denied
  }

  /** The outcome of a question that is known to be refused still. */
  #refusalOf(question: Question): Outcome | undefined {
    if (isCounted(question)) {
      const answer = this.#denials.empty ? undefined : this.#denials.recall(question)
      return answer && outcomeOf(question, answer)
    }
    const ruling = this.#parts.selfCounting.recall(question.limiter, question)
    return ruling && ruledOutcome(question, ruling)
  }

  #parties(questions: readonly Question[]): Party[] {
    return partiesOf(questions, this.#parts.store, this.#denials, this.#parts.selfCounting)
  }

  #join({ questions }: CountedParty, riders: readonly CountedQuestion[]): CountedParty {
    return new CountedParty([...questions, ...riders], this.#parts.store, this.#denials)
  }
}

/**
 * Report-only questions about the same project join its call, which is made anyway. Not when tokens may be leased:
 * then there often is no call.
 */
function ridersOf(party: Party, observed: readonly Question[]): CountedQuestion[] {
  if (!(party instanceof CountedParty) || !party.questions.every(ridesInCall)) return []
  return observed.filter(isCounted).filter(ridesInCall)
}

function ridesInCall({ rule, demand }: CountedQuestion): boolean {
  return rule.key.includes('project') && !(demand.kind === 'windows' && demand.lease)
}

/** A failure is heard once all have answered: only then is it known what the others took. */
function askAll(parties: readonly Party[], id: string): boolean | Promise<boolean> {
  const asked = parties.map(party => attempt(() => party.ask(id)))
  if (asked.some(answer => answer instanceof Promise)) {
    return Promise.allSettled(asked)
      .then(() => Promise.all(asked))
      .then(answers => answers.every(Boolean))
  }
  return asked.every(Boolean)
}

/** Who throws fails like one that rejects. */
function attempt<T>(ask: () => T | Promise<T>): T | Promise<T> {
  try {
    return ask()
  } catch (error) {
    return Promise.reject(error)
  }
}

/** When asking fails, what any party was granted is given back: no verdict will hold it. */
function orGiveBack<T>(parties: readonly Party[], ask: () => T | Promise<T>): T | Promise<T> {
  const answer = attempt(ask)
  if (!(answer instanceof Promise)) return answer
  return answer.catch(error => {
    for (const party of parties) party.giveBack()
    throw error
  })
}

/** Goes on at once when nothing has to be waited for. */
function after<T, R>(value: T | Promise<T>, next: (value: T) => R | Promise<R>): R | Promise<R> {
  return value instanceof Promise ? value.then(next) : next(value)
}
