/** Prints the report as text. */
import type { Io } from '../io.js'
import { intakeText, type LogIntake } from '../log/intake.js'
import { columns, grouped, minuteOf, printable, table, wrap } from '../text.js'
import {
  insideSentence,
  loggedSentences,
  promotionsTitle,
  type ReportDocument,
  type RuleReport,
  suggestionSentence,
  windowWords,
} from './document.js'
import type { Promotion } from './promotion.js'

/** Number of hours with the most refusals that are listed. */
const WORST_HOURS = 5

export function reportText(report: ReportDocument, intake: LogIntake, io: Io): string {
  const { rules, promotions, percentile } = report
  const sections = [`${intakeText(intake, io)}${wrap(printable(loggedSentences(report)), io.columns)}\n`]
  sections.push(heading('Rules', io) + table(RULE_COLUMNS, rules.map(ruleRow), io.columns) + exactness(rules))
  const peaks = rules.flatMap(({ peaks }) => peaks)
  if (peaks.length > 0) {
    sections.push(heading('Peak use', io) + table(PEAK_COLUMNS, peaks.map(peakRow), io.columns))
  }
  const hours = worstHours(rules)
  if (hours.length > 0) {
    sections.push(heading('Hours with the most refusals (UTC)', io) + table(HOUR_COLUMNS, hours, io.columns))
  }
  if (promotions.length > 0) {
    sections.push(
      heading(promotionsTitle(report), io) +
        promotions.map(promotion => promotionText(promotion, percentile, io)).join('\n'),
    )
  }
  return sections.join('\n')
}

function heading(text: string, io: Io): string {
  return `${io.style('bold', text)}\n`
}

const RULE_COLUMNS = columns(['rule', 'mode'], ['requests', 'refused', 'would refuse', 'keys', 'projects'])

function ruleRow({ rule, mode, modeSrc, seen, refused, wouldRefuse, keys, projects }: RuleReport): string[] {
  return [
    rule,
    modeSrc === null ? mode : `${mode} for now`,
    seen === null ? '?' : grouped(seen),
    grouped(refused),
    grouped(wouldRefuse),
    approximately(keys),
    approximately(projects),
  ]
}

function approximately({ count: number, exact }: RuleReport['keys']): string {
  return exact ? grouped(number) : `~${grouped(number)}`
}

function exactness(rules: readonly RuleReport[]): string {
  const isExact = rules.every(({ keys, projects }) => keys.exact && projects.exact)
  return isExact ? '' : 'Numbers with ~ are estimates, usually within 2 %.\n'
}

const PEAK_COLUMNS = columns(['policy', 'window'], ['quota', 'used', 'attempted'])

function peakRow({
  policy,
  windowMs,
  lifetime,
  quota,
  used,
  attempted,
}: RuleReport['peaks'][number]): string[] {
  return [policy, windowWords(windowMs, lifetime), grouped(quota), grouped(used), demandText(attempted)]
}

/** `?` where the log does not show it. */
function demandText(attempted: number | null): string {
  return attempted === null ? '?' : grouped(attempted)
}

const HOUR_COLUMNS = columns(['hour', 'rule'], ['refused', 'would refuse'])

function worstHours(rules: readonly RuleReport[]): string[][] {
  return rules
    .flatMap(({ rule, hours }) => hours.map(hour => ({ rule, ...hour })))
    .filter(({ refused, wouldRefuse }) => refused + wouldRefuse > 0)
    .sort((a, b) => b.refused + b.wouldRefuse - (a.refused + a.wouldRefuse) || (a.hour < b.hour ? -1 : 1))
    .slice(0, WORST_HOURS)
    .map(({ hour, rule, refused, wouldRefuse }) => [
      minuteOf(hour),
      rule,
      grouped(refused),
      grouped(wouldRefuse),
    ])
}

function promotionText(promotion: Promotion, percentile: number, io: Io): string {
  const { rule, safe, verdict, inside, suggested, unknown } = promotion
  const lines = [
    `${rule}: ${verdict}`,
    ...(inside === null ? [] : [insideSentence(promotion)]),
    ...(suggested ?? []).map(one => suggestionSentence(one, percentile)),
    ...unknown,
  ]
  const [first = '', ...rest] = lines.map(line => `${wrap(printable(line), io.columns)}\n`)
  const name = printable(rule)
  return [io.style(safe ? 'green' : 'yellow', name) + first.slice(name.length), ...rest].join('')
}
