/** The tables of `sluice top`, on a screen of a given width: nothing wraps, and text that is cut off is marked. */
import type {
  LiveAddress,
  LiveClosest,
  LiveProject,
  LiveRule,
  LiveSlots,
  LiveSnapshot,
} from '../../gateway/admin/live-snapshot.js'
import { waitText } from '../../gateway/forward/units.js'
import { percent, printable } from '../text.js'

export interface GridColumn<Row> {
  readonly title: string
  /** The content of a cell; numbers are aligned right. */
  cell(row: Row): string | number
  /** The value to sort by, in descending order; without it the column is not sortable. */
  readonly by?: (row: Row) => number
}

const GAP = 2
const LEAST_TEXT = 8
/** The first column is wider because it names the row's subject. */
const LEAST_FIRST = 24

/** A heading and a line for each row; columns that do not fit are omitted from the right. */
function grid<Row>(
  columns: readonly GridColumn<Row>[],
  rows: readonly Row[],
  width: number,
  sorted?: GridColumn<Row>,
): { heading: string; lines: string[] } {
  const titles = columns.map(one => (one === sorted ? `${one.title}▼` : one.title))
  const cells = rows.map(row => columns.map(({ cell }) => cell(row)))
  const texts = cells.map(row => row.map(cell => (typeof cell === 'number' ? rate(cell) : printable(cell))))
  const isNumber = columns.map((_, i) => cells.some(row => typeof row[i] === 'number'))
  const widths = titles.map((title, i) => Math.max(title.length, ...texts.map(row => (row[i] ?? '').length)))
  const shown = fitted(widths, isNumber, width)
  const line = (row: readonly string[]) =>
    shown
      .map((to, i) => {
        const text = cut(row[i] ?? '', to)
        return isNumber[i] ? text.padStart(to) : text.padEnd(to)
      })
      .join(' '.repeat(GAP))
      .trimEnd()
  return { heading: line(titles), lines: texts.map(line) }
}

/** The text cut to a width, with a mark if something is missing. */
export function cut(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, Math.max(0, width - 1))}…`
}

/** The widths of as many columns as fit with texts at their minimum; what is left goes to the first texts. */
function fitted(widths: readonly number[], isNumber: readonly boolean[], width: number): number[] {
  const least = widths.map((one, i) =>
    isNumber[i] ? one : Math.min(one, i === 0 ? LEAST_FIRST : LEAST_TEXT),
  )
  let left = width - (least[0] ?? 0)
  if (left < 0) return [width]
  let fitting = 1
  for (const one of least.slice(1)) {
    if (left < GAP + one) break
    left -= GAP + one
    fitting += 1
  }
  return least.slice(0, fitting).map((one, i) => {
    const more = Math.min(left, (widths[i] ?? 0) - one)
    left -= more
    return one + more
  })
}

/** `0`, `0.25`, `12.3`, `1,234`. */
export function rate(value: number): string {
  if (Number.isInteger(value) || value >= 100) return Math.round(value).toLocaleString('en-US')
  return value.toFixed(value >= 10 ? 1 : 2)
}

export type SectionName = keyof typeof SECTIONS

/** Lines of a section, without its heading. */
export interface ShownSection {
  readonly title: string
  readonly heading: string
  readonly lines: readonly string[]
}

interface Written<Row> {
  readonly title: string
  readonly columns: readonly GridColumn<Row>[]
  rows(snapshot: LiveSnapshot): readonly Row[]
}

/** A table of a snapshot, sorted by one of its sortable columns; 0 is the default one. */
function section<Row>({ title, columns, rows }: Written<Row>) {
  const sortable = columns.filter(({ by }) => by !== undefined)
  return {
    /** Number of sortable columns. */
    sorts: sortable.length,
    size: (snapshot: LiveSnapshot) => rows(snapshot).length,
    show(snapshot: LiveSnapshot, width: number, sort = 0): ShownSection {
      const sorted = sortable[sort]
      const by = sorted?.by
      const all = [...rows(snapshot)]
      if (by !== undefined) all.sort((one, other) => by(other) - by(one))
      return { title, ...grid(columns, all, width, sorted) }
    },
  }
}

/** A column of numbers, which it can be sorted by. */
const numbers = <Row>(title: string, of: (row: Row) => number): GridColumn<Row> => ({
  title,
  cell: of,
  by: of,
})

const refusals = ({ rates, last_hour }: LiveRule) =>
  (rates.limited + rates.would_limit) * 3600 + (last_hour?.limited ?? 0) + (last_hour?.would_limit ?? 0)
const rules = section<LiveRule>({
  title: 'Rules',
  rows: ({ rules }) => rules,
  columns: [
    { title: 'RULE', cell: ({ id }) => id },
    { title: 'MODE', cell: modeText },
    { title: 'REFUSED/S', cell: ({ rates }) => rates.limited, by: refusals },
    numbers('WOULD/S', ({ rates }) => rates.would_limit),
    {
      title: 'HOUR',
      cell: ({ last_hour: hour }) => (hour === null ? '-' : hour.limited + hour.would_limit),
      by: ({ last_hour: hour }) => (hour === null ? 0 : hour.limited + hour.would_limit),
    },
    numbers('ALLOWED/S', ({ rates }) => rates.allowed + rates.near),
    numbers('NEAR/S', ({ rates }) => rates.near),
    numbers('ERROR/S', ({ rates }) => rates.error),
    { title: 'WHERE', cell: ({ src }) => src },
    numbers('WAITING', ({ waiting }) => waiting),
  ],
})

const projects = section<LiveProject>({
  title: 'Projects',
  rows: ({ projects }) => projects,
  columns: [
    { title: 'PROJECT', cell: ({ id }) => id },
    { title: 'PLAN', cell: ({ plan }) => plan },
    numbers('REQUESTS/S', ({ rates }) => rates.requests),
    numbers('REFUSED/S', ({ rates }) => rates.refused),
    numbers('WOULD/S', ({ rates }) => rates.would_refuse),
    numbers('HOUR', one => one.last_hour.requests),
    numbers('REFUSED', one => one.last_hour.refused),
    { title: 'ENVIRONMENT', cell: ({ environment }) => environment },
  ],
})

const closest = section<LiveClosest>({
  title: 'Closest to a limit',
  rows: ({ closest }) => closest,
  columns: [
    { title: 'LIMIT', cell: ({ policy }) => policy },
    { title: 'PROJECT', cell: ({ project }) => project },
    {
      title: 'SHARE',
      cell: ({ used, quota }) => percent(used / quota),
      by: ({ used, quota }) => used / quota,
    },
    numbers('USED', ({ used }) => used),
    numbers('OF', ({ quota }) => quota),
    {
      title: 'RESET',
      cell: ({ reset_ms }) => (reset_ms === null ? 'never' : ageText(reset_ms)),
      by: ({ reset_ms }) => reset_ms ?? Number.MAX_SAFE_INTEGER,
    },
    { title: 'KEY', cell: ({ key }) => key },
    { title: 'MODE', cell: ({ mode }) => mode },
  ],
})

const slots = section<LiveSlots>({
  title: 'Slots',
  rows: ({ slots }) => slots,
  columns: [
    { title: 'RULE', cell: ({ rule }) => rule },
    numbers('HELD', ({ held }) => held),
    { title: 'OLDEST', cell: one => ageText(one.oldest_ms), by: one => one.oldest_ms },
  ],
})

type Address = LiveAddress & { readonly name: string }

function stateText(state: string): string {
  if (state === 'ok') return state
  return state === 'ejected' ? 'LEFT OUT' : state.toUpperCase()
}

const upstreams = section<Address>({
  title: 'Upstreams',
  rows: ({ upstreams }) =>
    upstreams.flatMap(({ name, addresses }) => addresses.map(address => ({ name, ...address }))),
  columns: [
    { title: 'UPSTREAM', cell: ({ name }) => name },
    { title: 'ADDRESS', cell: ({ address }) => address },
    { title: 'STATE', cell: ({ state }) => stateText(state) },
    numbers('REQUESTS', one => one.in_flight),
    numbers('WEBSOCKETS', one => one.web_sockets),
    { title: 'CAUSE', cell: ({ cause = '' }) => cause },
  ],
})

export const SECTIONS = { rules, projects, closest, slots, upstreams } as const
export const SECTION_NAMES = Object.keys(SECTIONS) as SectionName[]

/** `enforce`, `report-only`, `enforce 25%`, `trial`; with a star when the files have another mode. */
function modeText({ mode, declared_mode, share, trial }: LiveRule): string {
  if (trial) return 'trial'
  const text = share === undefined ? mode : `${mode} ${share.percent}%`
  return mode === declared_mode ? text : `${text}*`
}

function ageText(ms: number): string {
  return ms < 1000 ? `${Math.ceil(ms)} ms` : waitText(Math.round(ms / 1000))
}
