/** Samples → medians → Markdown. */

export function median(values) {
  const sorted = values.filter(Number.isFinite).sort((a, b) => a - b)
  const middle = sorted.length >> 1
  if (sorted.length === 0) return Number.NaN
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}

const COLUMNS = [
  ['rps', 'requests/s', value => String(Math.round(value))],
  ['us', 'CPU µs/request', value => value.toFixed(1)],
  ['mean', 'mean ms', value => value.toFixed(2)],
  ['p50', 'p50 ms', value => value.toFixed(2)],
  ['p99', 'p99 ms', value => value.toFixed(1)],
  ['commands', 'Redis commands/request', value => value.toFixed(5)],
  ['refused', 'refused', value => `${(value * 100).toFixed(1)} %`],
  ['bytes', 'bytes/key in the process', value => String(Math.round(value))],
  ['redisBytes', 'bytes/key in Redis', value => String(Math.round(value))],
]

/**
 * One table: the median of each figure, and cost and rps as ratios to the first row.
 *
 * @param rows label and samples of each contestant, in order
 */
export function tableOf(rows) {
  const medians = rows.map(({ samples }) =>
    Object.fromEntries(
      COLUMNS.map(([key]) => [key, median(samples.map(sample => sample[key] ?? Number.NaN))]),
    ),
  )
  const columns = COLUMNS.filter(([key]) => medians.some(row => Number.isFinite(row[key])))
  const [base] = medians
  const head = ['', ...columns.map(([, title]) => title), 'cost ÷ first', 'rps ÷ first']
  const ratio = (value, by) => (Number.isFinite(value / by) ? (value / by).toFixed(2) : '')
  const body = medians.map((row, i) => [
    rows[i].label,
    ...columns.map(([key, , text]) => (Number.isFinite(row[key]) ? text(row[key]) : '')),
    ratio(row.us, base.us),
    ratio(row.rps, base.rps),
  ])
  return tableFrom(head, body)
}

/** A Markdown table of texts. */
export function tableFrom(head, body) {
  const line = cells => `| ${cells.join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...body.map(line)].join('\n')
}
