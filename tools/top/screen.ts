/** The screen of `sluice top`: lines made from a snapshot and the chosen view. Pure. */
import type { LiveSnapshot } from '../../gateway/admin/live-snapshot.js'
import type { Style } from '../io.js'
import { count, grouped, printable } from '../text.js'
import { cut, rate, SECTION_NAMES, SECTIONS, type SectionName, type ShownSection } from './sections.js'

export interface TopView {
  /** The section that fills the screen; without one all are shown. */
  readonly only: SectionName | undefined
  /** The sort column of each section. */
  readonly sorts: Readonly<Partial<Record<SectionName, number>>>
  /** Number of rows scrolled out of view. */
  readonly from: number
}

export interface Canvas {
  readonly columns: number
  readonly rows: number
  style(style: Style, text: string): string
}

/** Least number of rows of a section that is not empty. */
const LEAST_ROWS = 2

/** The overall state, one line for each aspect. */
function headLines(snapshot: LiveSnapshot, origin: string, { columns, style }: Canvas): string[] {
  const { rates, reload, store, missing, certificate } = snapshot
  const line = (text: string, mark?: Style) => {
    const fitting = cut(printable(text), columns)
    return mark === undefined ? fitting : style(mark, fitting)
  }
  const lines = [
    line(`${timeOf(snapshot.at)}  ${origin}  ${snapshot.revision} since ${timeOf(snapshot.loaded_at)}`),
    line(
      `${rate(rates.requests)} requests/s  ${rate(rates.refused)} refused  ${rate(rates.would_refuse)} would be  5xx: ${rate(rates.errors_of_ours)} ours, ${rate(rates.errors_of_upstreams)} theirs  ${grouped(snapshot.in_flight)} in flight`,
    ),
    line(
      `Store ${[store.kind, store.address].filter(Boolean).join(' ')} ${store.state === 'ok' ? 'ok' : 'AWAY'} since ${timeOf(store.since)}`,
      store.state === 'ok' ? undefined : 'red',
    ),
    ...snapshot.upstreams
      .filter(({ state }) => state !== 'ok')
      .map(one =>
        line(
          `Upstream ${one.name} ${one.state.toUpperCase()} since ${timeOf(one.since ?? '')}: ${one.cause}`,
          'red',
        ),
      ),
    ...processLines(snapshot).map(text => line(text)),
  ]
  if (missing.length > 0) {
    lines.push(
      line(`Without ${count(missing.length, 'worker')}: ${missing.join(', ')} did not answer`, 'red'),
    )
  }
  if (certificate && (certificate.expires === null || certificate.failure !== null)) {
    const { expires, failure } = certificate
    const state =
      expires === null ? 'missing' : `${expires <= snapshot.at ? 'ENDED' : 'ends'} ${timeOf(expires)}`
    lines.push(line(`Certificate ${state}: ${failure ?? 'it is being ordered'}`, 'red'))
  }
  if (reload?.result === 'refused') {
    const [first] = reload.problems
    const place = first === undefined ? '' : ` ${first.file}:${first.line}:${first.column} ${first.sentence}`
    const problems = count(reload.problems.length, 'problem')
    lines.push(line(`Reload refused ${timeOf(reload.at)}, ${problems}:${place}`, 'red'))
  }
  return lines
}

/** A whole screen, never more lines than it has rows. `lost`: why there are no new snapshots. */
export function screenLines(
  snapshot: LiveSnapshot,
  origin: string,
  view: TopView,
  canvas: Canvas,
  lost?: string,
): string[] {
  const { columns, rows, style } = canvas
  const head = headLines(snapshot, origin, canvas)
  const help =
    lost === undefined
      ? style('dim', cut(HELP, columns))
      : style('red', cut(lostText(lost, snapshot), columns))
  const height = Math.max(0, rows - head.length - 2)
  const shown = (view.only === undefined ? SECTION_NAMES : [view.only]).map(name =>
    SECTIONS[name].show(snapshot, columns, view.sorts[name]),
  )
  const body =
    view.only === undefined ? together(shown, height, canvas) : scrolled(shown, view.from, height, canvas)
  return [...head, '', ...body, ...Array<string>(Math.max(0, height - body.length)).fill(''), help].slice(
    -rows,
  )
}

/** The complete text, for a file or a pipe. */
export function onceText(snapshot: LiveSnapshot, origin: string, canvas: Canvas): string {
  const lines = headLines(snapshot, origin, canvas)
  for (const name of SECTION_NAMES) {
    const section = SECTIONS[name].show(snapshot, canvas.columns)
    lines.push('', canvas.style('bold', `${section.title}${section.lines.length === 0 ? ': none' : ''}`))
    if (section.lines.length > 0) lines.push(section.heading, ...section.lines)
  }
  return `${lines.join('\n')}\n`
}

const HELP = 'q:quit r:rules p:projects c:closest s:slots u:upstreams a:all ←→:sort ↑↓:scroll'

function lostText(lost: string, { at }: LiveSnapshot): string {
  return printable(`${lost}. Shown is ${timeOf(at)}; trying again.`)
}

/** All sections, one below the other: space that one does not need goes to the others. */
function together(all: readonly ShownSection[], height: number, { style }: Canvas): string[] {
  const filled = all.filter(({ lines }) => lines.length > 0)
  // A heading for each, and an empty line between two.
  let left = height - 2 * filled.length + 1
  const shares = new Map<ShownSection, number>()
  const modest = [...filled].sort((one, other) => one.lines.length - other.lines.length)
  for (const [i, section] of modest.entries()) {
    const share = Math.min(section.lines.length, Math.max(LEAST_ROWS, Math.floor(left / (filled.length - i))))
    shares.set(section, share)
    left -= share
  }
  const lines = filled.flatMap(section => [
    style('bold', section.heading),
    ...section.lines.slice(0, shares.get(section)),
    '',
  ])
  return lines.slice(0, height)
}

function scrolled(
  [section]: readonly ShownSection[],
  from: number,
  height: number,
  { style }: Canvas,
): string[] {
  if (section === undefined) return []
  const { title, heading, lines } = section
  const shown = lines.slice(from, from + height - 2)
  const place =
    lines.length === 0 ? 'none' : `${from + 1} to ${from + shown.length} of ${grouped(lines.length)}`
  return [`${title}: ${place}`, style('bold', heading), ...shown].slice(0, height)
}

function processLines({ process, workers }: LiveSnapshot): string[] {
  const vitals = (delay: number | null, rss: number | null) =>
    delay === null || rss === null ? 'no answer' : `${delay} ms late, ${Math.round(rss / 1e6)} MB`
  if (process !== undefined) {
    return [
      `Process ${process.pid}: ${vitals(process.loop_delay_ms, process.rss_bytes)}, since ${timeOf(process.started_at)}`,
    ]
  }
  const texts = workers.map(one => `${one.pid} (${vitals(one.loop_delay_ms, one.rss_bytes)})`)
  return [`Workers ${texts.join('  ')}`]
}

/** The local time of day; preceded by the date if it is not today. */
function timeOf(iso: string): string {
  const time = new Date(iso)
  const [day, clock] = [time.toLocaleDateString('sv-SE'), time.toLocaleTimeString('sv-SE')]
  return day === new Date().toLocaleDateString('sv-SE') ? clock : `${day} ${clock}`
}
