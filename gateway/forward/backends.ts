import { Deadlines } from '../http1/deadlines.js'
import { Backend, type BackendEvents } from './backend.js'
import { originsOf, type UpstreamSettings } from './transport.js'

/** The addresses of one upstream, for its requests and its WebSockets alike. */
export class Backends implements Iterable<Backend> {
  /** Deadlines of everything that waits for this upstream. */
  readonly deadlines = new Deadlines()
  readonly #all: readonly [Backend, ...Backend[]]
  /** Where the next search begins, so that equally busy backends take turns. */
  #next = 0

  constructor(settings: UpstreamSettings, events: BackendEvents) {
    const origins = originsOf(settings)
    const open = (origin: URL) => new Backend(origin, settings, events, this.deadlines, origins.length === 1)
    const [first, ...rest] = origins
    this.#all = [open(first), ...rest.map(open)]
  }

  /** The backend for a new request: one due for a trial, else the least busy one that is not ejected, or of all. */
  choose(): Backend {
    const [first] = this.#all
    if (this.#all.length === 1) return first
    const due = this.#all.find(backend => backend.isTrialDue())
    due?.startTrial()
    return due ?? this.#leastBusy(this.#all) ?? first
  }

  /** The next backend for a request after the backends in `tried` have failed; undefined if none is left. */
  chooseAfter(tried: ReadonlySet<Backend>): Backend | undefined {
    return this.#leastBusy(this.#all.filter(backend => !tried.has(backend)))
  }

  [Symbol.iterator](): Iterator<Backend> {
    return this.#all[Symbol.iterator]()
  }

  /** Closes all connections, except those of open WebSockets. */
  close(): void {
    for (const backend of this.#all) backend.close()
  }

  #leastBusy(among: readonly Backend[]): Backend | undefined {
    this.#next += 1
    let best: Backend | undefined
    for (let i = 0; i < among.length; i++) {
      const backend = among[(this.#next + i) % among.length] as Backend
      if (best === undefined || isBetter(backend, best)) best = backend
    }
    return best
  }
}

function isBetter(one: Backend, other: Backend): boolean {
  if (one.ejected !== other.ejected) return other.ejected
  return one.load < other.load
}
