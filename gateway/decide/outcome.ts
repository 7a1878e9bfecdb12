/** Turns the counter store's answer to a question into the rule's outcome. */
import type { Demand, Outcome, Reading, Window } from '../types.js'
import type { Question } from './question.js'
import type { Answer, Count } from './store/store.js'
import { lengthAt } from './windows/calendar.js'

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
  const { name, ms, calendar } = demand.windows[i] as Window
  const { cost } = demand
  if (calendar === undefined) {
    return { policy: `${id}.${name}`, quota, windowMs: ms, used, left, violated, resetMs, cost }
  }
  // If no store counted, the current period is that of this process's clock.
  const windowMs = count.windowMs ?? lengthAt(calendar, Date.now())
  return { policy: `${id}.${name}`, quota, windowMs, calendar, used, left, violated, resetMs, cost }
}
