/** The addresses of an upstream whose names are resolved anew: what is configured, with the last answer for each name. */
import { isIP } from 'node:net'
import { causeOf } from './failure.js'
import { type Lookup, Resolver } from './resolver.js'
import type { Fault } from './standing.js'
import type { Origin } from './transport.js'

/** Most addresses of an upstream that are used. */
const MOST = 64

export interface NameEvents {
  /** The addresses have changed. */
  changed(): void
  /** A name cannot be resolved from now on (`error`), or can be again. */
  resolving?(name: string, error: Error | undefined): void
  /** There are more addresses than are used. */
  tooMany?(count: number): void
}

export class NameAddresses {
  /** The last answer for each name. */
  readonly answers: Map<string, readonly string[]>
  /** Names that cannot be resolved. */
  readonly #faults = new Map<string, Fault>()
  readonly #configured: readonly Origin[]
  readonly #events: NameEvents
  #resolvers: readonly Resolver[] = []
  #hasTooMany = false

  /** @param known the answers so far, before a reload */
  constructor(configured: readonly Origin[], events: NameEvents, known?: NameAddresses) {
    this.#configured = configured
    this.#events = events
    this.answers = new Map(known?.answers)
  }

  /** Asks for each name now, and again after each `everyMs`. */
  start(everyMs: number, lookup: Lookup): void {
    const names = new Set(this.#configured.map(nameOf).filter(name => isIP(name) === 0))
    this.#resolvers = [...names].map(
      name =>
        new Resolver(name, everyMs, lookup, {
          resolved: addresses => this.#resolved(name, addresses),
          failed: error => this.#failed(name, error),
        }),
    )
  }

  close(): void {
    for (const resolver of this.#resolvers) resolver.close()
  }

  /** Why the name of an address cannot be resolved anew, and since when. */
  faultOf(origin: Origin): Fault | undefined {
    return this.#faults.get(nameOf(origin))
  }

  /** All addresses, each once. A name without an answer stands for itself: it is resolved for each connection. */
  list(): Origin[] {
    const all = this.#configured.flatMap(origin => {
      const answer = this.answers.get(nameOf(origin)) ?? [undefined]
      return answer.map(ip => ({ ...origin, ip }))
    })
    const each = [...new Map(all.map(origin => [addressText(origin), origin])).values()]
    if (each.length > MOST && !this.#hasTooMany) this.#events.tooMany?.(each.length)
    this.#hasTooMany = each.length > MOST
    return each.slice(0, MOST)
  }

  #resolved(name: string, addresses: readonly string[]): void {
    if (this.#faults.delete(name)) this.#events.resolving?.(name, undefined)
    const isSame = this.answers.get(name)?.join() === addresses.join()
    this.answers.set(name, addresses)
    if (!isSame) this.#events.changed()
  }

  #failed(name: string, error: Error): void {
    const known = this.#faults.get(name)
    this.#faults.set(name, { cause: causeOf(error), since: known?.since ?? Date.now() })
    if (known === undefined) this.#events.resolving?.(name, error)
  }
}

const nameOf = ({ url: { hostname } }: Origin) => hostname.replace(/^\[|\]$/g, '')

/** Scheme, host and port of an address; the host is the IP address if its name was resolved. */
export function addressText({ url, ip }: Origin): string {
  if (ip === undefined) return url.origin
  const shown = new URL(url.origin)
  shown.hostname = isIP(ip) === 6 ? `[${ip}]` : ip
  return shown.origin
}
