/**
 * The report as one HTML page: charts in SVG, no scripts, nothing loaded from the network; light and dark, readable
 * without colour.
 */
import { count, escapeHtml, grouped, minuteOf } from '../text.js'
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
    peaks.map(({ policy, windowMs, lifetime, quota, used, attempted }) => [
      policy,
      windowWords(windowMs, lifetime),
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

interface Bar {
  /** Start of the hour, ms since the epoch. */
  readonly at: number
  readonly label: string
  readonly refused: number
  readonly would: number
}

const HOUR_MS = 3_600_000
const WIDTH = 880
const HEIGHT = 160
const LEFT = 60
const BOTTOM = 20
const TOP = 8
const WIDEST_BAR = 24
/** More bars than this would be thinner than a line, so hours are then merged. */
const MOST_BARS = 240

/** Refused requests are solid bars, would-be refusals hatched ones on top; each has a tooltip with its numbers. */
function barChart(title: string, hours: readonly Bar[]): string {
  const bars = joined(hours)
  const first = bars[0] as Bar
  const last = bars.at(-1) as Bar
  const step = HOUR_MS * joinOf(hours)
  const slots = Math.round((last.at - first.at) / step) + 1
  const highest = Math.max(...bars.map(({ refused, would }) => refused + would))
  const slot = (WIDTH - LEFT) / slots
  const width = Math.max(1, Math.min(WIDEST_BAR, slot * 0.8))
  const base = HEIGHT - BOTTOM
  const scale = (base - TOP) / highest
  const drawn = bars.map(({ at, label, refused, would }) => {
    const x = LEFT + ((at - first.at) / step) * slot
    const box = (kind: string, from: number, number: number) =>
      number === 0
        ? ''
        : `<rect class="${kind}" x="${round(x)}" y="${round(base - (from + number) * scale)}" width="${round(width)}" height="${round(number * scale)}"/>`
    const words = `${label}: ${grouped(refused)} refused, ${grouped(would)} would be refused`
    return `<g><title>${escapeHtml(words)}</title>${box('refused', 0, refused)}${box('would', refused, would)}</g>`
  })
  return `<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${escapeHtml(title)}"><title>${escapeHtml(title)}</title>
<path class="axis" d="M${LEFT} ${TOP}V${base}H${WIDTH}" fill="none"/>
<text x="${LEFT - 6}" y="${TOP + 10}" text-anchor="end">${grouped(highest)}</text><text x="${LEFT - 6}" y="${base}" text-anchor="end">0</text>
<text x="${LEFT}" y="${HEIGHT - 4}">${escapeHtml(first.label)}</text>${slots > 1 ? `<text x="${WIDTH}" y="${HEIGHT - 4}" text-anchor="end">${escapeHtml(last.label)}</text>` : ''}
${drawn.join('\n')}
</svg>`
}

/** How many hours one bar covers. */
function joinOf(hours: readonly Bar[]): number {
  const span = ((hours.at(-1) as Bar).at - (hours[0] as Bar).at) / HOUR_MS + 1
  return Math.ceil(span / MOST_BARS)
}

function joined(hours: readonly Bar[]): Bar[] {
  const step = HOUR_MS * joinOf(hours)
  const start = (hours[0] as Bar).at
  const bars = new Map<number, Bar>()
  for (const hour of hours) {
    const at = start + Math.floor((hour.at - start) / step) * step
    const present = bars.get(at)
    const refused = hour.refused + (present?.refused ?? 0)
    bars.set(at, {
      at,
      label: present?.label ?? hour.label,
      refused,
      would: hour.would + (present?.would ?? 0),
    })
  }
  return [...bars.values()]
}

function round(number: number): number {
  return Math.round(number * 100) / 100
}
