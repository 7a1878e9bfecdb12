/** The report as plain data: what `--json` prints, and what text and page are made from. Additions keep `version`. */

import type { Dropped } from '../log/decision-record.js'
import type { Distinct } from '../log/distinct.js'
import { describeIntake, isoTime, type LogIntake } from '../log/intake.js'
import type { Gathered } from './gather.js'
import { promotionOf } from './promotion.js'
import type { RuleTally } from './tally.js'

export type ReportDocument = ReturnType<typeof documentOf>
export type RuleReport = ReturnType<typeof ruleReport>

const TOP_PROJECTS = 5

export function documentOf(gathered: Gathered, intake: LogIntake, dropped: Dropped, percentile: number) {
  const { tallies, allowed, sample, beyond } = gathered
  return {
    version: 1,
    input: describeIntake(intake),
    decisions: {
      /** The setting `log.decisions`, as far as the log shows it. */
      logged: allowed === 0 ? ('refused' as const) : sample === 1 ? ('all' as const) : sample,
      /** Records that the gateway left out in floods, by rule. */
      dropped: Object.fromEntries([...dropped].sort()),
      /** Records of rules beyond the number that is tracked. */
      beyond,
    },
    percentile,
    rules: tallies.map(tally => ruleReport(tally, gathered, dropped.has(tally.rule))),
    promotions: tallies
      // An access entry refuses everything it names, as counted above. A rule that is report-only just for now is no
      // candidate: its file enforces it.
      .filter(tally => tally.mode === 'report-only' && tally.kind !== 'access' && tally.modeSrc === undefined)
      .map(tally => promotionOf(tally, gathered, percentile, dropped.get(tally.rule) ?? 0)),
  }
}

/** @param isCut whether the log left out records of the rule in floods */
function ruleReport(tally: RuleTally, { allowed, sample, demand }: Gathered, isCut: boolean) {
  const { rule, kind, mode, src, refused, wouldRefuse, keys, projects, byProject, peaks, hours } = tally
  const seen = (number: number) => (allowed > 0 ? Math.round(number) : null)
  const showsAll = allowed > 0 && sample === 1 && !isCut
  return {
    rule,
    kind,
    mode,
    /** The admin API path by which the mode was set; null when it comes from the files. */
    modeSrc: tally.modeSrc ?? null,
    src,
    /** Requests it applied to, estimated if only a share is logged; null when the log does not show it. */
    seen: seen(tally.seen),
    refused,
    wouldRefuse,
    /** Requests that passed uncounted while the store was unavailable, and those refused for that reason. */
    uncounted: { passed: tally.passedUncounted, refused: tally.refusedUncounted },
    /** Keys that it refused or would have refused. */
    keys: counted(keys),
    projects: {
      ...counted(projects),
      top: [...byProject]
        .sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1))
        .slice(0, TOP_PROJECTS)
        .map(([project, times]) => ({ project, refused: times })),
    },
    peaks: [...peaks.values()].map(({ policy, quota, attempted: counted, windowMs }) => {
      // Most counters stop at their quota, but demand under a report-only rule is counted beyond it, too.
      const most = Math.max(counted, demand.percentile(policy, 100) ?? 0)
      /** Null when the log lacks requests that were part of the demand. */
      const attempted = showsAll ? most : null
      return { policy, quota, used: Math.min(counted, quota), attempted, windowMs }
    }),
    hours: [...hours]
      .sort(([a], [b]) => a - b)
      .map(([start, hour]) => ({ hour: isoTime(start) as string, ...hour, seen: seen(hour.seen) })),
  }
}

/** The number of distinct items; beyond 4,096 an estimate, usually within 2 %. */
function counted({ count, isExact }: Distinct) {
  return { count, exact: isExact }
}
