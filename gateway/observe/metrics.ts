/** The gateway's series, in the Prometheus text format. The home of prom-client. */
import { AggregatorRegistry, Counter, Gauge, Histogram, Registry } from 'prom-client'
import type { Observer } from '../plugin.js'
import type { Finished, Outcome, Project } from '../types.js'
import { CellCounter } from './cells.js'
import { methodLabel, outcomeLabel } from './labels.js'

const DURATIONS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]
const OVERHEADS = [
  0.000_025, 0.000_05, 0.0001, 0.000_25, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
]

/** What the gauges of load show. */
export interface Vitals {
  connections(): number
  readonly loopDelay: { readonly delayMs: number; readonly overloaded: boolean }
  backends(): Iterable<{ readonly upstream: string; readonly backend: string; readonly ejected: boolean }>
}

/** The series of one process, or of several that were merged. */
export type MetricsSnapshot = readonly { readonly type: unknown }[]

/** One answer to a scrape for several processes: what can be added up is, of states such as "away" the worst counts. */
export function mergeSnapshots(all: readonly MetricsSnapshot[]): Pick<Metrics, 'text' | 'snapshot'> {
  const merged = AggregatorRegistry.aggregate([...all])
  return { text: () => merged.metrics(), snapshot: () => merged.getMetricsAsJSON() }
}

/**
 * Labels come only from the policy and gateway files and from closed lists, never from a key, project or path.
 * The hot path adds to plain numbers; prom-client sees them when somebody scrapes.
 */
export class Metrics {
  readonly #registry = new Registry()
  readonly #requests = this.#cells(
    'sluice_requests_total',
    'Requests answered, by upstream, and by who sent the answer: upstream or gateway. Code 0: the client left first.',
    ['upstream', 'method', 'code', 'source'],
  )
  readonly #duration = this.#histogram(
    'sluice_request_duration_seconds',
    'From the request head to the end of the answer.',
    DURATIONS,
  )
  readonly #overhead = this.#histogram(
    'sluice_overhead_seconds',
    'Time spent on deciding about a request, counter store included.',
    OVERHEADS,
  )
  readonly #decisions = this.#cells(
    'sluice_decisions_total',
    'What each rule said: allowed, near (allowed with 80 % of a window used), limited, would_limit (report-only), error.',
    ['rule', 'plan', 'environment', 'mode', 'outcome'],
  )
  readonly #inflight = this.#gauge('sluice_inflight', 'Slots held, by in-flight rule.', ['rule'])
  readonly #storeErrors = this.#counter(
    'sluice_store_errors_total',
    'Calls to the counter store that failed or came too late.',
    ['op'],
  )
  readonly #storeLate = this.#counter(
    'sluice_store_late_total',
    'Answers of the counter store that came after the deadline, so that what they had charged was given back.',
  )
  readonly #fallback = this.#gauge(
    'sluice_store_fallback_active',
    '1 while the counter store is away and each rule goes on as its onStoreError says.',
    [],
    'max',
  )
  readonly #policy = this.#gauge(
    'sluice_policy_info',
    '1 for the revision of the policy in force.',
    ['rev'],
    'max',
  )
  readonly #reloads = this.#counter(
    'sluice_policy_reloads_total',
    'Attempts to load the configuration, the start included, by result: loaded or refused.',
    ['result'],
  )
  readonly #turnedAway = this.#counter(
    'sluice_connections_refused_total',
    'Connections refused, by the limit they were beyond: all (maxConnections) or client (maxConnectionsPerClient).',
    ['cap'],
  )

  get contentType(): string {
    return this.#registry.contentType
  }

  /** What each rule said so far, by its labels. */
  get decisions(): Iterable<[Readonly<Record<string, string>>, number]> {
    return this.#decisions
  }

  /** Feeds the request and decision series. */
  observer(): Observer {
    return { finished: event => this.#finished(event) }
  }

  /** An answer was given before there was a request: what came was not HTTP. */
  refusedUnread(status: number): void {
    this.#requests.inc('', 'other', String(status), 'gateway')
  }

  /** A policy came into force. */
  policyLoaded(revision: string): void {
    this.#policy.reset()
    this.#policy.set({ rev: revision }, 1)
    this.#reloads.inc({ result: 'loaded' })
  }

  /** A reload was tried: of one that was refused, nothing is in force. */
  reloaded({ result, revision }: { readonly result: 'loaded' | 'refused'; readonly revision: string }): void {
    if (result === 'loaded') this.policyLoaded(revision)
    else this.#reloads.inc({ result })
  }

  /** A call to the counter store failed; `op` is one of the few things it is asked for. */
  storeError(op: string): void {
    this.#storeErrors.inc({ op })
  }

  /** The counter store answered too late. */
  storeLate(): void {
    this.#storeLate.inc()
  }

  fallbackActive(active: boolean): void {
    this.#fallback.set(active ? 1 : 0)
  }

  /** `delta` slots of an in-flight rule were taken, or given back when negative. */
  inflight(rule: string, delta: number): void {
    this.#inflight.inc({ rule }, delta)
  }

  /** A connection was refused for the limit `cap`. */
  turnedAway(cap: 'all' | 'client'): void {
    this.#turnedAway.inc({ cap })
  }

  /** Adds the series of wrong keys; `counts` gives all so far. */
  watchKeys(
    counts: () => Iterable<{ readonly area: string; readonly outcome: string; readonly times: number }>,
  ): void {
    new Counter({
      name: 'sluice_wrong_keys_total',
      help: 'Wrong keys sent to the admin port and the embedded services, by area: answered 401 (refused) or told to wait (throttled).',
      labelNames: ['area', 'outcome'],
      registers: [this.#registry],
      collect() {
        this.reset()
        for (const { area, outcome, times } of counts()) this.inc({ area, outcome }, times)
      },
    })
  }

  /** Adds the health of each worker, which the supervisor knows. */
  watchWorkers(workers: () => Iterable<{ readonly pid: number; answers(): boolean }>): void {
    const help = '1 while the worker answers its supervisor; without a series for a process that has ended.'
    this.#gauge('sluice_worker_up', help, ['pid'], 'max', function () {
      this.reset()
      for (const { pid, answers } of workers()) this.set({ pid }, answers() ? 1 : 0)
    })
  }

  /** Adds the series of what is looked at only when somebody scrapes. */
  watch({ connections, loopDelay, backends }: Vitals): void {
    this.#looked('sluice_workers', 'Processes that take requests.', 'sum', () => 1)
    this.#looked('sluice_connections', 'Connections of clients that are open.', 'sum', connections)
    this.#looked(
      'sluice_event_loop_delay_seconds',
      'How late this process ran when it last looked, a tenth of a second ago at most.',
      'max',
      () => loopDelay.delayMs / 1000,
    )
    this.#looked(
      'sluice_overloaded',
      '1 while new requests get 503 because this process runs too late.',
      'max',
      () => (loopDelay.overloaded ? 1 : 0),
    )
    const help = '1 while an address of an upstream with several is left out because it does not answer.'
    this.#gauge('sluice_backend_ejected', help, ['upstream', 'backend'], 'max', function () {
      this.reset()
      for (const { upstream, backend, ejected } of backends()) {
        this.set({ upstream, backend }, ejected ? 1 : 0)
      }
    })
  }

  #looked(name: string, help: string, aggregator: 'sum' | 'max', value: () => number): void {
    this.#gauge(name, help, [], aggregator, function () {
      this.set(value())
    })
  }

  #gauge<L extends string>(
    name: string,
    help: string,
    labelNames: L[],
    aggregator: 'sum' | 'max' = 'sum',
    collect?: (this: Gauge<L>) => void,
  ): Gauge<L> {
    const registers = [this.#registry]
    return new Gauge({ name, help, labelNames, aggregator, registers, ...(collect && { collect }) })
  }

  #counter<L extends string>(name: string, help: string, labelNames: L[] = []): Counter<L> {
    return new Counter({ name, help, labelNames, registers: [this.#registry] })
  }

  #histogram(name: string, help: string, buckets: number[]): Histogram {
    return new Histogram({ name, help, buckets, registers: [this.#registry] })
  }

  /** A counter for the path of every request. */
  #cells(name: string, help: string, labelNames: string[]): CellCounter {
    const cells = new CellCounter(labelNames)
    new Counter({
      name,
      help,
      labelNames,
      registers: [this.#registry],
      collect() {
        this.reset()
        for (const [labels, count] of cells) this.inc(labels, count)
      },
    })
    return cells
  }

  /** The answer to a scrape. */
  text(): Promise<string> {
    return this.#registry.metrics()
  }

  /** Plain data, to be merged with that of other processes. */
  snapshot(): Promise<MetricsSnapshot> {
    return this.#registry.getMetricsAsJSON()
  }

  #finished({
    method: sent,
    project,
    upstream,
    verdict,
    status,
    source,
    durationMs,
    limiterUs,
  }: Finished): void {
    this.#requests.inc(upstream, methodLabel(sent), String(status), source)
    this.#duration.observe(durationMs / 1000)
    if (verdict === undefined) return
    this.#overhead.observe(limiterUs / 1_000_000)
    for (const outcome of verdict.outcomes) this.#decided(outcome, project)
    for (const outcome of verdict.reportOnly) this.#decided(outcome, project)
  }

  #decided(outcome: Outcome, project: Project | undefined): void {
    const { id, series = id, mode } = outcome.rule
    this.#decisions.inc(series, project?.plan ?? '', project?.environment ?? '', mode, outcomeLabel(outcome))
  }
}
