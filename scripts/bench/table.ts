/** Samples → medians → Markdown. */
import { median, tableFrom } from '../lib/table.js'

/** The figures of one sample, by the names in COLUMNS; others are not shown. */
export type Sample = Readonly<Record<string, number | undefined>>

export interface Samples {
  readonly label: string
  readonly samples: Sample[]
}

const fixed = (digits: number) => (value: number) => value.toFixed(digits)
const whole = (value: number) => String(Math.round(value))

const COLUMNS: readonly (readonly [key: string, title: string, text: (value: number) => string])[] = [
  ['rps', 'requests/s', whole],
  ['us', 'CPU µs/request', fixed(1)],
  ['mean', 'mean ms', fixed(2)],
  ['p50', 'p50 ms', fixed(2)],
  ['p99', 'p99 ms', fixed(1)],
  ['commands', 'Redis commands/request', fixed(5)],
  ['refused', 'refused', value => `${(value * 100).toFixed(1)} %`],
  ['bytes', 'bytes each in the process', whole],
  ['redisBytes', 'bytes each in Redis', whole],
]

export const medianOf = ({ samples }: Samples, key: string): number =>
  median(samples.map(sample => sample[key] ?? Number.NaN))

/** One table: the median of each figure, and cost and rps as ratios to the first row. */
export function tableOf(rows: readonly Samples[]): string {
  const columns = COLUMNS.filter(([key]) => rows.some(row => Number.isFinite(medianOf(row, key))))
  const head = ['', ...columns.map(([, title]) => title), 'cost ÷ first', 'rps ÷ first']
  const written = (value: number, text: (value: number) => string) =>
    Number.isFinite(value) ? text(value) : ''
  const ratio = (row: Samples, key: string) => medianOf(row, key) / medianOf(rows[0] ?? row, key)
  const body = rows.map(row => [
    row.label,
    ...columns.map(([key, , text]) => written(medianOf(row, key), text)),
    written(ratio(row, 'us'), fixed(2)),
    written(ratio(row, 'rps'), fixed(2)),
  ])
  return tableFrom(head, body)
}

/** For a line of progress. */
export const sampleText = (sample: Sample, digits: number): string =>
  JSON.stringify(sample, (_, value) =>
    typeof value === 'number' ? Number(value.toPrecision(digits)) : value,
  )
