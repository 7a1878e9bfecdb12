/** All checks of a valid configuration, and what they find: probable mistakes, and consequences worth knowing. */
import { isProjectLimits, type ProjectLimitsPolicy, type RulesPolicy } from '../../config/load.js'
import { formatPath, type Path, type Place } from '../../config/problem.js'
import type { Configuration } from '../../gateway/configured/load.js'
import { checkAccess } from './access.js'
import { checkBuckets } from './buckets.js'
import { checkCallers } from './callers.js'
import { checkCertificateDates } from './certificates.js'
import { checkGateway } from './gateway.js'
import { checkCalls } from './json-rpc.js'
import { checkKeys } from './keys.js'
import { checkLifetimes } from './lifetime.js'
import { checkMessages } from './messages.js'
import { checkNotify } from './notify.js'
import { checkObservation } from './observation.js'
import { checkQuotas } from './quotas.js'
import { checkReach } from './reach.js'
import { checkSettling } from './reserve.js'
import { checkIdleRules, checkRules } from './rules.js'
import { checkWaits } from './waits.js'

const CHECKS: readonly ((subject: Subject) => Remark[])[] = [
  checkReach,
  checkBuckets,
  checkQuotas,
  checkLifetimes,
  checkRules,
  checkIdleRules,
  checkKeys,
  checkCalls,
  checkNotify,
  checkSettling,
  checkMessages,
  checkObservation,
  checkAccess,
  checkGateway,
  checkCallers,
  checkCertificateDates,
  checkWaits,
]

/** Findings that are valid but probably unintended, or worth knowing; ordered by place. */
export function lint(loaded: Configuration, options: Pick<Subject, 'now' | 'reportOnlyDays'>): Finding[] {
  const { policies, locate } = loaded.config
  const subject: Subject = {
    loaded,
    limits: policies.filter(isProjectLimits),
    rules: policies.filter((policy): policy is RulesPolicy => !isProjectLimits(policy)),
    ...options,
  }
  return CHECKS.flatMap(check => check(subject))
    .map(({ severity, file, path, message }) => {
      return { severity, ...locate(file, path), path: formatPath(path), message }
    })
    .sort((a, b) => (a.file < b.file ? -1 : a.file > b.file ? 1 : 0) || a.line - b.line || a.col - b.col)
}

/** A warning is probably a mistake; a note points out a consequence. */
type Severity = 'error' | 'warning' | 'note'

export interface Finding extends Place {
  readonly severity: Severity
  /** Dotted path of the value; '' for the whole file. */
  readonly path: string
  readonly message: string
}

/** A finding whose line and column are not looked up yet. */
export interface Remark {
  readonly severity: 'warning' | 'note'
  readonly file: string
  readonly path: Path
  readonly message: string
}

/** The input of the checks. */
export interface Subject {
  readonly loaded: Configuration
  readonly limits: readonly ProjectLimitsPolicy[]
  readonly rules: readonly RulesPolicy[]
  /** Milliseconds since the epoch. */
  readonly now: number
  /** Days for which a rule may be report-only without a warning. */
  readonly reportOnlyDays: number
}

/** `file:line:col path: warning: sentence`; for an error the word is omitted. */
export function formatFinding({ file, line, col, path, severity, message }: Finding): string {
  const word = severity === 'error' ? '' : ` ${severity}:`
  return `${file}:${line}:${col}${path && ` ${path}`}:${word} ${message}`
}
