import type { Balance } from '../../config/words/words.js'
import { Deadlines } from '../http1/deadlines.js'
import { Backend } from './backend.js'
import type { BackendEvents } from './backend-events.js'
import { choose } from './balance.js'
import { addressText, NameAddresses, type NameEvents } from './name-addresses.js'
import { systemLookup } from './resolver.js'
import { Retries } from './retries.js'
import type { Fault } from './standing.js'
import { type Origin, originsOf, type UpstreamSettings } from './transport.js'

/** How often it is seen whether the last request of an address has ended. */
const LEAVING_MS = 1_000

/** Receives events of an upstream. */
export type UpstreamEvents = BackendEvents & Omit<NameEvents, 'changed'>

/** The addresses of one upstream, for its requests and its WebSockets alike. */
export class Backends implements Iterable<Backend> {
  /** Deadlines of everything that waits for this upstream. */
  readonly deadlines = new Deadlines()
  /** Never empty. */
  #all: readonly Backend[] = []
  /** When a request may be tried at another of them. */
  readonly retries: Retries
  readonly #balance: Balance
  /** Nothing but their load tells backends apart. */
  readonly #isPlain: boolean
  /** Where the next search begins, so that equally busy backends take turns. */
  #next = 0

  /** Survives a reload. */
  readonly names: NameAddresses
  /** `same`: the backend of the same address so far. */
  readonly #open: (origin: Origin, same: Backend | undefined) => Backend
  /** Addresses that a name no longer has, until their last request has ended. */
  #leaving: readonly Backend[] = []
  #closing: NodeJS.Timeout | undefined

  /** @param known the same upstream so far, which a reload replaces: what it knows of unchanged addresses stays known */
  constructor(settings: UpstreamSettings, events: UpstreamEvents, known?: Backends, lookup = systemLookup) {
    const origins = originsOf(settings)
    const { balance = 'least-busy', slowStartMs, resolveMs } = settings
    this.retries = new Retries(settings.retries, (reason, result) => events.retried?.(reason, result))
    this.#balance = balance
    this.#isPlain =
      balance === 'least-busy' && slowStartMs === undefined && origins.every(({ weight }) => weight === 1)
    const isOnly = () => this.#all.length === 1
    this.#open = (origin, same) => new Backend(origin, settings, events, this.deadlines, isOnly, same)
    const onNames = { ...events, changed: () => this.#readdress() }
    this.names = new NameAddresses(origins, onNames, resolveMs === undefined ? undefined : known?.names)
    const all: Backend[] = []
    // Not in a function: it would hold `known`, which holds the one before, for as long as this is used.
    for (const origin of this.names.list()) all.push(this.#open(origin, known?.find(origin)))
    this.#all = all
    if (resolveMs !== undefined) this.names.start(resolveMs, lookup)
  }

  /** The backend for a new request: one due for a trial, else one that is not left out, or any if all are. */
  choose(): Backend {
    const [first] = this.#all as [Backend]
    if (this.#all.length === 1) return first
    // Not for retries: with two addresses, one of which fails, every request would begin at the same one.
    this.#next += 1
    const due = this.#all.find(backend => backend.isTrialDue())
    due?.startTrial()
    return due ?? this.#choose(this.#all) ?? first
  }

  /** True if there is one besides `current` that is not in `tried`. */
  hasOther(current: Backend, tried: ReadonlySet<Backend> | undefined): boolean {
    return this.#all.some(backend => backend !== current && !tried?.has(backend))
  }

  /** The next backend for a request after the backends in `tried` have failed; undefined if none is left. */
  chooseAfter(tried: ReadonlySet<Backend>): Backend | undefined {
    return this.#choose(this.#all.filter(backend => !tried.has(backend)))
  }

  /** Those that are leaving come last. */
  *[Symbol.iterator](): Generator<Backend> {
    yield* this.#all
    yield* this.#leaving
  }

  /** Why the name of a backend cannot be resolved anew, and since when: its address is the last that is known. */
  nameFaultOf({ origin }: Backend): Fault | undefined {
    return this.names.faultOf(origin)
  }

  /** Closes all connections, except those of open WebSockets. */
  close(): void {
    this.names.close()
    clearTimeout(this.#closing)
    for (const backend of this) backend.close()
  }

  /** The backend of an address. */
  find(origin: Origin): Backend | undefined {
    const wanted = addressText(origin)
    return [...this].find(({ address }) => address === wanted)
  }

  /** The addresses of names have changed. */
  #readdress(): void {
    const before = new Map(this.#all.map(backend => [backend.address, backend]))
    const resolved = this.#all.filter(({ origin }) => origin.ip !== undefined)
    const names = new Set(resolved.map(({ origin }) => origin.url.href))
    const all = this.names.list().map(origin => {
      const kept = before.get(addressText(origin))
      if (kept !== undefined) return kept
      const backend = this.#open(origin, this.find(origin))
      // Not those of the first answer for a name.
      if (names.has(origin.url.href)) backend.join()
      return backend
    })
    const stays = new Set(all)
    const gone = this.#all.filter(backend => !stays.has(backend))
    for (const backend of gone) backend.leave()
    this.#all = all
    this.#leaving = [...this.#leaving, ...gone]
    this.#closeUnused()
  }

  /** Closes addresses that are no longer used, once their last request and WebSocket have ended. */
  #closeUnused(): void {
    clearTimeout(this.#closing)
    for (const backend of this.#leaving) if (backend.load === 0) backend.close()
    this.#leaving = this.#leaving.filter(({ load }) => load > 0)
    if (this.#leaving.length > 0) this.#closing = setTimeout(() => this.#closeUnused(), LEAVING_MS).unref()
  }

  #choose(among: readonly Backend[]): Backend | undefined {
    if (this.#isPlain || among.length < 2) return this.#leastBusy(among)
    const usable = among.filter(({ isLeftOut }) => !isLeftOut)
    return choose(this.#balance, usable.length === 0 ? among : usable, performance.now())
  }

  #leastBusy(among: readonly Backend[]): Backend | undefined {
    let best: Backend | undefined
    for (let i = 0; i < among.length; i++) {
      const backend = among[(this.#next + i) % among.length] as Backend
      if (best === undefined || isBetter(backend, best)) best = backend
    }
    return best
  }
}

function isBetter(one: Backend, other: Backend): boolean {
  if (one.isLeftOut !== other.isLeftOut) return other.isLeftOut
  return one.load < other.load
}
