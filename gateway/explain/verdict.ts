/** What the rules say to a request, by the code that decides real ones. Changes no counter. */
import { type Counters, lookingDecider } from '../decide/dry-run.js'
import { needsBody } from '../decide/email-or-flow.js'
import type { DecideRequest } from '../decide/question.js'
import { methodsOf, type Policy } from '../policy/policy.js'
import type { Verdict } from '../types.js'
import { type ExplainedRule, explainedRule, outcomeOf } from './explained.js'

/** The verdict on a request, and what each of its rules says, those included that a refusal leaves unasked. */
export async function verdictOn(
  request: DecideRequest,
  policy: Policy,
  counters: Counters,
): Promise<{ verdict: Verdict; rules: ExplainedRule[] }> {
  const verdict = await whole(request, counters)
  const rules: ExplainedRule[] = []
  for (const one of request.matched) {
    const outcome =
      outcomeOf(verdict, one) ?? outcomeOf(await look({ ...request, matched: [one] }, counters), one)
    const endpoint = policy.rules.find(({ rule }) => rule === one.rule)
    const methods = endpoint && methodsOf(endpoint)
    rules.push(explainedRule(one, request, outcome, counters.questions, methods))
  }
  return { verdict, rules }
}

/** As in the pipeline, rules that do not need the body are asked before it is read. */
async function whole(request: DecideRequest, counters: Counters): Promise<Verdict> {
  const { facts, bodyPrefix } = request
  if (bodyPrefix === undefined) return look(request, counters)
  const matched = request.matched.filter(one => !needsBody(one, facts))
  const refusal = await lookingDecider(counters).refuseUnread({ ...request, matched, bodyPrefix: undefined })
  await refusal?.settled
  return refusal ?? look(request, counters)
}

async function look(request: DecideRequest, counters: Counters): Promise<Verdict> {
  const verdict = await lookingDecider(counters).decide(request)
  await verdict.settled
  return verdict
}
