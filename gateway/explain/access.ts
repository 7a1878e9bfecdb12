/** Access entries in an explanation. */

import { networkText } from '../../config/words/address.js'
import type { RuntimeEntry } from '../overrides/access-entry.js'
import type { AccessMatch, Ruling } from '../policy/access.js'
import type { AccessAction, Mode } from '../types.js'
import { type ExplainedAnswer, explainedForNow } from './explained.js'

export interface ExplainedAccess {
  readonly entry: string
  readonly action: AccessAction
  readonly mode: Mode
  /** Of a mode that the admin port has set: what the file says, and the path that set it. */
  readonly declared_mode?: Mode
  readonly mode_src?: string
  /** What of the entry the request is in: a project, or a network. */
  readonly project?: string
  readonly network?: string
  readonly src: string
  /** Set for entries of the admin port. */
  readonly why: string | null
  readonly set_by: string | null
  /** ISO 8601. */
  readonly until: string | null
}

/** @param runtime entries set on the admin port of a running gateway, by id */
export function explainedAccess(
  ruling: Ruling | undefined,
  runtime: ReadonlyMap<string, RuntimeEntry> = new Map(),
): ExplainedAccess[] {
  return [ruling?.enforced, ruling?.reported].flatMap(match => (match ? explainedMatch(match, runtime) : []))
}

function explainedMatch(
  { entry: { rule, action, until }, by }: AccessMatch,
  runtime: ReadonlyMap<string, RuntimeEntry>,
): ExplainedAccess {
  const { id, mode, source } = rule
  const said = source.line === undefined ? runtime.get(id) : undefined
  return {
    entry: id,
    action,
    mode,
    ...explainedForNow(rule),
    ...(typeof by === 'string' ? { project: by } : { network: networkText(by) }),
    src: source.line === undefined ? source.file : `${source.file}:${source.line}`,
    why: said?.why ?? null,
    set_by: said?.by ?? null,
    until: until === undefined ? null : new Date(until).toISOString(),
  }
}

/** Adds the access entries that refuse the request, or would refuse it, to the answer. */
export function withAccess(answer: ExplainedAnswer, ruling: Ruling | undefined): ExplainedAnswer {
  const refusing = (match: AccessMatch | undefined) =>
    match?.entry.action === 'deny' ? [match.entry.rule.id] : []
  return {
    ...answer,
    refused_by: [...refusing(ruling?.enforced), ...answer.refused_by],
    would_be_refused_by: [...answer.would_be_refused_by, ...refusing(ruling?.reported)],
  }
}
