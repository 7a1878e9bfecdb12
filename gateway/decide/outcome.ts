/** The answer of the counter store to one question, as the rule's outcome. */
import type { Outcome, Reading, Window } from '../types.js'
import type { Question } from './question.js'
import type { Answer } from './store/store.js'

/** Within a refused group a rule that is not violated itself counts as allowed: it was not the reason. */
export function outcomeOf({ rule, route, key, demand }: Question, answer: Answer): Outcome {
  let limited = false
  for (const count of answer.counts) if (count.violated) limited = true
  const result = answer.unavailable ? 'unavailable' : limited ? 'limited' : 'allowed'
  return { rule, route, key, result, store: answer.store, readings: readingsOf(rule.id, demand, answer) }
}

function readingsOf(id: string, demand: Question['demand'], { counts }: Answer): Reading[] {
  return counts.map(({ quota, used, left, violated, resetMs }, i) => {
    if (demand.kind === 'slots') return { policy: id, quota, used, left, violated, resetMs }
    if (demand.kind === 'meter') {
      const { ms: windowMs, hidden } = demand
      return { policy: id, quota, windowMs, used, left, violated, resetMs, hidden }
    }
    const { name, ms: windowMs } = demand.windows[i] as Window
    return { policy: `${id}.${name}`, quota, windowMs, used, left, violated, resetMs }
  })
}
