/** Plain text for output: wrapped lines, counts, times, and tables as columns if they fit, else as a block for each row. */
import { grouped, percent } from '../gateway/forward/units.js'
import { printable } from '../gateway/observe/terminal.js'

export { grouped, percent, printable }

/** Breaks a paragraph into lines of at most `columns`; a longer word has a line of its own. */
export function wrap(paragraph: string, columns: number): string {
  const lines: string[] = []
  let line = ''
  for (const word of paragraph.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > columns) {
      lines.push(line)
      line = word
    } else line = line === '' ? word : `${line} ${word}`
  }
  return [...lines, line].join('\n')
}

/** `1 line`, `2,000 lines`. */
export function count(number: number, thing: string, things = `${thing}s`): string {
  return `${grouped(number)} ${number === 1 ? thing : things}`
}

/** The minute of an ISO 8601 time: `2026-01-02 03:04`. */
export function minuteOf(iso: string): string {
  return iso.slice(0, 16).replace('T', ' ')
}

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

/** Text that is safe in HTML, also between double quotes. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"]/g, character => ENTITIES[character] as string)
}

export interface Column {
  readonly title: string
  /** Numbers are aligned right. */
  readonly align?: 'right'
}

/** Columns of texts, then those of numbers. */
export function columns(texts: readonly string[], numbers: readonly string[] = []): Column[] {
  return [...texts.map(title => ({ title })), ...numbers.map(title => ({ title, align: 'right' as const }))]
}

export type Row = readonly (string | number)[]

const GAP = '  '

/** Ends in a newline. Columns are never wider than `width`; the lines of blocks may be. */
export function table(columns: readonly Column[], rows: readonly Row[], width: number): string {
  const cells = rows.map(row => row.map(cell => printable(String(cell))))
  const widths = columns.map(({ title }, i) =>
    Math.max(title.length, ...cells.map(row => (row[i] as string).length)),
  )
  const total = widths.reduce((sum, one) => sum + one, GAP.length * (columns.length - 1))
  return total <= width ? grid(columns, cells, widths) : blocks(columns, cells)
}

function grid(columns: readonly Column[], rows: readonly string[][], widths: readonly number[]): string {
  const line = (row: readonly string[]) =>
    row
      .map((cell, i) => {
        const to = widths[i] as number
        return columns[i]?.align === 'right' ? cell.padStart(to) : cell.padEnd(to)
      })
      .join(GAP)
      .trimEnd()
  return [columns.map(({ title }) => title), ...rows].map(row => `${line(row)}\n`).join('')
}

/** The first cell is the block's heading, the others follow by their titles. */
function blocks(columns: readonly Column[], rows: readonly string[][]): string {
  return rows
    .map(([heading, ...rest]) => {
      const lines = rest.map((cell, i) => `  ${columns[i + 1]?.title}: ${cell}\n`)
      return `${heading}\n${lines.join('')}`
    })
    .join('')
}
