/** What is logged and counted of the addresses of upstreams. */
import type { BackendEvents } from '../forward/backend.js'
import { causeOf } from '../forward/failure.js'
import type { Log } from '../types.js'

type CheckResult = 'passed' | 'failed'

/** Counts that outlive the configuration. */
export class BackendCounts {
  readonly #checks = new Map<string, { readonly labels: CheckCount; count: number }>()

  /** A health check has ended. */
  checked(upstream: string, backend: string, result: CheckResult): void {
    const key = JSON.stringify([upstream, backend, result])
    const known = this.#checks.get(key)
    if (known === undefined) this.#checks.set(key, { labels: { upstream, backend, result }, count: 1 })
    else known.count += 1
  }

  /** Health checks by their result, of the addresses for which `isKnown` holds; the others are forgotten. */
  checks(
    isKnown: (upstream: string, backend: string) => boolean,
  ): (CheckCount & { readonly count: number })[] {
    for (const [key, { labels }] of this.#checks) {
      if (!isKnown(labels.upstream, labels.backend)) this.#checks.delete(key)
    }
    return [...this.#checks.values()].map(({ labels, count }) => ({ ...labels, count }))
  }
}

export interface CheckCount {
  readonly upstream: string
  readonly backend: string
  readonly result: CheckResult
}

/** Logs what happens to the backends of an upstream, and counts it. */
export function backendEvents(upstream: string, log: Log, counts: BackendCounts): BackendEvents {
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
      counts.checked(upstream, address, error === undefined ? 'passed' : 'failed')
    },
    healthChanged({ address: backend }, error) {
      if (error === undefined) log.info({ upstream, backend }, 'backend passes its health checks again')
      else log.warn({ upstream, backend, reason: causeOf(error) }, 'backend fails its health checks')
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
