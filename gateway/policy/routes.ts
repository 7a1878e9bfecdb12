/** Where a request goes: by host and path, unless the path is closed. */
import { isDeepStrictEqual } from 'node:util'
import type { Route } from '../route.js'
import type { Facts } from '../types.js'
import { HostTries } from './host-tries.js'
import { foldPattern, isServedMethod, type Pattern } from './pattern.js'
import type { QuotaPath } from './quota-path.js'
import type { Found, PathTrie } from './trie.js'
import { overridingMethod, ownReading, type UpstreamReading } from './upstream-reading.js'

/** Paths that are answered 404 whatever routes say. All that an entry names must hold; letter case is ignored. */
export interface ClosedEntry {
  readonly host?: string | undefined
  /** This path alone. */
  readonly path?: string | undefined
  /** Every path that begins so; with a final slash also the path without it. */
  readonly prefix?: string | undefined
  readonly contains?: string | undefined
}

type RoutedFacts = Pick<Facts, 'method' | 'path' | 'host' | 'header'>

export class Routes {
  readonly #tries = new HostTries<Route>()
  /** The routes to upstreams that ignore case, in lower case. */
  readonly #folded = new HostTries<Route>()
  /** All routes in lower case; empty if no upstream ignores case. */
  readonly #inAnyCase = new HostTries<Route>()
  readonly #readings: ReadonlyMap<string, UpstreamReading>
  readonly #readingOfOwn: UpstreamReading | undefined
  readonly #closed: readonly ClosedEntry[]
  readonly #quotaPath: { readonly path: QuotaPath; readonly found: Found<Route> } | undefined

  /**
   * @param readings how upstreams interpret requests, by name, where that matters
   * @param quotaPath comes before all routes, of every host
   */
  constructor(
    closed: readonly ClosedEntry[],
    readings: ReadonlyMap<string, UpstreamReading>,
    quotaPath?: QuotaPath,
  ) {
    this.#quotaPath = quotaPath && {
      path: quotaPath,
      found: { value: quotaPath.route, route: quotaPath.path },
    }
    this.#readings = readings
    this.#readingOfOwn = ownReading(readings)
    this.#closed = closed.map(({ host, path, prefix, contains }) => ({
      host,
      path: path === undefined ? undefined : ended(path.toLowerCase()),
      prefix: prefix?.toLowerCase(),
      contains: contains?.toLowerCase(),
    }))
  }

  /** Adds a route. Returns the route that it ties with, if there is one. */
  add(host: string | undefined, pattern: Pattern, target: Route): Found<Route> | undefined {
    const tie = this.#tries.add(host, pattern, target)
    if (tie === undefined && this.#readingOfOwn !== undefined) {
      this.#inAnyCase.add(host, foldPattern(pattern), target)
    }
    if (tie !== undefined || !this.#ignoresCase(target)) return tie
    const alike = this.#folded.add(host, foldPattern(pattern), target)
    return alike !== undefined && !isDeepStrictEqual(alike.value, target) ? alike : undefined
  }

  /** The routes that are written for this host. */
  of(host: string | undefined): PathTrie<Route> {
    return this.#tries.of(host)
  }

  /**
   * The route of the most specific host that has one for the path. If its upstream serves a POST as another method, that
   * method needs a route too, and what both ask for counts.
   */
  find(facts: RoutedFacts): Found<Route> | undefined {
    if (this.isClosed(facts)) return undefined
    if (this.#quotaPath?.path.isAt(facts.path)) return this.#quotaPath.found
    const found = this.#find(facts.method, facts)
    const field = found && this.#readingOf(found.value)?.methodOverride
    const method = overridingMethod(facts, field) ?? facts.method
    // What is no method is refused when the request is read for its upstream.
    if (found === undefined || method === facts.method || !isServedMethod(method)) return found
    const served = this.#find(method, facts)
    if (served === undefined) return undefined
    const isElsewhere = served.value.answer === undefined && served.value.upstream !== found.value.upstream
    const [taken, other] = isElsewhere ? [found, served] : [served, found]
    return { ...taken, value: strictest(taken.value, other.value) }
  }

  /** As `find`; a preflight gets what answers it, if the route of the request that it asks for says so. */
  routeFor(facts: RoutedFacts & Pick<Facts, 'preflight'>): Route | undefined {
    const preflight = facts.method === 'OPTIONS' && facts.preflight ? this.#findPreflight(facts) : undefined
    return preflight ?? this.find(facts)?.value
  }

  #findPreflight(facts: RoutedFacts): Route | undefined {
    const named = facts.header('access-control-request-method') ?? ''
    // With any other method, it is about the route that it would take itself.
    const method = isServedMethod(named) ? named : facts.method
    const { path, host } = facts
    // Of the request itself, the preflight has no more than its method.
    return this.find({ path, host, method, header: () => undefined })?.value.preflight
  }

  /**
   * A route to an upstream that ignores case takes every spelling of its paths, unless another route is written for the
   * spelling at hand: it must not be a way around what a route asks for.
   */
  #find(method: string, { path, host }: RoutedFacts): Found<Route> | undefined {
    const found = this.#tries.find(host, method, path)
    if (this.#readingOfOwn === undefined) return found
    const folded = path.toLowerCase()
    if (found !== undefined && this.#ignoresCase(found.value)) {
      return this.#folded.find(host, method, folded) ?? found
    }
    const inAnyCase = this.#inAnyCase.find(host, method, folded)
    const isWritten = inAnyCase?.route.toLowerCase() === found?.route.toLowerCase()
    if (inAnyCase !== undefined && !isWritten && this.#ignoresCase(inAnyCase.value)) return inAnyCase
    return found ?? this.#folded.find(host, method, folded)
  }

  #readingOf({ upstream }: Route): UpstreamReading | undefined {
    return upstream === undefined ? this.#readingOfOwn : this.#readings.get(upstream)
  }

  #ignoresCase(route: Route): boolean {
    return this.#readingOf(route)?.caseInsensitivePaths === true
  }

  /** True for a path that is answered 404 whatever routes say. */
  isClosed({ path: asked, host }: Pick<Facts, 'path' | 'host'>): boolean {
    if (this.#closed.length === 0) return false
    return this.closing(asked, host) >= 0
  }

  /** Index of the entry that closes the path, on every host if none is given; -1 if none does. */
  closing(asked: string, host?: string): number {
    const path = ended(asked.toLowerCase())
    return this.#closed.findIndex(
      one =>
        (one.host === undefined || one.host === host) &&
        (one.path === undefined || one.path === path) &&
        (one.prefix === undefined || path.startsWith(one.prefix)) &&
        (one.contains === undefined || path.includes(one.contains)),
    )
  }
}

/** The first one, with what either asks for. */
function strictest(one: Route, other: Route): Route {
  const isRequired = one.auth === 'required' || other.auth === 'required'
  return {
    ...one,
    auth: isRequired ? 'required' : 'optional',
    scopes: [...new Set([...one.scopes, ...other.scopes])],
  }
}

const ended = (path: string): string => (path.endsWith('/') ? path : `${path}/`)
