/** Those questions of a request that are answered together: one call to the counter store, or one limiter of its own. */
import type { Ruling } from '../plugin.js'
import type { Outcome, Reading, Window } from '../types.js'
import type { Denials } from './denials.js'
import { type CountedQuestion, isCounted, type OwnQuestion, type Question } from './question.js'
import type { Contained, SelfCounting } from './self-counting.js'
import type { Answer, CounterStore } from './store/store.js'
import type { GatheredVerdict } from './verdict.js'

export interface Party {
  /** Asks once; true when everything that is enforced was granted. A promise only when the answer is remote. */
  ask(holder: string): boolean | Promise<boolean>
  /** Undoes what was granted, because another party refused. */
  giveBack(): void
  /** Writes the outcomes into the verdict, which then holds the slots that were taken. */
  record(verdict: GatheredVerdict): void
}

/** Counters of one hash slot, in one call. */
export class CountedParty implements Party {
  readonly questions: readonly CountedQuestion[]
  readonly #store: CounterStore
  readonly #denials: Denials
  #answers: readonly Answer[] = []

  constructor(questions: readonly CountedQuestion[], store: CounterStore, denials: Denials) {
    this.questions = questions
    this.#store = store
    this.#denials = denials
  }

  ask(holder: string): boolean | Promise<boolean> {
    const answers = this.#store.take(this.questions, holder)
    return answers instanceof Promise ? answers.then(given => this.#hear(given)) : this.#hear(answers)
  }

  giveBack(): void {
    this.#store.giveBack(this.questions, this.#answers)
    this.#answers = this.#answers.map(answer => ({ ...answer, release: undefined }))
  }

  record(verdict: GatheredVerdict): void {
    for (const [i, question] of this.questions.entries()) {
      const answer = this.#answers[i]
      if (answer === undefined || answer.skipped) continue
      verdict.add(outcomeOf(question, answer))
      const { release, onLost } = answer
      const { key, route, demand } = question
      if (release !== undefined) verdict.hold(question.rule, release, { key, route, demand, onLost })
    }
  }

  #hear(answers: readonly Answer[]): boolean {
    this.#answers = answers
    let granted = true
    for (const [i, question] of this.questions.entries()) {
      const answer = answers[i] as Answer
      if (answer.granted) continue
      this.#denials.remember(question, answer)
      if (question.rule.mode === 'enforce') granted = false
    }
    return granted
  }
}

/** One limiter that counts by itself. */
export class OwnParty implements Party {
  readonly #question: OwnQuestion
  readonly #selfCounting: Pick<SelfCounting, 'spend'>
  #ruling: Contained = 'unavailable'

  constructor(question: OwnQuestion, selfCounting: Pick<SelfCounting, 'spend'>) {
    this.#question = question
    this.#selfCounting = selfCounting
  }

  ask(): boolean | Promise<boolean> {
    const { limiter, rule, key, facts } = this.#question
    const ruling = this.#selfCounting.spend(limiter, { rule, key, facts })
    return ruling instanceof Promise ? ruling.then(given => this.#hear(given)) : this.#hear(ruling)
  }

  giveBack(): void {
    if (this.#ruling === 'unavailable' || !this.#ruling.granted) return
    this.#ruling.giveBack?.()
    this.#ruling.release?.()
    this.#ruling = { ...this.#ruling, release: undefined }
  }

  record(verdict: GatheredVerdict): void {
    const { rule, route, key } = this.#question
    const ruling = this.#ruling
    if (ruling === 'unavailable') {
      verdict.add({ rule, route, key, result: 'unavailable', store: 'none', readings: [] })
      return
    }
    verdict.add(ruledOutcome(this.#question, ruling))
    const release = ruling.release?.bind(ruling)
    if (ruling.granted && release !== undefined) verdict.hold(rule, release, { key, route })
  }

  #hear(ruling: Contained): boolean {
    this.#ruling = ruling
    return ruling !== 'unavailable' && ruling.granted
  }
}

/**
 * Sorts questions into parties, the project's own last: what it refuses costs the others nothing that they do not get
 * back, and what they refuse costs it nothing at all.
 */
export function partiesOf(
  questions: readonly Question[],
  store: CounterStore,
  denials: Denials,
  selfCounting: Pick<SelfCounting, 'spend'>,
): Party[] {
  const parties: Party[] = []
  let own: CountedQuestion[] | undefined
  for (const question of questions) {
    if (!isCounted(question)) parties.push(new OwnParty(question, selfCounting))
    else if (!question.rule.key.includes('project'))
      parties.push(new CountedParty([question], store, denials))
    else if (own === undefined) own = [question]
    else own.push(question)
  }
  if (own !== undefined) parties.push(new CountedParty(own, store, denials))
  return parties
}

/** Within a refused group a rule that is not violated itself counts as allowed: it was not the reason. */
export function outcomeOf({ rule, route, key, demand }: CountedQuestion, answer: Answer): Outcome {
  const limited = answer.counts.some(count => count.violated)
  const result = answer.unavailable ? 'unavailable' : limited ? 'limited' : 'allowed'
  return { rule, route, key, result, store: answer.store, readings: readingsOf(rule.id, demand, answer) }
}

/** What a limiter of its own has ruled. */
export function ruledOutcome({ rule, route, key }: OwnQuestion, ruling: Ruling): Outcome {
  const { granted, store, readings } = ruling
  return { rule, route, key, result: granted ? 'allowed' : 'limited', store, readings }
}

function readingsOf(id: string, demand: CountedQuestion['demand'], { counts }: Answer): Reading[] {
  return counts.map(({ quota, used, left, violated, resetMs }, i) => {
    if (demand.kind === 'slots') return { policy: id, quota, used, left, violated, resetMs }
    const { name, ms: windowMs } = demand.windows[i] as Window
    return { policy: `${id}.${name}`, quota, windowMs, used, left, violated, resetMs }
  })
}
