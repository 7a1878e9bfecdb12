/** The findings of lint in a valid configuration. */
import {
  type Config,
  isProjectLimits,
  type ProjectLimitsPolicy,
  type RulesPolicy,
} from '../../config/load.js'
import { formatPath, type Path, type Place } from '../../config/problem.js'
import type { Configuration } from '../../gateway/configured/load.js'

/** A warning is probably a mistake; a note points out a consequence. */
export type Severity = 'error' | 'warning' | 'note'

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

export type Lint = (subject: Subject) => Remark[]

export function subjectOf(loaded: Configuration, options: Pick<Subject, 'now' | 'reportOnlyDays'>): Subject {
  const { policies } = loaded.config
  return {
    loaded,
    limits: policies.filter(isProjectLimits),
    rules: policies.filter((policy): policy is RulesPolicy => !isProjectLimits(policy)),
    ...options,
  }
}

export function findingOf({ severity, file, path, message }: Remark, config: Config): Finding {
  return { severity, ...config.locate(file, path), path: formatPath(path), message }
}

/** `file:line:col path: warning: sentence`; for an error the word is omitted. */
export function formatFinding({ file, line, col, path, severity, message }: Finding): string {
  const word = severity === 'error' ? '' : ` ${severity}:`
  return `${file}:${line}:${col}${path && ` ${path}`}:${word} ${message}`
}
