/** Tables for a terminal: columns if they fit, otherwise one block of lines for each row. */
import { printable } from './text.js'

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
