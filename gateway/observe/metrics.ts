/** The gateway's own series. */
import { FLOODS, type Flood } from '../message.js'
import type { Observer } from '../plugin.js'
import type { Project } from '../types.js'
import type { Finished, Outcome } from '../verdict.js'
import { methodLabel, outcomeLabel } from './labels.js'
import { type MetricsSnapshot, Series } from './series.js'

const DURATIONS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]
const OVERHEADS = [
  0.000_025, 0.000_05, 0.0001, 0.000_25, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
]
const WAITS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const STORE_CALLS = [0.0001, 0.000_25, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1]

/**
 * Labels come only from the policy and gateway files and from closed lists, never from a key, project or path. The hot
 * path adds to plain numbers, which prom-client reads at each scrape.
 */
export class Metrics {
  readonly series = new Series()
  readonly #requests = this.series.cells(
    'sluice_requests_total',
    'Requests answered, by upstream, and by who sent the answer: upstream or gateway. Code 0: the client left first.',
    ['upstream', 'method', 'code', 'source'],
  )
  readonly #duration = this.series.histogram(
    'sluice_request_duration_seconds',
    'From the request head to the end of the answer.',
    DURATIONS,
  )
  readonly #upstreamDuration = this.series.histogram(
    'sluice_upstream_duration_seconds',
    "From the verdict to the head of the upstream's answer, or until it was given up.",
    DURATIONS,
    'upstream',
  )
  readonly #overhead = this.series.histogram(
    'sluice_overhead_seconds',
    'Time spent on deciding about a request, counter store included.',
    OVERHEADS,
  )
  readonly #decisions = this.series.cells(
    'sluice_decisions_total',
    'What each rule said: allowed, near (allowed with 80 % of a window used), limited, would_limit (report-only), error.',
    ['rule', 'plan', 'environment', 'mode', 'outcome'],
    labels => (labels.outcome === 'unavailable' ? { ...labels, outcome: 'error' } : labels),
  )
  readonly #credentials = this.series.cells(
    'sluice_credentials_total',
    'Credentials of requests that an identifier looked at, by what it found: verified, invalid, unchecked (it could not tell).',
    ['identifier', 'result'],
  )
  readonly #inflight = this.series.gauge('sluice_inflight', 'Slots held, by in-flight rule.', {
    labels: ['rule'],
  })
  readonly #waiting = this.series.gauge(
    'sluice_waiting',
    'Requests that wait for a rule to have room, by rule.',
    { labels: ['rule'] },
  )
  readonly #waited = this.series.counter(
    'sluice_waited_total',
    'Requests that have waited for a rule, by what became of them: admitted, refused, or gone (the client left).',
    ['rule', 'result'],
  )
  readonly #waits = this.series.histogram(
    'sluice_wait_seconds',
    'How long requests have waited for their rules to have room; those that did not wait are not counted.',
    WAITS,
  )
  readonly #storeErrors = this.series.counter(
    'sluice_store_errors_total',
    'Calls to the counter store that failed or came too late.',
    ['op'],
  )
  readonly #storeLate = this.series.counter(
    'sluice_store_late_total',
    'Answers of the counter store that came after the deadline, so that what they had charged was refunded.',
  )
  readonly #storeDuration = this.series.histogram(
    'sluice_store_duration_seconds',
    'Time that calls to Redis took; of those that failed, until they were given up.',
    STORE_CALLS,
  )
  readonly #fallback = this.series.gauge(
    'sluice_store_fallback_active',
    '1 while the counter store is away and each rule follows its onStoreError.',
    { aggregator: 'max' },
  )
  readonly #policy = this.series.gauge('sluice_policy_info', '1 for the revision of the policy in force.', {
    labels: ['rev'],
    aggregator: 'max',
  })
  readonly #loadedAt = this.series.gauge(
    'sluice_policy_reload_timestamp_seconds',
    'When the configuration in force was loaded, in seconds since 1970.',
    { aggregator: 'max' },
  )
  readonly #reloads = this.series.counter(
    'sluice_policy_reloads_total',
    'Attempts to load the configuration, the start included, by result: loaded or refused.',
    ['result'],
  )
  readonly #turnedAway = this.series.counter(
    'sluice_connections_refused_total',
    'Connections and HTTP/2 requests refused, by the limit they exceeded: all (maxConnections) or client (maxConnectionsPerClient).',
    ['cap'],
  )
  readonly #floods = this.series.counter(
    'sluice_http2_floods_total',
    'HTTP/2 connections ended because their clients sent too much of something that costs them nothing, by what it was.',
    ['flood'],
  )

  readonly #untrustedForwarding = this.series.counter(
    'sluice_untrusted_forwarding_total',
    'Requests with X-Forwarded-For, Forwarded or X-Real-IP from an address that is not in trustedProxies.',
    [],
  )

  /** `version` is that of the package. */
  constructor(version: string) {
    const build = this.series.gauge('sluice_build_info', 'Always 1: the versions of Sluice and of Node.', {
      labels: ['version', 'node'],
      aggregator: 'max',
    })
    build.set({ version, node: process.version }, 1)
    // Prometheus notices the first event of a series only if it was 0 before.
    for (const result of ['loaded', 'refused']) this.#reloads.inc({ result }, 0)
    for (const cap of ['all', 'client']) this.#turnedAway.inc({ cap }, 0)
    for (const flood of FLOODS) this.#floods.inc({ flood }, 0)
    this.#untrustedForwarding.inc({}, 0)
  }

  get contentType(): string {
    return this.series.contentType
  }

  /** The outcomes of each rule so far, by labels; finer than the series by `unavailable`. */
  get decisions(): Iterable<[Readonly<Record<string, string>>, number]> {
    return this.#decisions
  }

  /** Feeds the request and decision series. */
  observer(): Observer {
    return { finished: event => this.#finished(event) }
  }

  /** The listener refused something before there was a request. */
  refusedUnread(status: number): void {
    this.#requests.inc('', 'other', String(status), 'gateway')
  }

  /** A policy came into force. */
  policyLoaded(revision: string): void {
    this.#policy.reset()
    this.#policy.set({ rev: revision }, 1)
    this.#loadedAt.set(Date.now() / 1000)
    this.#reloads.inc({ result: 'loaded' })
  }

  /** A reload was attempted; a refused one changes nothing that is in force. */
  reloaded({ result, revision }: { readonly result: 'loaded' | 'refused'; readonly revision: string }): void {
    if (result === 'loaded') this.policyLoaded(revision)
    else this.#reloads.inc({ result })
  }

  /** A call to the counter store failed; `op` is one of its few operations. */
  storeError(op: string): void {
    this.#storeErrors.inc({ op })
  }

  /** A call to Redis ended after `ms`. */
  storeCalled(ms: number): void {
    this.#storeDuration.observe(ms / 1000)
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

  /** Requests that wait for a rule became one more, or one fewer. */
  waiting(rule: string, change: 1 | -1): void {
    this.#waiting.inc({ rule }, change)
  }

  /** A request no longer waits for a rule. */
  waited(rule: string, result: string): void {
    this.#waited.inc({ rule, result })
  }

  /** A connection was refused for the limit `cap`. */
  turnedAway(cap: 'all' | 'client'): void {
    this.#turnedAway.inc({ cap })
  }

  /** An HTTP/2 connection was ended for what its client sent too much of. */
  flooded(flood: Flood): void {
    this.#floods.inc({ flood })
  }

  /** A request named its client in a field that is not believed. */
  untrustedForwarding(): void {
    this.#untrustedForwarding.inc({})
  }

  /** The response to a scrape. */
  text(): Promise<string> {
    return this.series.text()
  }

  /** Plain data, to be merged with that of other processes. */
  snapshot(): Promise<MetricsSnapshot> {
    return this.series.snapshot()
  }

  #finished({
    method: sent,
    project,
    credential = 'none',
    identifier = '',
    upstream,
    verdict,
    status,
    source,
    durationMs,
    upstreamMs,
    waitedMs,
    limiterUs,
  }: Finished): void {
    this.#requests.inc(upstream, methodLabel(sent), String(status), source)
    this.#duration.observe(durationMs / 1000)
    if (upstreamMs !== undefined) this.#upstreamDuration.observe(upstreamMs / 1000, upstream)
    if (credential !== 'none') this.#credentials.inc(identifier, credential)
    if (verdict === undefined) return
    if (waitedMs !== undefined) this.#waits.observe(waitedMs / 1000)
    this.#overhead.observe(limiterUs / 1_000_000)
    for (const outcome of verdict.outcomes) this.decided(outcome, project)
    for (const outcome of verdict.reportOnly) this.decided(outcome, project)
  }

  /** What a rule said to a request, or to a message of a WebSocket. */
  decided(outcome: Outcome, project: Project | undefined): void {
    const { id, series = id, mode } = outcome.rule
    this.#decisions.inc(series, project?.plan ?? '', project?.environment ?? '', mode, outcomeLabel(outcome))
  }
}
