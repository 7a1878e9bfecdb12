/** The report as plain data: what `--json` prints, and what text and page are made from. Additions keep `version`. */

import type { Dropped } from '../log/decision-record.js'
import type { Distinct } from '../log/distinct.js'
import { describeIntake, type Intake, type IntakeDocument, isoTime } from '../log/intake.js'
import type { Gathered } from './gather.js'
import { type Promotion, promotionOf } from './promotion.js'
import type { RuleTally } from './tally.js'

export interface ReportDocument {
  readonly version: 1
  readonly input: IntakeDocument
  readonly decisions: Decisions
  readonly percentile: number
  readonly rules: readonly RuleReport[]
  readonly promotions: readonly Promotion[]
}

interface Decisions {
  /** What `log.decisions` was, as far as the log shows. */
  readonly logged: 'refused' | 'all' | number
  /** Records that the gateway left out in floods, by rule. */
  readonly dropped: Readonly<Record<string, number>>
  /** Records of rules beyond the number that is told apart. */
  readonly beyond: number
}

export interface RuleReport {
  readonly rule: string
  readonly kind: string
  readonly mode: 'enforce' | 'report-only'
  readonly src: string | null
  /** Requests it was asked about, estimated where only a share is logged; null when the log does not tell. */
  readonly seen: number | null
  readonly refused: number
  readonly wouldRefuse: number
  /** Requests that passed uncounted while the store was away, and that were refused for it. */
  readonly uncounted: { readonly passed: number; readonly refused: number }
  /** Those it refused or would have refused. */
  readonly keys: Counted
  readonly projects: Counted & {
    readonly top: readonly { readonly project: string; readonly refused: number }[]
  }
  readonly peaks: readonly {
    readonly policy: string
    /** What may be spent in one window, or held at once. */
    readonly quota: number
    /** The most that was counted: never more than the quota. */
    readonly used: number
    /** The most that was asked for, refused or not. */
    readonly attempted: number
    readonly windowMs: number | null
  }[]
  readonly hours: readonly {
    readonly hour: string
    readonly seen: number | null
    readonly refused: number
    readonly wouldRefuse: number
  }[]
}

/** A number of distinct things; beyond 4,096 an estimate, usually within 2 %. */
interface Counted {
  readonly count: number
  readonly exact: boolean
}

const TOP_PROJECTS = 5

export function documentOf(
  gathered: Gathered,
  intake: Intake,
  dropped: Dropped,
  percentile: number,
): ReportDocument {
  const { tallies, allowed, sample, beyond } = gathered
  return {
    version: 1,
    input: describeIntake(intake),
    decisions: {
      logged: allowed === 0 ? 'refused' : sample === 1 ? 'all' : sample,
      dropped: Object.fromEntries([...dropped].sort()),
      beyond,
    },
    percentile,
    rules: tallies.map(tally => ruleReport(tally, gathered)),
    promotions: tallies
      .filter(tally => tally.mode === 'report-only')
      .map(tally => promotionOf(tally, gathered, percentile, dropped.get(tally.rule) ?? 0)),
  }
}

function ruleReport(tally: RuleTally, { allowed, demand }: Gathered): RuleReport {
  const { rule, kind, mode, src, refused, wouldRefuse, keys, projects, byProject, peaks, hours } = tally
  const seen = (number: number) => (allowed > 0 ? Math.round(number) : null)
  return {
    rule,
    kind,
    mode,
    src,
    seen: seen(tally.seen),
    refused,
    wouldRefuse,
    uncounted: { passed: tally.passedUncounted, refused: tally.refusedUncounted },
    keys: counted(keys),
    projects: {
      ...counted(projects),
      top: [...byProject]
        .sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1))
        .slice(0, TOP_PROJECTS)
        .map(([project, times]) => ({ project, refused: times })),
    },
    peaks: [...peaks.values()].map(({ policy, quota, attempted: counted, windowMs }) => {
      // Most counters stop at their quota; what a report-only rule is asked for is counted beyond it, too.
      const attempted = Math.max(counted, demand.percentile(policy, 100) ?? 0)
      return { policy, quota, used: Math.min(attempted, quota), attempted, windowMs }
    }),
    hours: [...hours]
      .sort(([a], [b]) => a - b)
      .map(([start, hour]) => ({ hour: isoTime(start) as string, ...hour, seen: seen(hour.seen) })),
  }
}

function counted({ count, isExact }: Distinct): Counted {
  return { count, exact: isExact }
}
