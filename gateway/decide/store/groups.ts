/** Asks of one group are granted together or not at all; these put together what several stores said to them. */
import {
  type Answer,
  type Ask,
  type Count,
  costOf,
  type Granted,
  isChargedLater,
  type Refused,
  uncounted,
} from './store.js'

/** The elements at these indexes. */
export function at<T>(list: readonly T[], places: readonly number[]): T[] {
  return places.map(i => list[i] as T)
}

/**
 * If one ask of a group was refused, so are the others, and hold nothing; `undo` is called for those that were granted.
 */
export function grantWholeGroups(
  asks: readonly Ask[],
  answers: readonly Answer[],
  undo?: (ask: Ask, answer: Granted) => void,
): Answer[] {
  const refused = refusedGroups(asks, answers)
  return answers.map((answer, i) => {
    const ask = asks[i] as Ask
    if (!answer.granted || !refused.has(ask.group)) return answer
    undo?.(ask, answer)
    const counts = withoutOwn(ask, answer.counts)
    return { granted: false, unavailable: false, store: answer.store, counts }
  })
}

/** What the counts of a granted ask are once its own charge has been undone. */
function withoutOwn({ demand }: Ask, counts: readonly Count[]): Count[] {
  const own = isChargedLater(demand) ? 0 : costOf(demand)
  return counts.map(count => {
    if (count.used === undefined) return count
    const used = Math.max(0, count.used - own)
    const left = Math.max(0, count.quota - used)
    return { ...count, used, left, violated: false, resetMs: used === 0 ? 0 : count.resetMs }
  })
}

/** Groups with a refused ask; an ask without an answer yet is not refused. */
export function refusedGroups(asks: readonly Ask[], answers: readonly (Answer | undefined)[]): Set<number> {
  return new Set(asks.filter((_, i) => answers[i]?.granted === false).map(ask => ask.group))
}

/** Refused because another part of its group was refused first. */
export function notAsked(ask: Ask): Refused {
  return { granted: false, unavailable: false, skipped: true, store: 'none', counts: uncounted(ask) }
}

/**
 * The answers in the order of the asks: the known ones, and those `given` to the `rest`. If one ask of a group was
 * refused, so are the others: `undo` is called for those that were granted.
 */
export function together(
  asks: readonly Ask[],
  known: readonly (Answer | undefined)[],
  rest: readonly Ask[],
  given: readonly Answer[],
  undo?: (ask: Ask, answer: Granted) => void,
): Answer[] {
  const answers = asks.map((ask, i) => known[i] ?? given[rest.indexOf(ask)] ?? notAsked(ask))
  return grantWholeGroups(asks, answers, undo)
}

/** True if the store was not asked, because another ask of the group was refused first. */
export function isSkipped(answer: Answer): boolean {
  return !answer.granted && !answer.unavailable && answer.skipped === true
}
