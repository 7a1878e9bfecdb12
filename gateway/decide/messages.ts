/**
 * Counts the messages of one WebSocket by the rules that count messages. Enforced rules admit a message together or not at
 * all. Report-only rules count each message once, after it was admitted or refused, and delay none.
 */
import type { Matched, Rule } from '../types.js'
import type { Admission, MessageGate, MessageTotals, Outcome } from '../verdict.js'
import type { DeciderParts } from './decide.js'
import type { MessageTurns } from './message-turns.js'
import { type DecideRequest, outcomeOf, type Question } from './question.js'
import { type Answer, uncounted } from './store/store.js'

export interface MessageParts extends Pick<DeciderParts, 'questions' | 'store' | 'onMessage' | 'onLost'> {
  readonly turns: MessageTurns
  readonly denials: NonNullable<DeciderParts['denials']>
  /** The rule in the mode that holds now. */
  current(rule: Rule): Rule
}

/** What some rules said to one message. */
interface Asked {
  readonly granted: boolean
  readonly outcomes: readonly Outcome[]
}

/** No rule is enforced. */
const NOTHING: Asked = { granted: true, outcomes: [] }

/** Messages that report-only rules count at a time: what waits is a number, however slow the store. */
const AT_ONCE = 128

export class MessageCounter implements MessageGate {
  onTurn: (() => void) | undefined
  readonly #parts: MessageParts
  readonly #request: DecideRequest
  readonly #totals = new Map<string, { outcome: Outcome; admitted: number; refused: number }>()
  #matched: readonly Matched[]
  #enforced: Question[] = []
  /** The counters of these. */
  #keys: readonly string[] = []
  #observed: Question[] = []
  /** Outcomes that need no store: a part of the key is absent, or a limiter failed. */
  #fixed: Outcome[] = []
  /** What the enforced rules said when they last refused the message at the front. */
  #refusal: readonly Outcome[] = []
  /** Messages that report-only rules have yet to count. */
  #unobserved = 0
  #observing: Promise<void> | undefined

  /** @param request the one that opened the WebSocket, with the rules that count messages */
  constructor(parts: MessageParts, request: DecideRequest) {
    this.#parts = parts
    this.#request = { ...request, isMessage: true }
    this.#matched = request.matched
    this.#ask()
  }

  /** What became of the messages so far, by rule and mode. */
  get totals(): readonly MessageTotals[] {
    return [...this.#totals.values()]
  }

  /** Resolves when report-only rules have counted every message; undefined if they have. Never rejects. */
  get settled(): Promise<void> | undefined {
    return this.#observing?.then(() => this.settled)
  }

  admit(count: number, isLast: boolean): Admission | Promise<Admission> {
    this.#takeUpModes()
    const { turns } = this.#parts
    if (isLast || turns.isTurn(this, this.#keys)) return this.#admit(count)
    turns.begin(this, this.#keys)
    this.#refusal = this.#enforced.map(question => outcomeOf(question, inVain(question)))
    return { admitted: 0 }
  }

  leave(): void {
    this.#parts.turns.end(this, this.#keys)
  }

  #admit(most: number): Admission | Promise<Admission> {
    const count = Math.min(most, this.#share())
    const isShare = count < most
    const pending: Promise<Asked>[] = []
    let admitted = 0
    for (let i = 0; i < count; i += 1) {
      const asked = this.#refusedUnasked() ?? this.#take()
      // Equal questions of one turn share a call, which says how many of them are granted.
      if (asked instanceof Promise) pending.push(asked)
      else if (this.#judge(asked)) admitted += 1
      else break
    }
    if (pending.length === 0) return this.#admission(admitted, count, isShare)
    return Promise.all(pending).then(
      all => this.#admission(admitted + all.filter(asked => this.#judge(asked)).length, count, isShare),
      error => {
        this.#parts.onLost(error)
        return this.#admission(admitted, count, isShare)
      },
    )
  }

  refuse(): 'limited' | 'unavailable' {
    for (const outcome of this.#refusal)
      this.#said(outcome, outcome.result === 'allowed' ? undefined : 'refused')
    this.#observe(1)
    return this.#refusal.some(({ result }) => result === 'unavailable') ? 'unavailable' : 'limited'
  }

  /** Turns the rules into questions, which stay the same for all messages. */
  #ask(): void {
    this.leave()
    this.#enforced = []
    this.#observed = []
    this.#fixed = []
    for (const [i, matched] of this.#matched.entries()) {
      const question = this.#parts.questions.of(matched, this.#request, i)
      if (question === 'skip') continue
      if ('result' in question) this.#fixed.push(question)
      else (question.rule.mode === 'enforce' ? this.#enforced : this.#observed).push(question)
    }
    this.#keys = this.#enforced.map(({ key }) => key)
  }

  /** Where others wait for the same, nobody takes a whole window. */
  #share(): number {
    const others = this.#parts.turns.others(this, this.#keys)
    if (others === 0) return Number.POSITIVE_INFINITY
    const quotas = this.#enforced.map(({ demand }) => (demand.kind === 'meter' ? demand.quota : 1))
    return Math.max(1, Math.floor(Math.min(...quotas) / (others + 1)))
  }

  /** A WebSocket may stay open for days, so a mode set on the admin port applies to its next messages. */
  #takeUpModes(): void {
    let changed = false
    const matched = this.#matched.map(one => {
      const rule = this.#parts.current(one.rule)
      changed ||= rule !== one.rule
      return rule === one.rule ? one : { rule, route: one.route }
    })
    if (!changed) return
    this.#matched = matched
    this.#ask()
  }

  /** The refusal, if the store need not be asked for it. */
  #refusedUnasked(): Asked | undefined {
    const { denials } = this.#parts
    const fixed = this.#fixed.filter(({ rule, result }) => rule.mode === 'enforce' && result !== 'allowed')
    const denied =
      denials.empty || fixed.length > 0 ? [] : this.#enforced.flatMap(one => this.#recall(one) ?? [])
    const outcomes = [...fixed, ...denied]
    return outcomes.length > 0 ? { granted: false, outcomes } : undefined
  }

  #recall(question: Question): Outcome | undefined {
    const refusal = this.#parts.denials.recall(question)
    return refusal && outcomeOf(question, refusal)
  }

  #take(): Asked | Promise<Asked> {
    if (this.#enforced.length === 0) return NOTHING
    return this.#askStore(this.#enforced)
  }

  #askStore(questions: readonly Question[]): Asked | Promise<Asked> {
    const asked = (answers: readonly Answer[]): Asked => {
      const outcomes = questions.map((question, i) => {
        const answer = answers[i] as Answer
        if (!answer.granted) this.#parts.denials.remember(question, answer)
        return outcomeOf(question, answer)
      })
      return { granted: answers.every(({ granted }) => granted), outcomes }
    }
    const answers = this.#parts.store.take(questions, this.#request.facts.id)
    return answers instanceof Promise ? answers.then(asked) : asked(answers)
  }

  /** True if the enforced rules admit the message. A refused one may be asked about again. */
  #judge({ granted, outcomes }: Asked): boolean {
    if (granted) for (const outcome of outcomes) this.#said(outcome, 'admitted')
    else this.#refusal = outcomes
    return granted
  }

  #admission(admitted: number, count: number, isShare: boolean): Admission {
    if (admitted > 0) this.#observe(admitted)
    const { turns } = this.#parts
    if (admitted === count) {
      turns.end(this, this.#keys)
      // Its share is used up: the others come first.
      if (isShare) turns.begin(this, this.#keys)
      return { admitted }
    }
    turns.begin(this, this.#keys)
    return { admitted, waitMs: waitOf(this.#refusal) }
  }

  /** Lets report-only rules count `messages`, behind those that they are counting. */
  #observe(messages: number): void {
    for (const outcome of this.#fixed) {
      if (outcome.rule.mode === 'enforce' && outcome.result !== 'allowed') continue
      for (let i = 0; i < messages; i += 1) this.#said(outcome, wordFor(outcome))
    }
    if (this.#observed.length === 0) return
    this.#unobserved += messages
    if (this.#observing === undefined) this.#observeSome()
  }

  #observeSome(): void {
    while (this.#unobserved > 0) {
      const messages = Math.min(this.#unobserved, AT_ONCE)
      this.#unobserved -= messages
      const waits: Promise<void>[] = []
      for (const question of this.#observed) {
        for (let i = 0; i < messages; i += 1) {
          const asked = this.#observeOne(question)
          if (asked !== undefined) waits.push(asked)
        }
      }
      if (waits.length > 0) {
        this.#observing = Promise.all(waits)
          .then(undefined, error => this.#parts.onLost(error))
          .then(() => {
            this.#observing = undefined
            this.#observeSome()
          })
        return
      }
    }
  }

  #observeOne(question: Question): Promise<void> | undefined {
    const said = ({ outcomes }: Asked) => {
      for (const outcome of outcomes) this.#said(outcome, wordFor(outcome))
    }
    const denied = this.#recall(question)
    if (denied !== undefined) this.#said(denied, 'refused')
    else {
      const asked = this.#askStore([question])
      if (asked instanceof Promise) return asked.then(said)
      said(asked)
    }
  }

  /** @param became absent for a rule that was not the reason for the refusal of its message */
  #said(outcome: Outcome, became: 'admitted' | 'refused' | undefined): void {
    this.#parts.onMessage?.(outcome, this.#request.project)
    if (became === undefined) return
    const name = `${outcome.rule.mode} ${outcome.rule.id}`
    const totals = this.#totals.get(name) ?? { outcome, admitted: 0, refused: 0 }
    totals[became] += 1
    if (became === 'refused' || totals.refused === 0) totals.outcome = outcome
    this.#totals.set(name, totals)
  }
}

/** Of a report-only rule, or of one that could not count and lets the message pass. */
function wordFor({ result }: Outcome): 'admitted' | 'refused' {
  return result === 'limited' ? 'refused' : 'admitted'
}

/** The answer to a message whose turn has not come. */
function inVain(question: Question): Answer {
  const counts = uncounted(question).map(count => ({ ...count, violated: true }))
  return { granted: false, unavailable: false, store: 'none', counts }
}

/** Ms until no window is violated; undefined if that is not known. */
function waitOf(outcomes: readonly Outcome[]): number | undefined {
  const waits = outcomes.flatMap(({ readings }) =>
    readings.flatMap(({ violated, resetMs }) => (violated && resetMs > 0 ? [resetMs] : [])),
  )
  return waits.length > 0 ? Math.max(...waits) : undefined
}
