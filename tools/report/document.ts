/** The report as plain data: what `--json` prints, and what text and page are made from. Additions keep `version`. */

import type { Dropped } from '../log/decision-record.js'
import type { Distinct } from '../log/distinct.js'
import { describeIntake, type Intake, isoTime } from '../log/intake.js'
import type { Gathered } from './gather.js'
import { promotionOf } from './promotion.js'
import type { RuleTally } from './tally.js'

export type ReportDocument = ReturnType<typeof documentOf>
export type RuleReport = ReturnType<typeof ruleReport>

const TOP_PROJECTS = 5

export function documentOf(gathered: Gathered, intake: Intake, dropped: Dropped, percentile: number) {
  const { tallies, allowed, sample, beyond } = gathered
  return {
    version: 1,
    input: describeIntake(intake),
    decisions: {
      /** What `log.decisions` was, as far as the log shows. */
      logged: allowed === 0 ? ('refused' as const) : sample === 1 ? ('all' as const) : sample,
      /** Records that the gateway left out in floods, by rule. */
      dropped: Object.fromEntries([...dropped].sort()),
      /** Records of rules beyond the number that is tracked. */
      beyond,
    },
    percentile,
    rules: tallies.map(tally => ruleReport(tally, gathered)),
    promotions: tallies
      // An entry of kind access refuses all that it names: how many those are is told above. A rule that only reports for now
      // is no candidate: its file enforces it.
      .filter(tally => tally.mode === 'report-only' && tally.kind !== 'access' && tally.modeSrc === undefined)
      .map(tally => promotionOf(tally, gathered, percentile, dropped.get(tally.rule) ?? 0)),
  }
}

function ruleReport(tally: RuleTally, { allowed, demand }: Gathered) {
  const { rule, kind, mode, src, refused, wouldRefuse, keys, projects, byProject, peaks, hours } = tally
  const seen = (number: number) => (allowed > 0 ? Math.round(number) : null)
  return {
    rule,
    kind,
    mode,
    /** Where the admin port had set it; null where the files had. */
    modeSrc: tally.modeSrc ?? null,
    src,
    /** Requests it was asked about, estimated where only a share is logged; null when the log does not tell. */
    seen: seen(tally.seen),
    refused,
    wouldRefuse,
    /** Requests that passed uncounted while the store was away, and that were refused for it. */
    uncounted: { passed: tally.passedUncounted, refused: tally.refusedUncounted },
    /** Those it refused or would have refused. */
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

/** A number of distinct things; beyond 4,096 an estimate, usually within 2 %. */
function counted({ count, isExact }: Distinct) {
  return { count, exact: isExact }
}
