/** What is logged and counted of the addresses of upstreams. */
import type { UpstreamEvents } from '../forward/backends.js'
import { causeOf } from '../forward/failure.js'
import type { Log } from '../types.js'

/** Labels of a series. */
type Labels = Readonly<Record<string, string>>
/** A count with its labels. */
type Counted<L extends Labels> = L & { readonly count: number }

export type CheckCount = Counted<{
  readonly upstream: string
  readonly backend: string
  readonly result: 'passed' | 'failed'
}>
export type RetryCount = Counted<{
  readonly upstream: string
  readonly reason: string
  readonly result: 'sent' | 'over-budget'
}>

/** Counts that outlive the configuration. */
export class BackendCounts {
  /** Health checks that have ended. */
  readonly checks = new Counts<Omit<CheckCount, 'count'>>()
  readonly retries = new Counts<Omit<RetryCount, 'count'>>()
}

class Counts<L extends Labels> {
  readonly #all = new Map<string, { readonly labels: L; count: number }>()

  add(labels: L): void {
    const key = JSON.stringify(Object.values(labels))
    const known = this.#all.get(key)
    if (known === undefined) this.#all.set(key, { labels, count: 1 })
    else known.count += 1
  }

  /** The counts for which `isKnown` holds; the others are forgotten. */
  list(isKnown: (labels: L) => boolean): Counted<L>[] {
    for (const [key, { labels }] of this.#all) if (!isKnown(labels)) this.#all.delete(key)
    return [...this.#all.values()].map(({ labels, count }) => ({ ...labels, count }))
  }
}

/** Logs what happens to the backends of an upstream, and counts it. */
export function backendEvents(upstream: string, log: Log, counts: BackendCounts): UpstreamEvents {
  const unreachable = unreachableLog(upstream, log)
  return {
    unreachable: (_backend, error) => unreachable(error),
    ejected({ address: backend }, error) {
      log.warn(
        { upstream, backend, reason: causeOf(error) },
        'backend left out until it answers a trial request',
      )
    },
    returned({ address: backend }) {
      log.info({ upstream, backend }, 'backend answers again')
    },
    checked({ address }, error) {
      counts.checks.add({ upstream, backend: address, result: error === undefined ? 'passed' : 'failed' })
    },
    healthChanged({ address: backend }, error) {
      if (error === undefined) log.info({ upstream, backend }, 'backend passes its health checks again')
      else log.warn({ upstream, backend, reason: causeOf(error) }, 'backend fails its health checks')
    },
    retried: (reason, result) => counts.retries.add({ upstream, reason: String(reason), result }),
    resolving(name, error) {
      const fields = { upstream, name }
      if (error === undefined) log.info(fields, 'name resolved again')
      else
        log.warn({ ...fields, reason: causeOf(error) }, 'name not resolved: its last addresses stay in use')
    },
    tooMany(count) {
      log.warn({ upstream, addresses: count }, 'more addresses than are used: the first 64 get requests')
    },
    checkTooLong({ address: backend }, bytes) {
      log.warn(
        { upstream, backend, bytes },
        'the answer to the health check is longer than what is read of it',
      )
    },
  }
}

const REPEAT_MS = 10_000

/**
 * Logs a failure unless one with the same reason was logged in the last ten seconds: an outage fails every request.
 */
function unreachableLog(upstream: string, log: Log): (error: Error) => void {
  /** By reason. Reasons name addresses, so each address of the upstream has its own. */
  const silentUntil = new Map<string, number>()
  return error => {
    const { code } = error as NodeJS.ErrnoException
    const reason = causeOf(error)
    const now = performance.now()
    for (const [reported, until] of silentUntil) if (until <= now) silentUntil.delete(reported)
    if (silentUntil.has(reason)) return
    silentUntil.set(reason, now + REPEAT_MS)
    log.warn({ upstream, code, reason }, 'upstream unreachable')
  }
}
