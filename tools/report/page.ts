/**
 * The report as one HTML page: charts in SVG, no scripts, nothing loaded from the network; light and dark, readable
 * without colour.
 */
import { count, escapeHtml, grouped, minuteOf } from '../text.js'
import { barChart } from './chart.js'
import type { ReportDocument, RuleReport } from './document.js'
import type { Promotion } from './promotion.js'
import { insideSentence, loggedSentences, promotionsTitle, suggestionSentence, windowWords } from './words.js'

const STYLE = `
:root { color-scheme: light dark; --ink: #1d2129; --soft: #5c6470; --line: #d5d9e0; --page: #fff; --hit: #b3261e; --would: #8a5a00 }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e8ec; --soft: #a2a9b4; --line: #3a404a; --page: #16181d; --hit: #ff8a80; --would: #ffc66b }
}
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page); max-width: 60rem; margin: 0 auto; padding: 1.5rem }
h1, h2, h3 { line-height: 1.25 } h2 { margin-top: 2.5rem } h3 { margin-bottom: .25rem }
p { max-width: 44rem } .soft { color: var(--soft) }
.wide { overflow-x: auto }
table { border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { padding: .3rem .8rem .3rem 0; text-align: left; border-bottom: 1px solid var(--line) }
.n { text-align: right }
svg { display: block; max-width: 100%; height: auto }
svg text { fill: var(--soft); font: 12px system-ui, sans-serif }
.axis { stroke: var(--line) } .refused { fill: var(--hit) } .would { fill: url(#hatch); stroke: var(--would) }
#hatch path { stroke: var(--would); stroke-width: 2 }
@media print { body { max-width: none } }
`

/** A complete HTML document. */
export function reportPage(report: ReportDocument): string {
  const { rules, promotions, percentile } = report
  const { from, to } = report.input
  const refusing = rules.filter(({ refused, wouldRefuse }) => refused + wouldRefuse > 0)
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>Sluice report</title>
<style>${STYLE}</style>
</head>
<body>
<svg width="0" height="0" aria-hidden="true"><defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse"><path d="M0 6 6 0"/></pattern></defs></svg>
<h1>Sluice report</h1>
<p>${escapeHtml(`${count(report.input.used, 'decision record')}, from ${minuteOf(from ?? '')} to ${minuteOf(to ?? '')} UTC.`)} ${escapeHtml(loggedSentences(report))}</p>
${promotions.length === 0 ? '' : `<h2>${promotionsTitle(report)}</h2>${promotions.map(one => promotionHtml(one, percentile)).join('')}`}
<h2>Rules</h2>
<div class="wide">${rulesTable(rules)}</div>
<h2>Refusals by hour</h2>
${refusing.length === 0 ? '<p>There were none.</p>' : '<p class="soft">Solid bars were refused, hatched bars would have been. Hours are UTC.</p>'}
${refusing.map(ruleChart).join('')}
<h2>Peak use</h2>
<div class="wide">${peaksTable(rules)}</div>
</body>
</html>
`
}

function promotionHtml(promotion: Promotion, percentile: number): string {
  const { rule, safe, verdict, inside, suggested, unknown } = promotion
  const enforced = inside === null ? [] : [insideSentence(promotion)]
  const quotas = (suggested ?? []).map(one => suggestionSentence(one, percentile))
  return `<h3>${safe ? '✓' : '✗'} ${escapeHtml(rule)}</h3>${[verdict, ...enforced, ...quotas, ...unknown].map(text => `<p>${escapeHtml(text)}</p>`).join('')}`
}

function rulesTable(rules: readonly RuleReport[]): string {
  const head = [
    'rule',
    'kind',
    'mode',
    'requests',
    'refused',
    'would refuse',
    'keys',
    'projects',
    'most refused',
  ]
  const rows = rules.map(({ rule, kind, mode, modeSrc, seen, refused, wouldRefuse, keys, projects }) => [
    rule,
    kind,
    modeSrc === null ? mode : `${mode} for now`,
    seen ?? '?',
    refused,
    wouldRefuse,
    keys.exact ? keys.count : `~${grouped(keys.count)}`,
    projects.exact ? projects.count : `~${grouped(projects.count)}`,
    projects.top.map(({ project, refused: times }) => `${project} (${grouped(times)})`).join(', '),
  ])
  return tableHtml(head, rows)
}

function peaksTable(rules: readonly RuleReport[]): string {
  const rows = rules.flatMap(({ peaks }) =>
    peaks.map(({ policy, windowMs, quota, used, attempted }) => [
      policy,
      windowWords(windowMs),
      quota,
      used,
      attempted ?? '?',
    ]),
  )
  return tableHtml(['policy', 'window', 'quota', 'used', 'attempted'], rows)
}

function tableHtml(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const cell = (value: string | number) =>
    typeof value === 'number' ? `<td class="n">${grouped(value)}</td>` : `<td>${escapeHtml(value)}</td>`
  return `<table><thead><tr>${head.map(title => `<th scope="col">${title}</th>`).join('')}</tr></thead><tbody>${rows
    .map(row => `<tr>${row.map(cell).join('')}</tr>`)
    .join('')}</tbody></table>`
}

function ruleChart({ rule, mode, hours }: RuleReport): string {
  const bars = hours.map(({ hour, refused, wouldRefuse }) => ({
    at: Date.parse(hour),
    label: minuteOf(hour),
    refused,
    would: wouldRefuse,
  }))
  return `<h3>${escapeHtml(rule)} <span class="soft">${mode}</span></h3>${barChart(`Refusals of ${rule} by hour`, bars)}`
}
