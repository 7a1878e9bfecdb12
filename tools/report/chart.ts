/** A bar chart by hour, as SVG. */
import { escapeHtml, grouped } from '../text.js'

export interface Bar {
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
export function barChart(title: string, hours: readonly Bar[]): string {
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
