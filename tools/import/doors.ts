/**
 * Keeps closed what another gateway guarded, or answered itself. Such a place gets no route; where the route of another
 * place would lead to its paths, they are closed as well (`closed` in gateway.yaml), so that no upstream gets requests
 * that never reached it before.
 */
import type { Origin } from './findings.js'
import type { Migration } from './migration.js'
import {
  asRequested,
  type ClosedPath,
  closes,
  entriesOf,
  isBelow,
  isFor,
  isWider,
  type MatchedPlace,
  meetAt,
  overlap,
  placeText,
} from './places.js'
import type { RouteParts } from './routes.js'

/** A place with a route. */
export interface OpenPlace extends MatchedPlace {
  readonly at: Origin
  readonly patterns: readonly string[]
  readonly route: RouteParts
  /** True for a path with a parameter, of which there are as many as values. */
  readonly hasParameter?: boolean
  /** The path with or without its final slash, which its route takes as well, and the other gateway gave to others. */
  readonly twin?: string
  /** True where the other gateway sent those who left the final slash out to the path with it, if no place had it. */
  readonly redirectsTwin?: boolean
}

interface ClosedPlace extends MatchedPlace {
  readonly at: Origin
  readonly what: string
  /** False for a place that anybody could enter, but whose requests went somewhere else. */
  readonly isGuard: boolean
}

/** An open place that Sluice does not tell from a guarded one: left out, or closed for these two paths. */
interface Twin {
  readonly open: OpenPlace
  readonly guarded: ClosedPlace
}

/** More closed places than this are closed as one: everything. */
const MOST_CLOSED = 1000

export class Doors {
  readonly #open: OpenPlace[] = []
  readonly #guarded = new Map<string, ClosedPlace>()

  open(place: OpenPlace): void {
    this.#open.push(place)
  }

  /** @param what how the place was guarded, such as `closed to all but 10.0.0.0/8`, or where its requests went */
  close(place: MatchedPlace, what: string, at: Origin, isGuard: boolean): void {
    const key = JSON.stringify([place.hosts, place.kind, place.path, place.methods, what, isGuard])
    const present = this.#guarded.get(key)
    // Of equal places the one that the other gateway prefers decides; the first one is reported.
    if (present === undefined || isBelow(present.rank, place.rank))
      this.#guarded.set(key, { ...place, what, at: present?.at ?? at, isGuard })
  }

  /** What can be reached, and what is closed; reports what was guarded, is below it, or cannot be distinguished from it. */
  resolve(into: Migration): { readonly open: readonly OpenPlace[]; readonly closed: readonly ClosedPath[] } {
    const all = [...this.#guarded.values()]
    const twins = all.length > MOST_CLOSED ? [] : this.#twins(all.filter(({ isGuard }) => isGuard))
    const walls = all.length > MOST_CLOSED ? [] : all.filter(guarded => this.#isWall(guarded))
    const shut = all.map(guarded => {
      if (walls.includes(guarded)) return { guarded, paths: [] }
      const own = twins.flatMap(one => (one.guarded === guarded ? closedTwin(one) : []))
      return { guarded, paths: [...this.#waysInto(guarded), ...own] }
    })
    const paths = shut.flatMap(one => one.paths.flatMap(entriesOf))
    const unique = [...new Map(paths.map(one => [JSON.stringify(one), one])).values()]
    const isFlood = all.length > MOST_CLOSED || unique.flatMap(asRequested).length > MOST_CLOSED
    const closed = isFlood ? [{ prefix: '/' }] : unique
    for (const one of shut) {
      const isClosed = isFlood || one.paths.length > 0
      reportGuarded(one.guarded, isClosed ? CLOSED : walls.includes(one.guarded) ? WALLED : UNREACHED, into)
    }
    const unsafe = new Set(twins.flatMap(({ open }) => (isAlone(open) ? open : [])))
    const open: OpenPlace[] = []
    for (const one of this.#open) {
      if (unsafe.has(one)) continue
      if (!closed.some(entry => closes(entry, one))) open.push(one)
      else if (one.route.upstream !== undefined) {
        const why = 'It is below a path that is closed, so it answers 404, too.'
        into.lost(one.at, `the route of ${one.patterns.join(', ')}. ${why}`)
      }
    }
    for (const one of twins) reportTwin(one, into)
    for (const one of this.#widened(open))
      into.changedOnce(one.at, `${one.twin} takes the route of ${one.path}, too.`)
    return { open: [...open, ...walls.map(wallOf)], closed }
  }

  /**
   * True for a whole host into which only routes of wider hosts lead. Its own routes stay, and a route that answers 404 keeps
   * the others out.
   */
  #isWall(guarded: ClosedPlace): boolean {
    const { hosts, kind, path, methods } = guarded
    if (hosts.length === 0 || kind !== 'prefix' || path !== '/' || methods !== undefined) return false
    const ways = this.#open.filter(open => leadsInto(open, guarded))
    return ways.length > 0 && ways.every(way => hosts.every(host => isWider(way.hosts, host)))
  }

  /** Open places with a twin that is refused, each with what refuses it. */
  #twins(guards: readonly ClosedPlace[]): Twin[] {
    const takersOf = this.#takers()
    return this.#open.flatMap(open => {
      const { twin } = open
      // The same answer at another path lets nothing in.
      if (open.route.upstream === undefined) return []
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

  /** Open places with a twin that nobody refused, and that was not open before. */
  #widened(open: readonly OpenPlace[]): OpenPlace[] {
    const takersOf = this.#takers()
    return open.filter(one => {
      if (one.twin === undefined || one.redirectsTwin) return false
      return takersOf({ ...one, kind: 'exact', path: one.twin }, one).length === 0
    })
  }

  /** Finds the open places, other than one of them, that take the requests of a place of one path. */
  #takers(): (place: MatchedPlace, besides: OpenPlace) => OpenPlace[] {
    const byPath = new Map<string, OpenPlace[]>()
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
  #waysInto(guarded: ClosedPlace): MatchedPlace[] {
    if (this.#guarded.size > MOST_CLOSED) return []
    const { hosts, rank, path: whole } = guarded
    const ways = this.#open.filter(open => leadsInto(open, guarded))
    if (ways.length === 0) return []
    const isWithin = (path: string): boolean => path.length > whole.length && path.startsWith(whole)
    if (guarded.kind !== 'prefix' || !ways.every(({ path }) => isWithin(path))) return [guarded]
    return ways.map(({ kind, path }) => ({ hosts, kind, path, rank }))
  }
}

/** True when a request that the guarded place would have refused may take the route of the open one. */
function leadsInto(open: MatchedPlace, guarded: ClosedPlace): boolean {
  if (!meetAt(open, guarded)) return false
  // Equals are one place on two addresses, such as http and https: a guard of one holds, an answer of one does not.
  return guarded.isGuard ? !isBelow(guarded.rank, open.rank) : isBelow(open.rank, guarded.rank)
}

/** True for a place whose route leads to one path, or one for each value of a parameter. */
const isAlone = ({ kind, hasParameter }: OpenPlace): boolean => kind === 'exact' || hasParameter === true

/** An exact place with a twin is left out as a whole; of a wider one, the two paths are closed. */
function closedTwin({ open, guarded: { hosts, rank } }: Twin): MatchedPlace[] {
  if (isAlone(open) || open.twin === undefined) return []
  return [{ hosts: open.hosts.length > 0 ? open.hosts : hosts, kind: 'exact', path: open.twin, rank }]
}

const wallOf = ({ hosts, kind, path, rank, at }: ClosedPlace): OpenPlace => ({
  ...{ hosts, kind, path, rank, at },
  patterns: ['/**'],
  route: { respond: { status: 404 } },
})

const CLOSED = 'It is under "closed" and answers 404.'
const WALLED = 'A route of its own answers 404.'
const UNREACHED = 'No route leads there: it answers 404.'

function reportGuarded(one: ClosedPlace, where: string, into: Migration): void {
  const sentence = `${placeText(one)} was ${one.what}. ${where}`
  if (one.isGuard) into.lost(one.at, sentence)
  else if (where !== UNREACHED) into.leftOut(one.at, sentence)
}

function reportTwin({ open, guarded }: Twin, into: Migration): void {
  const [pattern = open.path] = open.patterns
  const [path, twin] = open.hasParameter ? [pattern, `${pattern}/`] : [open.path, open.twin]
  const why = `Sluice does not tell ${path} from ${twin}, and ${placeText(guarded)} was ${guarded.what}.`
  into.lost(
    open.at,
    isAlone(open)
      ? `the route of ${open.patterns.join(', ')}. ${why} If ${twin} may be open as well, write the route, and take out what closes it under "closed".`
      : `${twin}, and ${path} with it, answer 404. ${why} If both may be open, take ${twin} out of "closed".`,
  )
}
