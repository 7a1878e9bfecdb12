/** Turns access decisions into outcomes like those of rules, for records, metrics and reports. */
import type { AccessMatch, Ruling } from '../policy/access.js'
import type { Facts, Project } from '../types.js'
import type { Judgement, Outcome } from '../verdict.js'

/** True when the request is refused. */
export function isDenied(ruling: Ruling | undefined): boolean {
  return ruling?.enforced?.entry.action === 'deny'
}

/** True when no bucket, slot or meter counts the request. */
export function isExempt(ruling: Ruling | undefined): boolean {
  return ruling?.enforced?.entry.action === 'exempt'
}

/** The verdict together with the access decisions before it; `verdict` is undefined if no rule was asked. */
export function judgementWith(
  ruling: Ruling | undefined,
  verdict: Judgement | undefined,
  { facts, project }: { readonly facts: Facts | undefined; readonly project?: Project | undefined },
): Judgement | undefined {
  if (ruling === undefined || facts === undefined) return verdict
  const outcomes = (match: AccessMatch | undefined): Outcome[] =>
    match === undefined ? [] : [outcomeOf(match, facts, project)]
  return {
    allowed: !isDenied(ruling) && (verdict?.allowed ?? true),
    outcomes: [...outcomes(ruling.enforced), ...(verdict?.outcomes ?? [])],
    reportOnly: [...(verdict?.reportOnly ?? []), ...outcomes(ruling.reported)],
  }
}

function outcomeOf({ entry, bits }: AccessMatch, facts: Facts, project: Project | undefined): Outcome {
  const { rule, action } = entry
  const result = action === 'deny' ? 'limited' : 'allowed'
  const key = bits < 0 ? (project?.id ?? '') : facts.network
  return { rule, route: '', key, result, store: 'memory', readings: [] }
}
