/** The addresses of a name, asked for again and again. */
import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'

/** Returns the IP addresses of a name; rejects if there is none. */
export type Lookup = (name: string) => Promise<readonly string[]>

/** As for any connection: by the hosts file and the name servers of the system, IPv4 and IPv6. */
export const systemLookup: Lookup = async name => {
  const all = await lookup(name, { all: true, order: 'verbatim' })
  return all.map(({ address }) => address)
}

export interface ResolverEvents {
  /** Never empty, in a fixed order. */
  resolved(addresses: readonly string[]): void
  /** The last answer is still the best one. */
  failed(error: Error): void
}

/** After this time without an answer the last one is said to be old; it is still waited for. */
const LATE_MS = 5_000
/** How soon it is asked again after a failure, at most. */
const RETRY_MS = 5_000

/** Asks once at a time. */
export class Resolver {
  readonly #name: string
  readonly #everyMs: number
  readonly #lookup: Lookup
  readonly #events: ResolverEvents
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(name: string, everyMs: number, lookup: Lookup, events: ResolverEvents) {
    this.#name = name
    this.#everyMs = everyMs
    this.#lookup = lookup
    this.#events = events
    void this.#ask()
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
  }

  async #ask(): Promise<void> {
    const late = setTimeout(() => this.#failed(new Error(`no answer within ${LATE_MS} ms`)), LATE_MS).unref()
    let next = this.#everyMs
    try {
      const answer = await this.#lookup(this.#name)
      // An address with a zone is of one machine only, and no part of a URL.
      const addresses = [...new Set(answer)].filter(one => isIP(one) !== 0 && !one.includes('%')).sort()
      if (addresses.length === 0) throw new Error(`${this.#name} has no address`)
      if (!this.#isClosed) this.#events.resolved(addresses)
    } catch (error) {
      this.#failed(error as Error)
      next = Math.min(next, RETRY_MS)
    }
    clearTimeout(late)
    if (!this.#isClosed) this.#timer = setTimeout(() => void this.#ask(), next).unref()
  }

  #failed(error: Error): void {
    if (!this.#isClosed) this.#events.failed(error)
  }
}
