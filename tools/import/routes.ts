/** The routes of an imported configuration, and what is said about places without one. */
import { type ClosedPath, type Doors, isAlone, type Opened, type Place } from './doors.js'
import type { Migration } from './migration.js'
import { From } from './yaml-text.js'

/** A place with a route: its patterns lead to the upstream. */
export interface Routed extends Opened {
  readonly patterns: readonly string[]
  readonly upstream: string
}

/** What can be reached, by which routes, and what is closed; reports what was guarded or is below it. */
export function routesThrough(
  doors: Doors<Routed>,
  into: Migration,
): {
  readonly open: readonly Routed[]
  readonly closed: readonly ClosedPath[]
  readonly routes: Map<string, From>
} {
  const { open, dropped, twins, widened, guarded, closed } = doors.resolve()
  for (const one of guarded) {
    const where = one.isClosed
      ? 'It is under "closed" and answers 404.'
      : 'No route leads there: it answers 404.'
    if (one.isGuard) into.lost(one.at, `${shown(one)} was ${one.what}. ${where}`)
    else if (one.isClosed) into.leftOut(one.at, `${shown(one)} was ${one.what}. ${where}`)
  }
  for (const one of dropped) {
    into.lost(
      one.at,
      `the route of ${one.patterns.join(', ')}. It is below a path that is closed, so it answers 404, too.`,
    )
  }
  for (const { open: one, guarded: by } of twins) {
    const [pattern = one.path] = one.patterns
    const [path, twin] = one.hasParameter ? [pattern, `${pattern}/`] : [one.path, one.twin]
    const why = `Sluice does not tell ${path} from ${twin}, and ${shown(by)} was ${by.what}.`
    into.lost(
      one.at,
      isAlone(one)
        ? `the route of ${one.patterns.join(', ')}. ${why} If ${twin} may be open as well, write the route, and take out what closes it under "closed".`
        : `${twin}, and ${path} with it, answer 404. ${why} If both may be open, take ${twin} out of "closed".`,
    )
  }
  for (const one of widened) into.changedOnce(one.at, `${one.twin} takes the route of ${one.path}, too.`)
  const routes = new Map<string, From>()
  const targets = new Map<string, string>()
  for (const one of open) {
    for (const host of one.hosts.length === 0 ? [undefined] : one.hosts) {
      for (const path of one.patterns) {
        const key = `${host ?? ''} ${path}`
        const present = targets.get(key)
        if (present === undefined) {
          targets.set(key, one.upstream)
          const entry = { ...(host !== undefined && { host }), path, upstream: one.upstream }
          routes.set(key, new From(into.placeOf(one.at), entry))
        } else if (present !== one.upstream) {
          into.leftOut(one.at, `the route of ${path} to ${one.upstream}. It goes to ${present} already.`)
        }
      }
    }
  }
  return { open, closed, routes }
}

/** A place as a reader of the other file knows it. */
function shown({ hosts, kind, path }: Place): string {
  const [host] = hosts
  const where = host === undefined ? '' : `${host}${hosts.length > 1 ? ' …' : ''} `
  if (kind === 'contains') return `${where}every path with "${path}"`
  return `${where}${kind === 'exact' ? path : `${path}${path.endsWith('/') ? '' : '/'}**`}`
}
