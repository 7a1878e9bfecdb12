/** Decides whether it is safe to enforce a report-only rule, to make a trial the quota, or to raise a share. */
import { ownerOfTrial } from '../../config/words/share.js'
import { count, grouped, percent } from '../text.js'
import type { Gathered } from './gather.js'
import type { RuleTally } from './tally.js'

/** Whether a rule, trial or share is ready to be enforced, by what the log shows. */
export interface Promotion {
  readonly rule: string
  readonly kind: string
  /** What is on trial: a report-only rule, a trial beside a quota, or a rule outside its share. */
  readonly what: keyof typeof SAFE_TO
  /** Percentage of its keys for which it is enforced; null when it is not enforced for a share. */
  readonly enforcedFor: number | null
  /** What it did inside its share; null when it has none. */
  readonly inside: ShareTally | null
  readonly safe: boolean
  /** `safe` with the reasons, as a sentence. */
  readonly verdict: string
  /** Days that the log shows of it, to two digits. */
  readonly days: number
  /** Requests it applied to; null when the log does not show it. */
  readonly seen: number | null
  readonly wouldRefuse: number
  /** wouldRefuse / seen; null when the log does not show it. */
  readonly share: number | null
  /** How many projects and keys it would have refused. */
  readonly projects: number
  readonly keys: number
  /** Quotas under which the percentile of its requests would have passed; null when the log does not show it. */
  readonly suggested: readonly Suggestion[] | null
  /** What the log does not show, as sentences. */
  readonly unknown: readonly string[]
}

/** Requests of the keys for which a rule is enforced. */
export interface ShareTally {
  /** Null when the log does not show it. */
  readonly seen: number | null
  readonly refused: number
}

export interface Suggestion {
  /** The window, as in the response field RateLimit. */
  readonly policy: string
  readonly windowMs: number | null
  /** Requests in the window, now and as suggested. */
  readonly quota: number
  readonly suggested: number
}

/** A week, since traffic differs between weekdays. */
const LEAST_DAYS = 7
/** Fewer requests than this say little about future ones. */
const LEAST_SEEN = 100

/**
 * @param percentile the percentage of its requests that must fit: the rule is safe when it would refuse no more
 * than the rest
 * @param dropped its records that the log left out
 */
export function promotionOf(
  tally: RuleTally,
  gathered: Gathered,
  percentile: number,
  dropped: number,
): Promotion {
  const { rule, kind, days, keys, projects, enforcedFor } = tally
  const isReported = tally.seen > 0 && gathered.allowed > 0
  const wouldRefuse = tally.wouldRefuse + dropped
  const share = isReported ? Math.min(1, wouldRefuse / Math.max(tally.seen, wouldRefuse)) : null
  const reasons = reasonsAgainst(tally, share, wouldRefuse, percentile)
  const safe = reasons.length === 0
  const enforced = enforcedFor === undefined ? undefined : gathered.tallyOf(rule, 'enforce')
  return {
    rule,
    kind,
    what: whatOf(tally),
    enforcedFor: enforcedFor ?? null,
    inside: enforcedFor === undefined ? null : insideOf(enforced, isReported),
    safe,
    verdict: safe
      ? `${SAFE_TO[whatOf(tally)]} in ${daysText(days)} it would have refused ${grouped(wouldRefuse)} of ` +
        `${count(tally.seen, 'request')} (${percent(share as number)})${ofProjects(projects.count)}.`
      : `Not yet: ${reasons.join('; ')}.`,
    days: Math.round(days * 100) / 100,
    seen: isReported ? Math.round(tally.seen) : null,
    wouldRefuse,
    share,
    projects: projects.count,
    keys: keys.count,
    suggested: isReported && gathered.sample === 1 ? suggestionsOf(tally, gathered, percentile) : null,
    unknown: unknownOf(tally, gathered, isReported, dropped),
  }
}

const SAFE_TO = {
  rule: 'Safe to enforce:',
  trial: 'Safe to make it the quota:',
  share: 'Safe to raise the share: outside it,',
} as const

function whatOf({ rule, enforcedFor }: RuleTally): keyof typeof SAFE_TO {
  if (enforcedFor !== undefined) return 'share'
  return ownerOfTrial(rule) === undefined ? 'rule' : 'trial'
}

function insideOf(enforced: RuleTally | undefined, isReported: boolean): ShareTally {
  return { seen: isReported ? Math.round(enforced?.seen ?? 0) : null, refused: enforced?.refused ?? 0 }
}

function reasonsAgainst(
  { days, seen, projects, refusedUncounted }: RuleTally,
  share: number | null,
  wouldRefuse: number,
  percentile: number,
): string[] {
  const reasons: string[] = []
  const tolerated = (100 - percentile) / 100
  if (days < LEAST_DAYS) reasons.push(`it was observed for ${daysText(days)}, not for a week`)
  if (share === null) reasons.push('which share of its requests it would refuse is not in the log')
  else if (share > tolerated)
    reasons.push(
      `it would refuse ${grouped(wouldRefuse)} of ${count(seen, 'request')} (${percent(share)}, more than ` +
        `${percent(tolerated)})${ofProjects(projects.count)}`,
    )
  if (share !== null && seen < LEAST_SEEN) reasons.push(`it saw only ${count(seen, 'request')}`)
  if (refusedUncounted > 0) reasons.push(`${count(refusedUncounted, 'request')} could not be counted`)
  return reasons
}

function suggestionsOf(tally: RuleTally, { demand }: Gathered, percentile: number): Suggestion[] {
  return [...tally.peaks.values()].flatMap(({ policy, windowMs, quota }) => {
    const suggested = demand.percentile(policy, percentile)
    return suggested === undefined ? [] : { policy, windowMs, quota, suggested }
  })
}

function unknownOf(tally: RuleTally, gathered: Gathered, isReported: boolean, dropped: number): string[] {
  const unknown: string[] = []
  if (!isReported) {
    unknown.push(
      gathered.allowed > 0 && gathered.isOld
        ? 'An older gateway wrote this log: it does not say which requests the rule let pass.'
        : 'Admitted requests are not in the log, so neither a percentage nor a quota can be given: set log.decisions to all, or to a share.',
    )
  } else if (gathered.sample < 1) {
    unknown.push(
      `${percent(gathered.sample)} of the admitted requests are logged: shares are estimates, peaks between the logged ` +
        'requests are not seen, and a quota cannot be suggested: set log.decisions to all for that.',
    )
  }
  if (dropped > 0) {
    unknown.push(
      `The log left out ${count(dropped, 'record')} of this rule in floods: of which keys, projects and hours is unknown.`,
    )
  }
  if (tally.countsAnswers) {
    unknown.push(
      'It counts by the answers of the upstream, which are not in the log: a quota cannot be suggested.',
    )
  }
  for (const { policy, quota, formerQuotas } of tally.peaks.values()) {
    if (formerQuotas.size === 0) continue
    unknown.push(
      `The quota of ${policy} was ${[...formerQuotas].map(grouped).join(', ')} before it was ${grouped(quota)}: ` +
        'what it would have refused is counted under each.',
    )
  }
  return unknown
}

function ofProjects(projects: number): string {
  return projects === 0 ? '' : `, of ${count(projects, 'project')}`
}

function daysText(days: number): string {
  if (days >= 1) return `${days.toFixed(1)} days`
  return count(Math.floor(days * 24), 'hour')
}
