/** Series in the Prometheus text format, of one process or several. The gateway's only user of prom-client. */
import { AggregatorRegistry, Counter, collectDefaultMetrics, Gauge, type Metric, Registry } from 'prom-client'
import { CellCounter, CellHistogram } from './cells.js'

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

export type Aggregator = 'sum' | 'max'

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
