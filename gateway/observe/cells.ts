/**
 * Counters and histograms by label values, cheap enough for every request: counting concatenates no strings and
 * allocates nothing.
 */

interface Cell {
  readonly labels: Record<string, string>
  count: number
}
/** One level of maps per label; the last one holds the cells. */
type Level = Map<string, Level | Cell>

export class CellCounter {
  readonly #names: readonly string[]
  readonly #root: Level = new Map()
  readonly #cells: Cell[] = []

  constructor(names: readonly string[]) {
    this.#names = names
  }

  /** Adds one; `values` are in the order of the label names. */
  inc(...values: readonly string[]): void {
    let at: Level | Cell | undefined = this.#root
    for (const value of values) at = (at as Level | undefined)?.get(value)
    if (at === undefined) at = this.#add(values)
    ;(at as Cell).count += 1
  }

  /** Every combination seen, as an object of labels, with its count. */
  *[Symbol.iterator](): Generator<[Record<string, string>, number]> {
    for (const { labels, count } of this.#cells) yield [labels, count]
  }

  #add(values: readonly string[]): Cell {
    const labels = Object.fromEntries(this.#names.map((name, i) => [name, values[i] ?? '']))
    const cell = { labels, count: 0 }
    let level = this.#root
    for (const value of values.slice(0, -1)) {
      const next = (level.get(value) as Level | undefined) ?? new Map()
      level.set(value, next)
      level = next
    }
    level.set(values.at(-1) ?? '', cell)
    this.#cells.push(cell)
    return cell
  }
}

/** What was observed under one label value. */
interface Row {
  /** Counts by bucket, not cumulative; the last is for values above all bounds. */
  readonly counts: number[]
  sum: number
}

/** One sample of a histogram in Prometheus form. */
export interface HistogramValue {
  readonly metricName: string
  readonly labels: Record<string, string | number>
  readonly value: number
}

export class CellHistogram {
  readonly #name: string
  readonly #bounds: readonly number[]
  readonly #label: string | undefined
  readonly #rows = new Map<string, Row>()

  /** `bounds`: upper bounds of the buckets, ascending. Without a `label` everything is observed under ''. */
  constructor(name: string, bounds: readonly number[], label?: string) {
    this.#name = name
    this.#bounds = bounds
    this.#label = label
    if (label === undefined) this.#add('')
  }

  observe(value: number, labelValue = ''): void {
    const row = this.#rows.get(labelValue) ?? this.#add(labelValue)
    const bounds = this.#bounds
    let i = 0
    while (i < bounds.length && value > (bounds[i] as number)) i += 1
    row.counts[i] = (row.counts[i] as number) + 1
    row.sum += value
  }

  /** Cumulative buckets, sum and count for every label value. */
  *values(): Generator<HistogramValue> {
    for (const [labelValue, { counts, sum }] of this.#rows) {
      const labels: Record<string, string> = this.#label === undefined ? {} : { [this.#label]: labelValue }
      let total = 0
      for (const [i, count] of counts.entries()) {
        total += count
        const le = this.#bounds[i] ?? '+Inf'
        yield { metricName: `${this.#name}_bucket`, labels: { le, ...labels }, value: total }
      }
      yield { metricName: `${this.#name}_sum`, labels, value: sum }
      yield { metricName: `${this.#name}_count`, labels, value: total }
    }
  }

  #add(labelValue: string): Row {
    const row = { counts: Array<number>(this.#bounds.length + 1).fill(0), sum: 0 }
    this.#rows.set(labelValue, row)
    return row
  }
}
