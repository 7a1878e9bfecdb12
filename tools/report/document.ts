/**
 * The report as plain data: what `--json` prints, and what text and page are made from, with the sentences that both
 * use. Additions keep `version`.
 */
import { waitText } from '../../gateway/forward/units.js'
import type { Dropped } from '../log/decision-record.js'
import { describeIntake, type IntakeDocument, isoTime, type LogIntake } from '../log/intake.js'
import { count, grouped, percent } from '../text.js'
import type { Gathered } from './gather.js'
import { type Promotion, promotionOf, type Suggestion } from './promotion.js'
import type { Distinct, RuleTally } from './tally.js'

export interface ReportDocument {
  readonly version: 1
  readonly input: IntakeDocument
  readonly decisions: {
    /** The setting `log.decisions`, as far as the log shows it: the share of admitted requests, from 0 to 1, or a word. */
    readonly logged: 'refused' | 'all' | number
    /** Records that the gateway left out in floods, by rule. */
    readonly dropped: Readonly<Record<string, number>>
    /** Records of rules beyond the number that is tracked. */
    readonly beyond: number
    /** Records of requests that a limit decided which the admin port had set for their project. */
    readonly negotiated: number
  }
  /** Of its requests, the percentage that a rule must let pass to be safe. */
  readonly percentile: number
  readonly rules: readonly RuleReport[]
  readonly promotions: readonly Promotion[]
}

/** What a rule did. Numbers are of requests, unless they say otherwise. */
export interface RuleReport {
  readonly rule: string
  readonly kind: string
  readonly mode: RuleTally['mode']
  /** The admin API path by which the mode was set; null when it comes from the files. */
  readonly modeSrc: string | null
  /** `file:line` of the rule; null when the log does not say. */
  readonly src: string | null
  /** Requests it applied to, estimated if only a share is logged; null when the log does not show it. */
  readonly seen: number | null
  readonly refused: number
  readonly wouldRefuse: number
  /** Requests that passed uncounted while the store was unavailable, and those refused for that reason. */
  readonly uncounted: { readonly passed: number; readonly refused: number }
  /** Keys that it refused or would have refused. */
  readonly keys: DistinctCount
  readonly projects: DistinctCount & {
    readonly top: readonly { readonly project: string; readonly refused: number }[]
  }
  readonly peaks: readonly PeakReport[]
  readonly hours: readonly HourReport[]
}

/** The number of distinct items; beyond 4,096 an estimate, usually within 2 %. */
export interface DistinctCount {
  readonly count: number
  readonly exact: boolean
}

/** The highest use of a window. */
export interface PeakReport {
  /** The window, as in the response field RateLimit. */
  readonly policy: string
  readonly quota: number
  readonly used: number
  /** The demand, beyond the quota, too; null when the log lacks requests that were part of it. */
  readonly attempted: number | null
  /** Null for slots and lifetime windows. */
  readonly windowMs: number | null
  readonly lifetime?: boolean
}

export interface HourReport {
  /** Its beginning, ISO 8601. */
  readonly hour: string
  readonly seen: number | null
  readonly refused: number
  readonly wouldRefuse: number
}

const TOP_PROJECTS = 5

export function documentOf(
  gathered: Gathered,
  intake: LogIntake,
  dropped: Dropped,
  percentile: number,
): ReportDocument {
  const { tallies, allowed, sample, beyond, negotiated } = gathered
  return {
    version: 1,
    input: describeIntake(intake),
    decisions: {
      logged: allowed === 0 ? ('refused' as const) : sample === 1 ? ('all' as const) : sample,
      dropped: Object.fromEntries([...dropped].sort()),
      beyond,
      negotiated,
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
function ruleReport(tally: RuleTally, { allowed, sample, demand }: Gathered, isCut: boolean): RuleReport {
  const { rule, kind, mode, src, refused, wouldRefuse, keys, projects, byProject, peaks, hours } = tally
  const seen = (number: number) => (allowed > 0 ? Math.round(number) : null)
  const showsAll = allowed > 0 && sample === 1 && !isCut
  return {
    rule,
    kind,
    mode,
    modeSrc: tally.modeSrc ?? null,
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
    peaks: [...peaks.values()].map(({ policy, quota, attempted: counted, windowMs, lifetime }) => {
      // Most counters stop at their quota, but demand under a report-only rule is counted beyond it, too.
      const most = Math.max(counted, demand.percentile(policy, 100) ?? 0)
      const attempted = showsAll ? most : null
      const used = Math.min(counted, quota)
      return { policy, quota, used, attempted, windowMs, ...(lifetime && { lifetime }) }
    }),
    hours: [...hours]
      .sort(([a], [b]) => a - b)
      .map(([start, hour]) => ({ hour: isoTime(start) as string, ...hour, seen: seen(hour.seen) })),
  }
}

function counted({ count, isExact }: Distinct): DistinctCount {
  return { count, exact: isExact }
}

/** What the log contains, and what it left out. */
export function loggedSentences({ decisions }: ReportDocument): string {
  const { logged, dropped, beyond, negotiated } = decisions
  const sentences = [
    logged === 'refused'
      ? 'The log holds refusals only.'
      : logged === 'all'
        ? 'The log holds all decisions.'
        : `The log holds every refusal and ${percent(logged)} of what was admitted: numbers of requests are estimates.`,
  ]
  for (const [rule, lines] of Object.entries(dropped)) {
    sentences.push(`In floods it left out ${count(lines, 'record')} of ${rule}.`)
  }
  if (beyond > 0) sentences.push(`${count(beyond, 'record')} name more rules than are told apart.`)
  if (negotiated > 0)
    sentences.push(`Limits negotiated on the admin port decided ${count(negotiated, 'request')} of it.`)
  return sentences.join(' ')
}

export function suggestionSentence(
  { policy, windowMs, quota, suggested }: Suggestion,
  percentile: number,
): string {
  const window = windowMs === null ? 'at once' : `in ${windowWords(windowMs)}`
  return (
    `A quota of ${grouped(suggested)} ${window} would have had room for ${percentile} % of the requests ` +
    `(${policy} is ${grouped(quota)}).`
  )
}

/** The heading of the promotions. */
export function promotionsTitle({ promotions }: ReportDocument): string {
  const isPlain = promotions.every(({ what }) => what === 'rule')
  return isPlain
    ? 'Report-only rules: safe to enforce?'
    : 'Report-only rules, trials and shares: safe to go on?'
}

/** What a rule did inside the share for which it is enforced. */
export function insideSentence({ enforcedFor, inside }: Promotion): string {
  if (inside === null) return ''
  const of = inside.seen === null ? '' : ` of ${count(inside.seen, 'request')}`
  return `It is enforced for ${enforcedFor}%: there it refused ${grouped(inside.refused)}${of}.`
}

/** `60 s`, `1 h`, `31 days`, or for slots `at once`, for a lifetime window `in all`. */
export function windowWords(windowMs: number | null, lifetime = false): string {
  if (lifetime) return 'in all'
  return windowMs === null ? 'at once' : waitText(windowMs / 1000).replace(/^1 min$/, '60 s')
}
