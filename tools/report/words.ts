/** Sentences used in both the text and the HTML page. */
import { waitText } from '../../gateway/forward/units.js'
import { count, grouped, percent } from '../text.js'
import type { ReportDocument } from './document.js'
import type { Promotion, Suggestion } from './promotion.js'

/** What the log contains, and what it left out. */
export function loggedSentences({ decisions: { logged, dropped, beyond } }: ReportDocument): string {
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

/** `60 s`, `1 h`, `31 days`, or for slots `at once`. */
export function windowWords(windowMs: number | null): string {
  return windowMs === null ? 'at once' : waitText(windowMs / 1000).replace(/^1 min$/, '60 s')
}
