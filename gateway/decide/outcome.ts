/** The answer of the counter store to one question, as the rule's outcome. */
import type { Demand, Outcome, Reading, Window } from '../types.js'
import type { Question } from './question.js'
import { chargeOf } from './store/meters.js'
import type { Answer, Count } from './store/store.js'

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
    const charge = chargeOf(demand)
    const cost = charge === 1 ? undefined : charge
    return { policy: id, quota, windowMs, used, left, cost, violated, resetMs, hidden }
  }
  const { name, ms: windowMs } = demand.windows[i] as Window
  return { policy: `${id}.${name}`, quota, windowMs, used, left, violated, resetMs }
}
