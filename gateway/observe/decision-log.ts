/** Observer: writes decision records to the log, and limits their number in a flood. */
import type { Observer } from '../plugin.js'
import type { Log } from '../types.js'
import type { Finished } from '../verdict.js'
import { LINES_PER_SECOND, LineBudget } from './log-limits.js'
import { decisionRecords, passedUncounted } from './record.js'
import type { Redactor } from './redact.js'

/** Which decisions are logged besides the refused ones: none, all, or a share of the allowed ones. */
export type LoggedDecisions = 'refused' | 'all' | number

/**
 * At most 100 lines a second are written per rule, then one line with the number of those dropped. Decisions chosen by
 * the setting are not limited: an operator who asks for all must get all.
 */
export function decisionLog(decisions: LoggedDecisions, redactor: Redactor, log: Log): Observer {
  const share = decisions === 'refused' ? 0 : decisions === 'all' ? 1 : decisions
  const budget = new LineBudget((rule, dropped) => {
    log.warn({ rule, dropped, per_second: LINES_PER_SECOND }, 'decisions dropped')
  })
  return {
    finished(event) {
      const chosen = share > 0 && Math.random() < share
      if (!chosen && isPlainlyAllowed(event)) return
      const sample = chosen ? share : undefined
      const wants = (rule: string) => chosen || budget.spend(rule)
      for (const record of decisionRecords(event, { redactor, sample, wants })) log.info(record, 'decision')
    },
    close: async () => budget.close(),
  }
}

/** Recognizes the usual case without building a record. */
function isPlainlyAllowed({ verdict, messages }: Finished): boolean {
  if (messages?.some(({ refused }) => refused > 0)) return false
  if (verdict === undefined) return true
  if (!verdict.allowed || verdict.outcomes.some(passedUncounted)) return false
  return !verdict.reportOnly.some(({ result }) => result === 'limited')
}
