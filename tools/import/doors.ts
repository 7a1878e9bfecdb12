/**
 * Keeps closed what another gateway guarded, or answered itself. Such a place gets no route; where the route of another
 * place would lead to its paths, they are closed as well (`closed` in gateway.yaml), so that no upstream gets requests
 * that never reached it before.
 */
import { asWritten } from './closed-spellings.js'
import type { Origin } from './parts.js'

/** Paths of one location, route or router of another gateway, as it matches them. */
export interface Place {
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

export interface Opened extends Place {
  readonly at: Origin
  /** True for a path with a parameter, of which there are as many as values. */
  readonly hasParameter?: boolean
  /** The path with or without its final slash, which its route takes as well, and the other gateway gave to others. */
  readonly twin?: string
  /** True where the other gateway sent those who left the final slash out to the path with it, if no place had it. */
  readonly redirectsTwin?: boolean
}

export interface Guarded extends Place {
  readonly at: Origin
  readonly what: string
  /** False for a place that anybody could enter, but whose requests went somewhere else. */
  readonly isGuard: boolean
}

/** An entry of `closed`. */
export interface ClosedPath {
  readonly host?: string
  readonly path?: string
  readonly prefix?: string
  readonly contains?: string
}

export interface Resolved<O extends Opened> {
  readonly open: readonly O[]
  /** Open places that are below a closed one, so that no request would reach them. */
  readonly dropped: readonly O[]
  /** Open places that Sluice does not tell from a guarded one: left out, or closed for these two paths. */
  readonly twins: readonly Twin<O>[]
  /** Open places with a twin that nobody refused, and that was not open before. */
  readonly widened: readonly O[]
  readonly closed: readonly ClosedPath[]
  /** Each closed place, and whether an entry of `closed` keeps it shut. */
  readonly guarded: readonly (Guarded & { readonly isClosed: boolean })[]
}

interface Twin<O extends Opened> {
  readonly open: O
  readonly guarded: Guarded
}

/** More closed places than this are closed as one: everything. */
const MOST_CLOSED = 1000

export class Doors<O extends Opened> {
  readonly #open: O[] = []
  readonly #guarded = new Map<string, Guarded>()

  open(place: O): void {
    this.#open.push(place)
  }

  /** @param what how the place was guarded, such as `closed to all but 10.0.0.0/8`, or where its requests went */
  close(place: Place, what: string, at: Origin, isGuard = true): void {
    const key = JSON.stringify([place.hosts, place.kind, place.path, place.methods, what, isGuard])
    const present = this.#guarded.get(key)
    // Of equal places the one that the other gateway prefers decides; the first one is reported.
    if (present === undefined || isBelow(present.rank, place.rank)) {
      this.#guarded.set(key, { ...place, what, at: present?.at ?? at, isGuard })
    }
  }

  resolve(): Resolved<O> {
    const all = [...this.#guarded.values()]
    const twins = all.length > MOST_CLOSED ? [] : this.#twins(all.filter(({ isGuard }) => isGuard))
    const shut = all.map(guarded => ({
      guarded,
      paths: [
        ...this.#waysInto(guarded),
        ...twins.flatMap(one => (one.guarded === guarded ? closedTwin(one) : [])),
      ],
    }))
    const paths = shut.flatMap(one => one.paths.flatMap(entriesOf))
    const unique = [...new Map(paths.map(one => [JSON.stringify(one), one])).values()]
    const isFlood = all.length > MOST_CLOSED || unique.flatMap(asWritten).length > MOST_CLOSED
    const closed = isFlood ? [{ prefix: '/' }] : unique
    const guarded = shut.map(one => ({ ...one.guarded, isClosed: isFlood || one.paths.length > 0 }))
    const unsafe = new Set(twins.flatMap(({ open }) => (isAlone(open) ? open : [])))
    const left = this.#open.filter(one => !unsafe.has(one))
    const isDropped = (one: O): boolean => closed.some(entry => holds(entry, one))
    const open = left.filter(one => !isDropped(one))
    return {
      open,
      widened: this.#widened(open),
      dropped: left.filter(isDropped),
      twins,
      closed,
      guarded,
    }
  }

  /** Open places with a twin that is refused, each with what refuses it. */
  #twins(guards: readonly Guarded[]): Twin<O>[] {
    const takersOf = this.#takers()
    return this.#open.flatMap(open => {
      const { twin } = open
      if (open.hasParameter) {
        const refusing = guards.find(one => meetAt(open, one) && isBelow(one.rank, open.rank))
        return refusing === undefined ? [] : { open, guarded: refusing }
      }
      if (twin === undefined) return []
      const place = { ...open, kind: 'exact', path: twin } as const
      const own = guards.filter(one => meetAt(place, one) && (!open.redirectsTwin || one.path === twin))
      if (own.length === 0) return []
      const takers = takersOf(place, open)
      const guarded = own.find(one => !takers.some(({ rank }) => isBelow(one.rank, rank)))
      return guarded === undefined ? [] : { open, guarded }
    })
  }

  #widened(open: readonly O[]): O[] {
    const takersOf = this.#takers()
    return open.filter(
      one =>
        one.twin !== undefined &&
        !one.redirectsTwin &&
        takersOf({ ...one, kind: 'exact', path: one.twin }, one).length === 0,
    )
  }

  /** Finds the open places, other than one of them, that take the requests of a place of one path. */
  #takers(): (place: Place, besides: O) => O[] {
    const byPath = new Map<string, O[]>()
    for (const one of this.#open) {
      const same = byPath.get(one.path) ?? []
      byPath.set(one.path, same)
      same.push(one)
    }
    return (place, besides) =>
      Array.from({ length: place.path.length }, (_, i) => byPath.get(place.path.slice(0, i + 1)) ?? [])
        .flat()
        .filter(one => one !== besides && isFor(one, place) && overlap(place, one))
  }

  /** The paths to close so that no open place leads into the guarded one: it as a whole, or those within it. */
  #waysInto(guarded: Guarded): Place[] {
    if (this.#guarded.size > MOST_CLOSED) return []
    const ways = this.#open.filter(open => leadsInto(open, guarded))
    if (ways.length === 0) return []
    const areWithin = guarded.kind === 'prefix' && ways.every(({ path }) => isWithin(path, guarded.path))
    if (!areWithin) return [guarded]
    return ways.map(({ kind, path }) => ({ hosts: guarded.hosts, kind, path, rank: guarded.rank }))
  }
}

const isWithin = (path: string, wider: string): boolean =>
  path.length > wider.length && path.startsWith(wider)

/** True when a request that the guarded place would have refused may take the route of the open one. */
function leadsInto(open: Place, guarded: Guarded): boolean {
  if (!meetAt(open, guarded)) return false
  // Equals are one place on two addresses, such as http and https: a guard of one holds, an answer of one does not.
  return guarded.isGuard ? !isBelow(guarded.rank, open.rank) : isBelow(open.rank, guarded.rank)
}

/** True for a place whose route leads to one path, or one for each value of a parameter. */
export const isAlone = ({ kind, hasParameter }: Opened): boolean => kind === 'exact' || hasParameter === true

/** An exact place with a twin is left out as a whole; of a wider one, the two paths are closed. */
const closedTwin = ({ open, guarded }: Twin<Opened>): Place[] =>
  isAlone(open) || open.twin === undefined
    ? []
    : [
        {
          hosts: open.hosts.length > 0 ? open.hosts : guarded.hosts,
          kind: 'exact',
          path: open.twin,
          rank: guarded.rank,
        },
      ]

/** True when some request may be of both. */
const meetAt = (open: Place, guarded: Place): boolean =>
  meet(open.hosts, guarded.hosts) && meet(open.methods ?? [], guarded.methods ?? []) && overlap(open, guarded)

/** True for a place that is for all hosts and methods of the other. */
const isFor = ({ hosts, methods }: Place, other: Place): boolean =>
  holdsAll(hosts, other.hosts) && holdsAll(methods ?? [], other.methods ?? [])
const holdsAll = (some: readonly string[], others: readonly string[]): boolean =>
  some.length === 0 || (others.length > 0 && others.every(one => some.includes(one)))

const meet = (some: readonly string[], others: readonly string[]): boolean =>
  some.length === 0 || others.length === 0 || some.some(one => others.includes(one))

function overlap(open: Place, { kind, path }: Place): boolean {
  if (kind === 'contains') return open.kind !== 'exact' || open.path.includes(path)
  const isBelowGuarded = kind === 'prefix' && open.path.startsWith(path)
  const isAboveGuarded = open.kind === 'prefix' && path.startsWith(open.path)
  return isBelowGuarded || isAboveGuarded || open.path === path
}

function isBelow(rank: readonly number[], other: readonly number[]): boolean {
  for (const [i, mine] of rank.entries()) {
    const theirs = other[i] ?? 0
    if (mine !== theirs) return mine < theirs
  }
  return other.length > rank.length
}

function entriesOf({ hosts, kind, path }: Place): ClosedPath[] {
  const own = kind === 'exact' ? { path } : { [kind]: path }
  return hosts.length === 0 ? [own] : hosts.map(host => ({ host, ...own }))
}

/** True when the entry closes every path of the place. */
function holds(entry: ClosedPath, { hosts, kind, path }: Place): boolean {
  if (entry.host !== undefined && !(hosts.length === 1 && hosts[0] === entry.host)) return false
  const whole = ended(path.toLowerCase())
  if (entry.prefix !== undefined) return whole.startsWith(entry.prefix.toLowerCase())
  if (entry.contains !== undefined) return whole.includes(entry.contains.toLowerCase())
  return entry.path === undefined || (kind === 'exact' && whole === ended(entry.path.toLowerCase()))
}

const ended = (path: string): string => (path.endsWith('/') ? path : `${path}/`)
