/** All checks of a valid configuration, one line each. */
import type { Configuration } from '../../gateway/configured/load.js'
import { checkAccess } from './access.js'
import { checkBuckets } from './buckets.js'
import { type Finding, findingOf, type Lint, type Subject, subjectOf } from './finding.js'
import { checkGateway } from './gateway.js'
import { checkIdleRules } from './idle-rules.js'
import { checkKeys } from './keys.js'
import { checkObservation } from './observation.js'
import { checkQuotas } from './quotas.js'
import { checkReach } from './reach.js'
import { checkRules } from './rules.js'
import { checkTrials } from './trials.js'

const CHECKS: readonly Lint[] = [
  checkReach,
  checkBuckets,
  checkQuotas,
  checkTrials,
  checkRules,
  checkIdleRules,
  checkKeys,
  checkObservation,
  checkAccess,
  checkGateway,
]

/** Findings that are valid but probably unintended, or worth knowing; ordered by place. */
export function lint(loaded: Configuration, options: Pick<Subject, 'now' | 'reportOnlyDays'>): Finding[] {
  const subject = subjectOf(loaded, options)
  const findings = CHECKS.flatMap(check => check(subject)).map(remark => findingOf(remark, loaded.config))
  return findings.sort(
    (a, b) => (a.file < b.file ? -1 : a.file > b.file ? 1 : 0) || a.line - b.line || a.col - b.col,
  )
}
