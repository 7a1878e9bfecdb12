/** Lines for a screen of a given width: nothing wraps, and text that is cut off is marked. */
import { printable } from '../text.js'

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
export function grid<Row>(
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
