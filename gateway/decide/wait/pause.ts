/** What a refusal means for a request that may wait: how long, and for which of its rules. Pure. */
import type { Question } from '../question.js'
import { type Answer, sameQuota, uncounted } from '../store/store.js'

/** What the store said about these questions at a time. */
export interface Tried {
  readonly questions: readonly Question[]
  /** In the order of the questions. */
  readonly answers: readonly Answer[]
  /** Milliseconds, by the clock of the queues. */
  readonly at: number
}

/** One refusal of a key. */
export interface Refusal {
  readonly question: Question
  readonly answer: Answer
  readonly at: number
}

export interface Pause {
  /** Of each rule that refuses. */
  readonly refusals: readonly Refusal[]
  /** When its windows have room, if nobody else takes it; `-Infinity` if none refuses. */
  readonly notBefore: number
  /** When to look for a slot that another gateway may have given back; `-Infinity` if no in-flight rule refuses. */
  readonly pollAt: number
  /** The end of its wait. */
  readonly until: number
}

/** While a request waits for a slot, Redis is asked about as often, the last time at the end of the wait. */
const POLLS = 4

const SHORTEST_MS = 1

/**
 * How a refused request waits; undefined if one of the rules that refuse it does not let it wait for as long as it takes.
 *
 * @param since when the request began to wait
 */
export function pauseOf({ questions, answers, at }: Tried, since: number): Pause | undefined {
  const refusals: Refusal[] = []
  let resetAt = at
  let notBefore = Number.NEGATIVE_INFINITY
  let pollAt = Number.NEGATIVE_INFINITY
  let until = Number.POSITIVE_INFINITY
  for (const [i, question] of questions.entries()) {
    const answer = answers[i] as Answer
    if (answer.unavailable) return undefined
    const resets = answer.counts.flatMap(({ violated, resetMs }) => (violated ? [resetMs] : []))
    if (answer.granted || resets.length === 0) continue
    const { rule, demand } = question
    if (rule.waits === undefined) return undefined
    const refusal: Refusal = { question, answer, at }
    refusals.push(refusal)
    until = Math.min(until, since + rule.waits.ms)
    if (demand.kind === 'slots') {
      // In this process every slot that is given back is seen.
      const next = answer.store === 'memory' ? Number.POSITIVE_INFINITY : at + rule.waits.ms / POLLS
      pollAt = Math.max(pollAt, next)
    } else {
      resetAt = Math.max(resetAt, at + Math.max(...resets))
      notBefore = Math.max(notBefore, roomAt(refusal))
    }
  }
  if (refusals.length === 0 || at >= until || resetAt > until) return undefined
  return { refusals, notBefore: Math.min(notBefore, until), pollAt: pollLast(pollAt, until), until }
}

/** When the windows of a key have room after a refusal. */
export function roomAt({ answer, at }: Refusal): number {
  const resets = answer.counts.map(({ violated, resetMs }) => (violated ? resetMs : 0))
  const askAgainMs = 'askAgainMs' in answer ? (answer.askAgainMs ?? 0) : 0
  return at + Math.max(SHORTEST_MS, askAgainMs, ...resets)
}

/** The last look is at the end of the wait; without polls there is none. */
function pollLast(pollAt: number, until: number): number {
  return pollAt === Number.POSITIVE_INFINITY ? pollAt : Math.min(pollAt, until)
}

/** The same as of `now`: the resets of refusals have come nearer. */
export function agedTo(now: number, { questions, answers, at }: Tried): Tried {
  const elapsed = now - at
  if (elapsed <= 0) return { questions, answers, at }
  const aged = answers.map((answer): Answer => {
    const counts = answer.counts.map(count => ({ ...count, resetMs: Math.max(0, count.resetMs - elapsed) }))
    return { ...answer, counts }
  })
  return { questions, answers: aged, at: now }
}

/** What a request is told that was never asked about itself: the refusal of another that waits for the same. */
export function refusedLike({ answer, at, question: other }: Refusal, question: Question): Refusal {
  if (sameQuota(other.demand, question.demand)) return { question, answer, at }
  // The limit was edited since.
  const counts = uncounted(question).map(count => ({ ...count, violated: true }))
  return { question, answer: { granted: false, unavailable: false, store: answer.store, counts }, at }
}

/**
 * How long after the first who waits for a key another can be admitted at the earliest, in milliseconds.
 *
 * @param ahead units that the first one and others between them ask for
 */
export function behindFirst(
  { question, answer }: Refusal,
  first: number,
  ahead: number,
  own: number,
): number {
  const { demand } = question
  if (demand.kind !== 'windows') return 0
  let longest = 0
  for (const [i, { quota, ms, algorithm }] of demand.windows.entries()) {
    if (!answer.counts[i]?.violated) continue
    const after =
      algorithm === 'token-bucket'
        ? ((ahead + own - first) * ms) / quota
        : Math.floor((ahead + own - 1) / quota) * ms
    longest = Math.max(longest, after)
  }
  return longest
}
