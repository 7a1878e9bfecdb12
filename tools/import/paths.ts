/** Paths of other gateways as patterns; and the requests of other routes that a rule counts besides its own. */
import type { Position } from '../../config/yaml.js'

/** The pattern of all paths that begin with `path`, segment by segment. */
export function below(path: string): string {
  return `${asLiteral(path).replace(/(?<!\/)\/+$/, '')}/**`
}

/**
 * The pattern of exactly this path: a `*` stands for itself, and characters that a path cannot contain are escaped (RFC
 * 3986, 2.1).
 */
export const asLiteral = (path: string): string =>
  path
    .replace(/[^!-~]+/g, text => Buffer.from(text).toString('hex').toUpperCase().replace(/../g, '%$&'))
    .replaceAll('*', '%2A')

/** A set of requests: patterns, and their hosts; no hosts: all. */
interface Requests {
  readonly match: readonly string[]
  readonly hosts: readonly string[]
}

/**
 * In other gateways a request belongs to one route, location or router, and only its limits apply. Here every rule that
 * matches applies, so a rule for `/**` also counts requests of `/login`.
 */
export class Places {
  readonly #places: Requests[] = []
  readonly #rules: (Requests & { readonly at: Position })[] = []

  /** Adds a route, location or router. */
  add(match: readonly string[], hosts: readonly string[]): void {
    this.#places.push({ match, hosts })
  }

  addRule(rule: Requests & { readonly at: Position }): void {
    this.#rules.push(rule)
  }

  /** Rules that also count requests of other places, with the patterns of those. */
  overlaps(): { readonly at: Position; readonly patterns: readonly string[] }[] {
    return this.#rules.flatMap(({ at, match, hosts }) => {
      const patterns = this.#places
        .filter(place => meet(place.hosts, hosts))
        .flatMap(place => place.match)
        .filter(pattern => !match.includes(pattern) && match.some(own => covers(own, pattern)))
      return patterns.length === 0 ? [] : { at, patterns: [...new Set(patterns)] }
    })
  }
}

const meet = (some: readonly string[], others: readonly string[]): boolean =>
  some.length === 0 || others.length === 0 || some.some(host => others.includes(host))

function covers(wide: string, narrow: string): boolean {
  const [wideMethod, widePath] = split(wide)
  const [method, path] = split(narrow)
  if (wideMethod !== undefined && method !== undefined && wideMethod !== method) return false
  return path === widePath || (widePath.endsWith('/**') && `${path}/`.startsWith(widePath.slice(0, -2)))
}

function split(pattern: string): [string | undefined, string] {
  const [, method, path = pattern] = /^([A-Z]+) (.*)$/.exec(pattern) ?? []
  return [method, path]
}
