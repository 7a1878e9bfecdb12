/** Places: the paths of a location, route or router of another gateway, as it matches them, and as Sluice writes them. */
import { isHostName } from '../../config/checks/rules.js'
import type { Origin } from './findings.js'

export interface MatchedPlace {
  /** None: every host. */
  readonly hosts: readonly string[]
  /** `prefix`: every path that begins so, within a segment, too. */
  readonly kind: 'exact' | 'prefix' | 'contains'
  readonly path: string
  /** Absent: every method. */
  readonly methods?: readonly string[]
  /** Of two places that match a request, the other gateway takes the one with the higher rank. */
  readonly rank: readonly number[]
}

export type PlacePath = Pick<MatchedPlace, 'kind' | 'path'>

/** The pattern of all paths that begin with `path`, segment by segment. */
export function below(path: string): string {
  let end = path.length
  while (path[end - 1] === '/') end -= 1
  return `${asLiteral(path.slice(0, end))}/**`
}

/** True for a place whose paths may end within a segment, which no pattern takes as a whole. */
export const isPartOfSegments = ({ kind, path }: PlacePath): boolean =>
  kind === 'prefix' && !path.endsWith('/')

/** What to report where a path is a prefix that may end within a segment. */
export const wholeSegments = (path: string): string =>
  `${below(path)} matches whole segments: ${path} and all below it, not ${path}x.`

/**
 * The pattern of exactly this path: a `*` stands for itself, and characters that a path cannot contain are escaped (RFC
 * 3986, 2.1).
 */
export const asLiteral = (path: string): string => escaped(path, /[^!-~]+/g).replaceAll('*', '%2A')

const escaped = (text: string, which: RegExp): string =>
  text.replace(which, some => Buffer.from(some).toString('hex').toUpperCase().replace(/../g, '%$&'))

/** True when the upstream would get other paths than before, which all began with `target`. */
export const isConfined = ({ kind, path }: PlacePath, target: string): boolean =>
  kind === 'exact' ? path !== target : target !== '' && target !== '/' && !path.startsWith(target)

/**
 * The other path that the route of a place takes in: a pattern does not tell a path from the same with a final slash, and
 * `/a/**` has `/a`.
 */
export function twinOf({ kind, path }: PlacePath): { readonly twin?: string } {
  if (path.length < 2) return {}
  if (path.endsWith('/')) return { twin: path.slice(0, -1) }
  return kind === 'exact' ? { twin: `${path}/` } : {}
}

/** True when two lists, of which an empty one stands for everything, have something in common. */
export const meet = (some: readonly string[], others: readonly string[]): boolean =>
  some.length === 0 || others.length === 0 || some.some(one => others.includes(one))

/** True for a host such as `*.acme.test`: every host below that name. */
export const isWildcard = (host: string): boolean => host.startsWith('*.')

const LONGEST_HOST = 253

/** True for a host that a route can have: a name, or a wildcard. */
export const isRouteHost = (host: string): boolean =>
  host.length <= LONGEST_HOST && isHostName(host.replace(/^\*\./, ''))

/** True when the first one stands for every host of the other. */
const hasHost = (host: string, other: string): boolean =>
  host === other || (isWildcard(host) && other.endsWith(host.slice(1)))

/** True for hosts, none standing for every one, whose routes are asked after those of this host. */
export const isWider = (hosts: readonly string[], than: string): boolean =>
  hosts.every(host => host !== than && (hasHost(host, than) || !hasHost(than, host)))

/** True when some request may be of hosts of both; none stand for every host. */
export const hostsMeet = (some: readonly string[], others: readonly string[]): boolean =>
  some.length === 0 ||
  others.length === 0 ||
  some.some(one => others.some(other => hasHost(one, other) || hasHost(other, one)))

/** True when some request may be of both. */
export const meetAt = (open: MatchedPlace, guarded: MatchedPlace): boolean =>
  hostsMeet(open.hosts, guarded.hosts) &&
  meet(open.methods ?? [], guarded.methods ?? []) &&
  overlap(open, guarded)

export function overlap(open: MatchedPlace, { kind, path }: MatchedPlace): boolean {
  if (kind === 'contains') return open.kind !== 'exact' || open.path.includes(path)
  const isBelowGuarded = kind === 'prefix' && open.path.startsWith(path)
  const isAboveGuarded = open.kind === 'prefix' && path.startsWith(open.path)
  return isBelowGuarded || isAboveGuarded || open.path === path
}

/** True for a place that is for all hosts and methods of the other. */
export const isFor = ({ hosts, methods }: MatchedPlace, other: MatchedPlace): boolean =>
  holdsAll(hosts, other.hosts, hasHost) && holdsAll(methods ?? [], other.methods ?? [])
const holdsAll = (
  some: readonly string[],
  others: readonly string[],
  has = (one: string, other: string): boolean => one === other,
): boolean =>
  some.length === 0 || (others.length > 0 && others.every(other => some.some(one => has(one, other))))

export function isBelow(rank: readonly number[], other: readonly number[]): boolean {
  for (const [i, mine] of rank.entries()) {
    const theirs = other[i] ?? 0
    if (mine !== theirs) return mine < theirs
  }
  return other.length > rank.length
}

/** A place as a reader of the other file knows it. */
export function placeText({ hosts, kind, path }: MatchedPlace): string {
  const [host] = hosts
  const where = host === undefined ? '' : `${host}${hosts.length > 1 ? ' …' : ''} `
  if (kind === 'contains') return `${where}every path with "${path}"`
  return `${where}${kind === 'exact' ? path : `${path}${path.endsWith('/') ? '' : '/'}**`}`
}

/** An entry of `closed`. */
export interface ClosedPath {
  readonly host?: string
  readonly path?: string
  readonly prefix?: string
  readonly contains?: string
}

/** An entry has one host or all of them, so a wildcard stands for all. */
export function entriesOf({ hosts, kind, path }: MatchedPlace): ClosedPath[] {
  const own = kind === 'exact' ? { path } : { [kind]: path }
  return hosts.length === 0 || hosts.some(isWildcard) ? [own] : hosts.map(host => ({ host, ...own }))
}

/** True when the entry closes every path of the place. */
export function closes(entry: ClosedPath, { hosts, kind, path }: MatchedPlace): boolean {
  if (entry.host !== undefined && !(hosts.length === 1 && hosts[0] === entry.host)) return false
  const whole = ended(path.toLowerCase())
  if (entry.prefix !== undefined) return whole.startsWith(entry.prefix.toLowerCase())
  if (entry.contains !== undefined) return whole.includes(entry.contains.toLowerCase())
  return entry.path === undefined || (kind === 'exact' && whole === ended(entry.path.toLowerCase()))
}

const ended = (path: string): string => (path.endsWith('/') ? path : `${path}/`)

/** More spellings than this are closed by the text before the first semicolon, or by the longest text between two. */
const MOST_SEMICOLONS = 3

/**
 * The entries with their paths as requests have them. The other gateway decoded %3B before it looked, and here it is
 * another path than one with a semicolon: both are closed. Several slashes are one here, so they are in an entry, too.
 */
export function asRequested({ host, path, prefix, contains = '' }: ClosedPath): ClosedPath[] {
  const own = host === undefined ? {} : { host }
  const kind = path !== undefined ? 'path' : prefix !== undefined ? 'prefix' : 'contains'
  const normal = escaped(path ?? prefix ?? contains, /[^\w.~!$&'()*+,;=:@/-]+/g)
  const [first = '', ...parts] = normal.replace(/\/{2,}/g, '/').split(';')
  if (parts.length <= MOST_SEMICOLONS) {
    const spell = (heads: string[], part: string): string[] =>
      heads.flatMap(head => [`${head};${part}`, `${head}%3B${part}`])
    return parts.reduce(spell, [first]).map(one => ({ ...own, [kind]: one }))
  }
  if (kind !== 'contains') return [{ ...own, prefix: first }]
  const [longest = ''] = [first, ...parts].sort((a, b) => b.length - a.length)
  return [longest === '' ? { ...own, prefix: '/' } : { ...own, contains: longest }]
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
export class Overlaps {
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
  found(): { readonly at: Origin; readonly patterns: readonly string[] }[] {
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
