/** Paths of other gateways as patterns; and the requests of other routes that a rule counts besides its own. */
import type { Place } from './doors.js'
import type { Origin } from './parts.js'

/** The pattern of all paths that begin with `path`, segment by segment. */
export function below(path: string): string {
  let end = path.length
  while (path[end - 1] === '/') end -= 1
  return `${asLiteral(path.slice(0, end))}/**`
}

/**
 * The pattern of exactly this path: a `*` stands for itself, and characters that a path cannot contain are escaped (RFC
 * 3986, 2.1).
 */
export const asLiteral = (path: string): string => escaped(path, /[^!-~]+/g).replaceAll('*', '%2A')

/** The path as requests have it in normal form. */
export const asNormal = (path: string): string => escaped(path, /[^\w.~!$&'()*+,;=:@/-]+/g)

const escaped = (text: string, which: RegExp): string =>
  text.replace(which, some => Buffer.from(some).toString('hex').toUpperCase().replace(/../g, '%$&'))

/** True when the upstream would get other paths than before, which all began with `target`. */
export const isConfined = ({ kind, path }: Pick<Place, 'kind' | 'path'>, target: string): boolean =>
  kind === 'exact' ? path !== target : target !== '' && target !== '/' && !path.startsWith(target)

/**
 * The other path that the route of a place takes in: a pattern does not tell a path from the same with a final slash, and
 * `/a/**` has `/a`.
 */
export function twinOf({ kind, path }: Pick<Place, 'kind' | 'path'>): { readonly twin?: string } {
  if (path.length < 2) return {}
  if (path.endsWith('/')) return { twin: path.slice(0, -1) }
  return kind === 'exact' ? { twin: `${path}/` } : {}
}

/** A set of requests: patterns, and projects; no projects: all. */
interface Requests {
  readonly match: readonly string[]
  readonly projects: readonly string[]
}
interface CountingRule extends Requests {
  readonly at: Origin
  readonly others: Set<string>
}

/** Most comparisons: a file of a million bytes must not take minutes, and nobody reads that many findings. */
const MOST_LOOKS = 1_000_000
const MOST_SHOWN = 4

/**
 * In other gateways a request belongs to one route, location or router, and only its limits apply. Here every rule that
 * matches applies, so a rule for `/**` also counts requests of `/login`.
 */
export class Places {
  readonly #places: Requests[] = []
  readonly #rules: CountingRule[] = []

  /** Adds a route, location or router. */
  add(match: readonly string[], projects: readonly string[]): void {
    this.#places.push({ match, projects })
  }

  addRule(rule: Requests & { readonly at: Origin }): void {
    this.#rules.push({ ...rule, others: new Set() })
  }

  /** Rules that also count requests of other places, with the patterns of those. */
  overlaps(): { readonly at: Origin; readonly patterns: readonly string[] }[] {
    const byPattern = new Map<string, CountingRule[]>()
    for (const rule of this.#rules) {
      for (const pattern of rule.match) {
        const known = byPattern.get(pattern) ?? []
        byPattern.set(pattern, known)
        known.push(rule)
      }
    }
    let looks = 0
    for (const { match, projects } of this.#places) {
      for (const pattern of match) {
        for (const wider of widerThan(pattern)) {
          for (const rule of byPattern.get(wider) ?? []) {
            looks += 1
            if (looks > MOST_LOOKS) break
            if (rule.match.length < 100 && rule.match.includes(pattern)) continue
            if (rule.others.size < MOST_SHOWN && meet(projects, rule.projects)) rule.others.add(pattern)
          }
        }
      }
    }
    return this.#rules.flatMap(({ at, others }) => (others.size === 0 ? [] : { at, patterns: [...others] }))
  }
}

/** The patterns that take in all requests of a pattern, and its path with any method. */
export function* widerThan(pattern: string): Generator<string> {
  const space = pattern.indexOf(' ')
  const method = pattern.slice(0, space + 1)
  const segments = pattern.slice(space + 1).split('/')
  if (method !== '') yield pattern.slice(space + 1)
  for (let i = segments.at(-1) === '**' ? segments.length - 2 : segments.length; i > 0; i--) {
    const wider = `${segments.slice(0, i).join('/')}/**`
    if (method !== '') yield method + wider
    yield wider
  }
}

const meet = (some: readonly string[], others: readonly string[]): boolean =>
  some.length === 0 || others.length === 0 || some.some(one => others.includes(one))
