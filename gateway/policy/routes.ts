/** Where a request goes: by host and path, unless the path is closed. */
import { isDeepStrictEqual } from 'node:util'
import type { Facts } from '../types.js'
import { foldPattern, type Pattern } from './pattern.js'
import { type Found, PathTrie } from './trie.js'

/** Paths that are answered 404 whatever routes say. All that an entry names must hold; letter case is ignored. */
export interface ClosedEntry {
  readonly host?: string | undefined
  /** This path alone. */
  readonly path?: string | undefined
  /** Every path that begins so; with a final slash also the path without it. */
  readonly prefix?: string | undefined
  readonly contains?: string | undefined
}

/** What a route says about the requests that take it. */
export interface RouteTarget {
  /** Name of the upstream. */
  readonly upstream: string
  readonly auth: 'required' | 'optional'
  /** What a credential must allow, all of it. */
  readonly scopes: readonly string[]
}

type Targets = PathTrie<RouteTarget>

export class Routes {
  readonly #everyHost: Targets = new PathTrie()
  readonly #hosts = new Map<string, Targets>()
  /** The same routes in lower case, for upstreams that ignore case. */
  readonly #folded = { everyHost: new PathTrie<RouteTarget>(), hosts: new Map<string, Targets>() }
  readonly #folding: ReadonlySet<string>
  readonly #closed: readonly ClosedEntry[]

  /** @param folding names of the upstreams that ignore letter case */
  constructor(closed: readonly ClosedEntry[], folding: ReadonlySet<string>) {
    this.#folding = folding
    this.#closed = closed.map(({ host, path, prefix, contains }) => ({
      host,
      path: path === undefined ? undefined : ended(path.toLowerCase()),
      prefix: prefix?.toLowerCase(),
      contains: contains?.toLowerCase(),
    }))
  }

  /** Adds a route. Returns the route that it ties with, if there is one. */
  add(host: string | undefined, pattern: Pattern, target: RouteTarget): Found<RouteTarget> | undefined {
    const tie = targetsOf(host, this.#everyHost, this.#hosts).add(pattern, target)
    if (tie !== undefined || !this.#folding.has(target.upstream)) return tie
    const { everyHost, hosts } = this.#folded
    const alike = targetsOf(host, everyHost, hosts).add(foldPattern(pattern), target)
    return alike !== undefined && !isDeepStrictEqual(alike.value, target) ? alike : undefined
  }

  /** The routes of one host, or of every host. */
  of(host: string | undefined): Targets {
    return targetsOf(host, this.#everyHost, this.#hosts)
  }

  /**
   * The route: what a host does not route falls to the routes of every host. If its upstream ignores case, the route that
   * any spelling of the path would take: another spelling must not be a way around what a route asks for.
   */
  find({ method, path, host }: Pick<Facts, 'method' | 'path' | 'host'>): Found<RouteTarget> | undefined {
    if (this.isClosed({ path, host })) return undefined
    const found = this.#hosts.get(host)?.find(method, path) ?? this.#everyHost.find(method, path)
    if (found === undefined || !this.#folding.has(found.value.upstream)) return found
    const { everyHost, hosts } = this.#folded
    const lower = path.toLowerCase()
    return hosts.get(host)?.find(method, lower) ?? everyHost.find(method, lower) ?? found
  }

  /** True for a path that is answered 404 whatever routes say. */
  isClosed({ path: asked, host }: Pick<Facts, 'path' | 'host'>): boolean {
    if (this.#closed.length === 0) return false
    const path = ended(asked.toLowerCase())
    return this.#closed.some(
      one =>
        (one.host === undefined || one.host === host) &&
        (one.path === undefined || one.path === path) &&
        (one.prefix === undefined || path.startsWith(one.prefix)) &&
        (one.contains === undefined || path.includes(one.contains)),
    )
  }
}

const ended = (path: string): string => (path.endsWith('/') ? path : `${path}/`)

function targetsOf(host: string | undefined, everyHost: Targets, hosts: Map<string, Targets>): Targets {
  if (host === undefined) return everyHost
  const known = hosts.get(host) ?? new PathTrie<RouteTarget>()
  hosts.set(host, known)
  return known
}
