/**
 * Notices a proxy that is missing in `trustedProxies`: its requests name their clients in a field that is not believed,
 * so that all of them count as one client.
 */
import type { Observer } from '../plugin.js'
import type { Facts, Log } from '../types.js'
import { networkPrefix } from './redact.js'

/** The fields by which proxies name a client. */
const FIELDS = ['x-forwarded-for', 'forwarded', 'x-real-ip']
/** At most one line is logged in this time, by all processes; the state is reported for as long after the last such request. */
const PERIOD_MS = 60_000

/** Plain data: the last such request. */
export interface UntrustedForwarding {
  readonly field: string
  /** The network of the address that sent it, as records have it. */
  readonly from: string
  /** Milliseconds since the epoch. */
  readonly at: number
}

type Report = (seen: UntrustedForwarding) => void

/** Writes the line. */
export function warnOf(log: Log): Report {
  return ({ field, from }) =>
    log.warn(
      { field, from },
      'A request names its client in a field that is not believed: if it comes from your proxy, list its address in trustedProxies, or all clients behind it count as one',
    )
}

/** Passes on one in each period. */
export function seldom(report: Report): Report {
  let reportedAt = Number.NEGATIVE_INFINITY
  return seen => {
    if (isNear(reportedAt, seen.at)) return
    reportedAt = seen.at
    report(seen)
  }
}

export class ForwardingWatch {
  readonly #report: Report
  readonly #counted: () => void
  readonly #now: () => number
  #last: UntrustedForwarding | undefined

  /**
   * @param report called for one such request in each period
   * @param counted called for each
   */
  constructor(report: Report, counted: () => void, now: () => number = Date.now) {
    this.#report = seldom(report)
    this.#counted = counted
    this.#now = now
  }

  observer(): Observer {
    return { finished: ({ facts }) => this.#see(facts) }
  }

  /** The last such request of the past minute. */
  report(): UntrustedForwarding | null {
    return this.#last !== undefined && isNear(this.#last.at, this.#now()) ? this.#last : null
  }

  #see(facts: Facts | undefined): void {
    if (facts === undefined || facts.trusted) return
    const field = FIELDS.find(name => facts.header(name) !== undefined)
    if (field === undefined) return
    this.#counted()
    const at = this.#now()
    this.#last = { field, from: networkPrefix(facts.network), at }
    this.#report(this.#last)
  }
}

/** Either way, as the clock may have been set back since. */
function isNear(at: number, now: number): boolean {
  return Math.abs(now - at) < PERIOD_MS
}

/** The newest of what several processes tell. */
export function latestOf(reported: readonly (UntrustedForwarding | null)[]): UntrustedForwarding | null {
  return reported.reduce((newest, one) => ((one?.at ?? 0) > (newest?.at ?? 0) ? one : newest), null)
}
