/** Where a request goes: by host and path, unless the path is closed. */
import type { Facts } from '../types.js'
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

export class Routes {
  readonly #everyHost = new PathTrie<RouteTarget>()
  readonly #hosts = new Map<string, PathTrie<RouteTarget>>()
  readonly #closed: readonly ClosedEntry[]

  constructor(closed: readonly ClosedEntry[]) {
    this.#closed = closed.map(({ host, path, prefix, contains }) => ({
      host,
      path: path === undefined ? undefined : ended(path.toLowerCase()),
      prefix: prefix?.toLowerCase(),
      contains: contains?.toLowerCase(),
    }))
  }

  /** The routes of one host, or of every host. */
  of(host: string | undefined): PathTrie<RouteTarget> {
    if (host === undefined) return this.#everyHost
    const known = this.#hosts.get(host) ?? new PathTrie<RouteTarget>()
    this.#hosts.set(host, known)
    return known
  }

  /** The route: what a host does not route falls to the routes of every host. */
  find({ method, path, host }: Pick<Facts, 'method' | 'path' | 'host'>): Found<RouteTarget> | undefined {
    if (this.isClosed({ path, host })) return undefined
    return this.#hosts.get(host)?.find(method, path) ?? this.#everyHost.find(method, path)
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
