/**
 * Series in the Prometheus text format, of one process or several. Counting concatenates no strings and allocates
 * nothing, so that it is cheap enough for every request. The gateway's only user of prom-client.
 */
import { AggregatorRegistry, Counter, collectDefaultMetrics, Gauge, type Metric, Registry } from 'prom-client'

interface Cell {
  readonly labels: Record<string, string>
  count: number
}
/** One level of maps per label; the last one holds the cells. */
type Level = Map<string, Level | Cell>

class CellCounter {
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

class CellHistogram {
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

/** The series of one process, or of several that were merged. */
export type MetricsSnapshot = readonly { readonly type: unknown }[]

/** One response to a scrape for several processes: counts are added up; of states such as "away" the worst counts. */
export function mergeSnapshots(all: readonly MetricsSnapshot[]): Pick<Series, 'text' | 'snapshot'> {
  const merged = AggregatorRegistry.aggregate([...all])
  return { text: () => merged.metrics(), snapshot: () => merged.getMetricsAsJSON() }
}

/** Gauges whose names end like a counter's; other gauges have the same numbers. */
const MISNAMED = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
]

let ofProcess: Registry | undefined

/**
 * CPU, memory, files, event loop and garbage collection: these describe the process, so there is one registry, however
 * many gateways it runs.
 */
function processSeries(): Registry {
  if (ofProcess === undefined) {
    ofProcess = new Registry()
    collectDefaultMetrics({ register: ofProcess })
    for (const name of MISNAMED) ofProcess.removeSingleMetric(name)
  }
  return ofProcess
}

export type Aggregator = 'sum' | 'max' | 'min'

export interface GaugeOptions<L extends string> {
  readonly labels?: L[]
  /** How the values of several processes are merged. */
  readonly aggregator?: Aggregator
  /** Called at each scrape. */
  readonly collect?: (this: Gauge<L>) => void
}

export class Series {
  readonly #registry = new Registry()
  readonly #ofProcess = processSeries()

  get contentType(): string {
    return this.#registry.contentType
  }

  gauge<L extends string>(name: string, help: string, options: GaugeOptions<L> = {}): Gauge<L> {
    const { labels = [], aggregator = 'sum', collect } = options
    const registers = [this.#registry]
    return new Gauge({ name, help, labelNames: labels, aggregator, registers, ...(collect && { collect }) })
  }

  counter<L extends string>(
    name: string,
    help: string,
    labelNames: L[] = [],
    collect?: (this: Counter<L>) => void,
  ): Counter<L> {
    return new Counter({ name, help, labelNames, registers: [this.#registry], ...(collect && { collect }) })
  }

  /**
   * A counter that is cheap enough for every request.
   *
   * @param exported the labels in the export, for cells that are counted more finely
   */
  cells(
    name: string,
    help: string,
    labelNames: string[],
    exported = (labels: Readonly<Record<string, string>>) => labels,
  ): CellCounter {
    const cells = new CellCounter(labelNames)
    this.counter(name, help, labelNames, function () {
      this.reset()
      for (const [labels, count] of cells) this.inc(exported(labels), count)
    })
    return cells
  }

  /** A histogram that is cheap enough for every request, by one label at most. */
  histogram(name: string, help: string, buckets: readonly number[], label?: string): CellHistogram {
    const cells = new CellHistogram(name, buckets, label)
    const get = () => ({ name, help, type: 'histogram', aggregator: 'sum', values: [...cells.values()] })
    // This is all that a registry needs of a metric; prom-client's own merged metrics have no more.
    this.#registry.registerMetric({ name, help, get } as unknown as Metric)
    return cells
  }

  /** The response to a scrape. */
  text(): Promise<string> {
    return Registry.merge([this.#registry, this.#ofProcess]).metrics()
  }

  /** Plain data, to be merged with that of other processes. */
  snapshot(): Promise<MetricsSnapshot> {
    return Registry.merge([this.#registry, this.#ofProcess]).getMetricsAsJSON()
  }
}
