/**
 * Turns the rules that apply to a request into one verdict. All enforced demands go to the store in one call,
 * which charges all of them or none. Report-only rules join that call if they need no call of their own;
 * otherwise they are counted separately. They never delay a request. A request of rules that let it wait is asked about
 * again when they may have room.
 */
import { isUnlimited } from '../../config/words/bucket.js'
import type { Project, Rule } from '../types.js'
import type { Outcome, Verdict } from '../verdict.js'
import { Denials } from './denials.js'
import type { OnSlots } from './hold.js'
import { MessageTurns } from './message-turns.js'
import { MessageCounter } from './messages.js'
import { Overflow } from './overflow.js'
import { type DecideRequest, outcomeOf, type Question, type Questions } from './question.js'
import { isSkipped } from './store/groups.js'
import { type Answer, type Ask, type CounterStore, costOf, isChargedLater } from './store/store.js'
import { GatheredVerdict } from './verdict.js'
import { Turn } from './wait/turn.js'
import type { WaitQueues } from './wait/wait-queues.js'

export interface DeciderParts {
  readonly questions: Questions
  readonly store: CounterStore
  /** Milliseconds, from any origin. */
  now(): number
  readonly onSlots: OnSlots
  /** Called with what each rule says to each message of a WebSocket. */
  onMessage?(outcome: Outcome, project: Project): void
  /** Called when a rule could not be counted; does not change the answer. */
  onLost(error: unknown): void
  /** Remembered refusals; a new memory if none is given. */
  readonly denials?: Pick<Denials, 'empty' | 'recall' | 'remember' | 'forget'> | undefined
  /** Requests that wait; if it is absent none does. */
  readonly queues?: WaitQueues | undefined
}

export class Decider {
  readonly #parts: DeciderParts
  readonly #turns = new MessageTurns()
  readonly #denials: NonNullable<DeciderParts['denials']>
  readonly #overflow = new Overflow()
  readonly #onSlots: OnSlots

  constructor(parts: DeciderParts) {
    this.#parts = parts
    this.#denials = parts.denials ?? new Denials(parts.now)
    const { onSlots, queues } = parts
    this.#onSlots =
      queues === undefined
        ? onSlots
        : (rule, change, ending, hold) => {
            onSlots(rule, change, ending, hold)
            if (change === -1 && hold?.key !== undefined) queues.givenBack(hold.key)
          }
  }

  /** Returns a promise only if a remote store must be awaited: counting in this process costs no extra turn. */
  decide(request: DecideRequest): Verdict | Promise<Verdict> {
    const verdict = new GatheredVerdict(this.#onSlots)
    const { enforced, observed, turn } = this.#ask(request, verdict)
    const { id } = request.facts
    const isAsked = verdict.allowed && enforced.length > 0
    const begun = isAsked ? this.#begin(enforced, turn, verdict) : 'refused'
    if (begun === 'refused') return this.#observe(observed, verdict, id)
    if (turn !== undefined && begun === 'waits')
      return this.#await(turn, this.#observe(observed, verdict, id))
    return this.#enforce(enforced, observed, verdict, request, turn)
  }

  /**
   * The refusal of a request whose body has not been read, by rules that do not need it; undefined if they let it pass,
   * and then nothing is charged. The counters are only read first, because the charge of an admitted request is one step
   * for all of its rules.
   */
  refuseUnread(request: DecideRequest): Verdict | undefined | Promise<Verdict | undefined> {
    const { store } = this.#parts
    const { id } = request.facts
    const verdict = new GatheredVerdict(this.#onSlots)
    const { enforced, observed, turn } = this.#ask(request, verdict)
    const begun = verdict.allowed ? this.#begin(enforced, turn, verdict) : 'refused'
    if (begun === 'refused') return this.#observe(observed, verdict, id)
    if (begun === 'waits') return undefined
    const judge = (answers: readonly Answer[]) => {
      if (turn?.waitsAfter(answers)) return undefined
      if (!answers.every(({ granted }) => granted)) {
        this.#record(enforced, answers, verdict)
        return this.#observe(observed, verdict, id)
      }
      // There is room again since the counters were read.
      store.giveBack(enforced, answers)
      return undefined
    }
    const refuse = (seen: readonly Answer[]) => {
      if (seen.every(({ granted }) => granted) || turn?.waitsAfter(seen)) return undefined
      const answers = store.take(enforced, id)
      return answers instanceof Promise ? answers.then(judge) : judge(answers)
    }
    const seen = enforced.length === 0 ? [] : store.peek(enforced)
    return seen instanceof Promise ? seen.then(refuse) : refuse(seen)
  }

  /**
   * Counts the messages of the WebSocket that `request` opens, by those of its rules that count messages.
   *
   * @param current the rule in the mode that holds now
   */
  messagesOf(request: DecideRequest, current: (rule: Rule) => Rule): MessageCounter {
    return new MessageCounter(
      { ...this.#parts, denials: this.#denials, turns: this.#turns, current },
      request,
    )
  }

  /** Forgets that `key` was refused: something that counts by it was given back. */
  forget(key: string): void {
    this.#denials.forget(key)
    this.#parts.queues?.givenBack(key)
  }

  /**
   * The questions of a request's rules, and its turn if one of those lets it wait; outcomes that need no store go into the
   * verdict.
   */
  #ask(request: DecideRequest, verdict: GatheredVerdict) {
    const enforced: Question[] = []
    const observed: Question[] = []
    let mayWait = false
    for (let i = 0; i < request.matched.length; i += 1) {
      const matched = request.matched[i] as DecideRequest['matched'][number]
      const question = this.#parts.questions.of(matched, request, i)
      if (question === 'skip') {
        if (matched.rule.mode === 'enforce' && isUnlimited(matched.rule)) verdict.unlimited = matched.rule.id
        continue
      }
      if ('result' in question) verdict.add(question)
      else if (question.rule.mode !== 'enforce') observed.push(question)
      else {
        enforced.push(question)
        if (question.rule.waits !== undefined) mayWait = true
      }
    }
    return { enforced, observed, turn: mayWait ? this.#turnOf(enforced, request) : undefined }
  }

  #turnOf(enforced: readonly Question[], request: DecideRequest): Turn | undefined {
    const { queues, store } = this.#parts
    return queues && new Turn(enforced, request, { queues, store, denials: this.#denials })
  }

  /**
   * Without asking the store: whether it may be asked, the request waits, or it is refused by outcomes that go into the
   * verdict.
   */
  #begin(
    enforced: readonly Question[],
    turn: Turn | undefined,
    verdict: GatheredVerdict,
  ): 'asks' | 'waits' | 'refused' {
    if (turn === undefined) return this.#denied(enforced, verdict) ? 'refused' : 'asks'
    const begun = turn.begin()
    if (typeof begun === 'string') return begun
    this.#record(begun.questions, begun.answers, verdict)
    return 'refused'
  }

  /** Lets the request wait, and then records what was said last. */
  async #await(turn: Turn, verdict: GatheredVerdict): Promise<Verdict> {
    const { tried, waitedMs } = await turn.end()
    verdict.waitedMs = waitedMs
    this.#record(tried.questions, tried.answers, verdict)
    return verdict
  }

  #enforce(
    enforced: readonly Question[],
    observed: readonly Question[],
    verdict: GatheredVerdict,
    { facts: { id }, storeCalled }: DecideRequest,
    turn: Turn | undefined,
  ): Verdict | Promise<Verdict> {
    const { store } = this.#parts
    const beside: Question[] = []
    let asked = enforced
    for (const question of observed) {
      if (store.rides(question, enforced)) asked = [...asked, question]
      else beside.push(question)
    }
    const startedAt = storeCalled === undefined ? 0 : performance.now()
    const answers = store.take(asked, id)
    const remote = answers instanceof Promise
    const judge = (answers: readonly Answer[]) => {
      storeCalled?.(startedAt, remote)
      const own = enforced.length
      const waits = turn?.waitsAfter(answers.slice(0, own))
      if (waits) this.#record(asked.slice(own), answers.slice(own), verdict)
      else this.#record(asked, answers, verdict)
      // On a Cluster the project's slot counts nothing once another slot has refused.
      for (let i = own; i < asked.length; i += 1) {
        if (isSkipped(answers[i] as Answer)) beside.push(asked[i] as Question)
      }
      this.#observe(beside, verdict, id)
      return turn !== undefined && waits ? this.#await(turn, verdict) : verdict
    }
    return remote ? answers.then(judge) : judge(answers)
  }

  /** Counts report-only rules after the enforced verdict, which does not wait for them. */
  #observe(observed: readonly Question[], verdict: GatheredVerdict, id: string): GatheredVerdict {
    if (observed.length === 0) return verdict
    const waits: Promise<void>[] = []
    for (const question of observed) {
      if (this.#denied([question], verdict)) continue
      const asked = [question]
      const answers = this.#parts.store.take(asked, id)
      if (answers instanceof Promise) {
        waits.push(answers.then(given => this.#record(asked, given, verdict)))
      } else this.#record(asked, answers, verdict)
    }
    if (waits.length > 0) {
      verdict.settled = Promise.all(waits).then(
        () => {},
        error => this.#parts.onLost(error),
      )
    }
    return verdict
  }

  /** Writes the outcomes into the verdict, which then holds the slots that were taken. */
  #record(questions: readonly Question[], answers: readonly Answer[], verdict: GatheredVerdict): void {
    for (let i = 0; i < questions.length; i += 1) {
      const question = questions[i] as Question
      const answer = answers[i] as Answer
      if (isSkipped(answer)) continue
      if (!answer.granted) this.#denials.remember(question, answer)
      const outcome = outcomeOf(question, answer)
      const { rule, key, route, demand } = question
      if (demand.kind === 'slots' && rule.mode === 'report-only' && outcome.result === 'limited') {
        verdict.add(this.#overflow.entered(outcome, verdict))
      } else verdict.add(outcome)
      if (!answer.granted) continue
      const { release, onLost } = answer
      if (isChargedLater(demand)) this.#chargeLater(question, verdict)
      if (question.reserved !== undefined) this.#settleLater(question, answer, verdict, outcome)
      if (release !== undefined) verdict.hold(rule, release, { key, route, demand, onLost })
    }
  }

  /** Charges what the request costs once the upstream's response reveals it. */
  #chargeLater(question: Question, verdict: GatheredVerdict): void {
    verdict.onAnswer(answer => {
      const units = this.#parts.questions.lateUnits(question, answer)
      if (units >= 1) this.#parts.store.charge([{ ask: question, units }])
    })
  }

  /** Charges or gives back the difference between what the request has reserved and what it has cost, once it has ended. */
  #settleLater(question: Question, answer: Answer, verdict: GatheredVerdict, outcome: Outcome): void {
    const { questions, store } = this.#parts
    verdict.onSettle(ended => {
      const spent = questions.settledUnits(question, ended)
      outcome.spent = spent
      const over = spent - costOf(question.demand)
      if (over > 0) store.charge([{ ask: question, units: over }])
      if (over >= 0) return
      store.giveBack([ofCost(question, -over)], [answer])
      this.forget(question.key)
    })
  }

  /**
   * True if a remembered refusal still applies to one of the questions: the store is not asked, and that
   * outcome is recorded.
   */
  #denied(questions: readonly Question[], verdict: GatheredVerdict): boolean {
    if (this.#denials.empty) return false
    let denied = false
    for (const question of questions) {
      const refusal = this.#denials.recall(question)
      if (refusal === undefined) continue
      denied = true
      verdict.add(outcomeOf(question, refusal))
    }
    return denied
  }
}

/** The same ask for a part of what it has cost. */
function ofCost(ask: Ask, cost: number): Ask {
  return ask.demand.kind === 'slots' ? ask : { ...ask, demand: { ...ask.demand, cost } }
}
