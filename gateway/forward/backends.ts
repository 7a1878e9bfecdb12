import type { Balance } from '../../config/words/words.js'
import { Deadlines } from '../http1/deadlines.js'
import { Backend, type BackendEvents } from './backend.js'
import { choose } from './balance.js'
import { Retries } from './retries.js'
import { type Origin, originsOf, type UpstreamSettings } from './transport.js'

/** The addresses of one upstream, for its requests and its WebSockets alike. */
export class Backends implements Iterable<Backend> {
  /** Deadlines of everything that waits for this upstream. */
  readonly deadlines = new Deadlines()
  readonly #all: readonly [Backend, ...Backend[]]
  /** When a request may be tried at another of them. */
  readonly retries: Retries
  readonly #balance: Balance
  /** Nothing but their load tells backends apart. */
  readonly #isPlain: boolean
  /** Where the next search begins, so that equally busy backends take turns. */
  #next = 0

  /** @param known the same upstream so far, which a reload replaces: what it knows of unchanged addresses stays known */
  constructor(settings: UpstreamSettings, events: BackendEvents, known?: Backends) {
    const origins = originsOf(settings)
    const { balance = 'least-busy', slowStartMs } = settings
    this.retries = new Retries(settings.retries, (reason, result) => events.retried?.(reason, result))
    this.#balance = balance
    this.#isPlain =
      balance === 'least-busy' && slowStartMs === undefined && origins.every(({ weight }) => weight === 1)
    const open = (origin: Origin) =>
      new Backend(origin, settings, events, this.deadlines, origins.length === 1, known?.find(origin))
    const [first, ...rest] = origins
    this.#all = [open(first), ...rest.map(open)]
  }

  /** The backend for a new request: one due for a trial, else one that is not left out, or any if all are. */
  choose(): Backend {
    const [first] = this.#all
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

  [Symbol.iterator](): Iterator<Backend> {
    return this.#all[Symbol.iterator]()
  }

  /** Closes all connections, except those of open WebSockets. */
  close(): void {
    for (const backend of this.#all) backend.close()
  }

  /** The backend of an address. */
  find({ url }: Origin): Backend | undefined {
    return this.#all.find(({ address }) => address === url.origin)
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
