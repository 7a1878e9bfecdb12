/** Series whose values are read only at a scrape. */
import type { Aggregator, Series } from './series.js'

/** Values of the load gauges. */
export interface Vitals {
  connections(): number
  readonly loopDelay: { readonly delayMs: number; readonly overloaded: boolean }
  /** `ejected` is undefined for an upstream's only address, which is never ejected. */
  backends(): Iterable<{
    readonly upstream: string
    readonly backend: string
    readonly ejected: boolean | undefined
    /** Set while it cannot be reached. */
    readonly fault?: object
    /** Set while it fails its health checks. */
    readonly unhealthy?: object
    /** It gets no more requests. */
    readonly isLeaving?: boolean
    readonly requests: number
    readonly webSockets: number
  }>
  /** Health checks so far. */
  checks(): Iterable<{
    readonly upstream: string
    readonly backend: string
    readonly result: string
    readonly count: number
  }>
  /** Retries so far. */
  retries(): Iterable<{
    readonly upstream: string
    readonly reason: string
    readonly result: string
    readonly count: number
  }>
}

/** Wrong keys sent to one area: the admin port or an embedded service. */
export interface WrongKeyCount {
  readonly area: string
  readonly outcome: string
  readonly times: number
}

export interface WorkerHealth {
  readonly pid: number
  answers(): boolean
}

/** `counts` returns the totals so far. */
export function watchKeys(series: Series, counts: () => Iterable<WrongKeyCount>): void {
  series.counter(
    'sluice_wrong_keys_total',
    'Wrong keys sent to the admin port and the embedded services, by area: answered 401 (refused) or told to wait (throttled).',
    ['area', 'outcome'],
    function () {
      this.reset()
      for (const { area, outcome, times } of counts()) this.inc({ area, outcome }, times)
    },
  )
}

/** @param counts the totals so far, by result */
export function watchNotifications(series: Series, counts: Readonly<Record<string, number>>): void {
  series.counter(
    'sluice_notifications_total',
    'Notifications of quotas (notify) by what became of them: sent; failed, for each attempt; dropped, for those given up.',
    ['result'],
    function () {
      this.reset()
      for (const [result, times] of Object.entries(counts)) this.inc({ result }, times)
    },
  )
}

/** A certificate that this gateway orders itself. */
export interface OrderedCertificate {
  readonly state: { readonly domains: readonly string[]; readonly expires: Date | null }
  readonly orders: Readonly<Record<'issued' | 'failed', number>>
}

/** Prometheus notices the first event of a series only if it was 0 before. */
const NO_ORDERS = { issued: 0, failed: 0 }

/** @param certificate undefined where none is ordered */
export function watchCertificate(series: Series, certificate: OrderedCertificate | undefined): void {
  series.gauge(
    'sluice_certificate_expires_timestamp_seconds',
    'When the ordered certificate in force ends, in seconds since 1970, by domain; without a series while there is none.',
    {
      labels: ['domain'],
      aggregator: 'max',
      collect() {
        this.reset()
        const { domains = [], expires } = certificate?.state ?? {}
        for (const domain of expires ? domains : []) this.set({ domain }, Number(expires) / 1000)
      },
    },
  )
  series.counter(
    'sluice_certificate_orders_total',
    'Orders of certificates that have ended, by result: issued or failed.',
    ['result'],
    function () {
      this.reset()
      for (const [result, times] of Object.entries(certificate?.orders ?? NO_ORDERS))
        this.inc({ result }, times)
    },
  )
}

export function watchWorkers(series: Series, workers: () => Iterable<WorkerHealth>): void {
  const help = '1 while the worker answers its supervisor; without a series for a process that has ended.'
  series.gauge('sluice_worker_up', help, {
    labels: ['pid'],
    aggregator: 'max',
    collect() {
      this.reset()
      for (const { pid, answers } of workers()) this.set({ pid }, answers() ? 1 : 0)
    },
  })
}

export function watchVitals(
  series: Series,
  { connections, loopDelay, backends, checks, retries }: Vitals,
): void {
  const used = () => [...backends()].filter(({ isLeaving }) => !isLeaving)
  watchNumber(series, 'sluice_workers', 'Processes that take requests.', 'sum', () => 1)
  watchNumber(series, 'sluice_connections', 'Connections of clients that are open.', 'sum', connections)
  watchNumber(
    series,
    'sluice_event_loop_delay_seconds',
    'Delay of the event loop of this process when it was last measured, at most a tenth of a second ago.',
    'max',
    () => loopDelay.delayMs / 1000,
  )
  watchNumber(
    series,
    'sluice_overloaded',
    '1 while new requests get 503 because the event loop is delayed too long.',
    'max',
    () => (loopDelay.overloaded ? 1 : 0),
  )
  series.gauge('sluice_upstream_inflight', 'Requests and WebSockets under way or waiting, by upstream.', {
    labels: ['upstream'],
    collect() {
      this.reset()
      for (const { upstream, requests, webSockets } of backends()) {
        this.inc({ upstream }, requests + webSockets)
      }
    },
  })
  series.gauge(
    'sluice_upstream_reachable',
    '0 while an address of an upstream cannot be connected to, or has failed several times in a row; else 1.',
    {
      labels: ['upstream', 'backend'],
      aggregator: 'min',
      collect() {
        this.reset()
        for (const { upstream, backend, fault } of used()) {
          this.set({ upstream, backend }, fault === undefined ? 1 : 0)
        }
      },
    },
  )
  series.gauge('sluice_backend_unhealthy', '1 while an address of an upstream fails its health checks.', {
    labels: ['upstream', 'backend'],
    aggregator: 'max',
    collect() {
      this.reset()
      for (const { upstream, backend, unhealthy } of used()) {
        this.set({ upstream, backend }, unhealthy === undefined ? 0 : 1)
      }
    },
  })
  series.counter(
    'sluice_health_checks_total',
    'Health checks of the addresses of upstreams that have ended, by result: passed or failed.',
    ['upstream', 'backend', 'result'],
    function () {
      this.reset()
      for (const { count, ...labels } of checks()) this.inc(labels, count)
    },
  )
  series.counter(
    'sluice_retries_total',
    'Requests sent to an upstream once more, by the reason (connect, or the status of its answer); over-budget: not sent, because too many were.',
    ['upstream', 'reason', 'result'],
    function () {
      this.reset()
      for (const { count, ...labels } of retries()) this.inc(labels, count)
    },
  )
  series.gauge(
    'sluice_backend_ejected',
    '1 while an address of an upstream with several is left out because it does not answer.',
    {
      labels: ['upstream', 'backend'],
      aggregator: 'max',
      collect() {
        this.reset()
        for (const { upstream, backend, ejected } of used()) {
          if (ejected !== undefined) this.set({ upstream, backend }, ejected ? 1 : 0)
        }
      },
    },
  )
}

function watchNumber(
  series: Series,
  name: string,
  help: string,
  aggregator: Aggregator,
  value: () => number,
): void {
  series.gauge(name, help, {
    aggregator,
    collect() {
      this.set(value())
    },
  })
}
