/** Routes of an imported configuration: what becomes of the requests of an open place. */
import type { OpenPlace } from './doors.js'
import type { Migration } from './migration.js'
import type { PlacePath } from './places.js'
import type { ImportedSettings } from './upstreams.js'
import { From } from './yaml.js'

/** What a route says besides its host and path. */
export interface ImportedRoute {
  /** Absent where the gateway answers itself. */
  readonly upstream?: string
  readonly respond?: { readonly status: number }
  readonly rewrite?: ImportedRewrite
  readonly settings?: ImportedSettings
}

interface ImportedRewrite {
  readonly stripPrefix?: string
  readonly addPrefix?: string
}

/** Segments that are spelt alike in every gateway, with or without a slash at the end. */
const PLAIN_PATH = /^(?:\/(?!\.\.?(?:\/|$))[\w.~-]+)*\/?$/

/** How the path of a place is replaced by `target`, the rest kept; undefined where that is no matter of whole segments. */
export function rewriteOf({ path }: PlacePath, target: string): ImportedRewrite | undefined {
  if (target === path) return {}
  if (![path, target].every(one => PLAIN_PATH.test(one)) || path.endsWith('/') !== target.endsWith('/'))
    return undefined
  const [stripPrefix, addPrefix] = [path, target].map(one => one.replace(/\/$/, ''))
  return { ...(stripPrefix && { stripPrefix }), ...(addPrefix && { addPrefix }) }
}

const to = ({ upstream }: ImportedRoute): string => (upstream === undefined ? '' : `, to ${upstream}`)

/** The routes to open places, each once. */
export function routesTo(open: readonly OpenPlace[], into: Migration): From[] {
  const routes: From[] = []
  const present = new Map<string, string>()
  into.upstreams.settle(open.map(({ route }) => route))
  for (const { hosts, patterns, route, at } of open) {
    const { rewrite, settings, ...target } = route
    const written = { ...target, ...rewrite, ...into.upstreams.differing(route) }
    for (const host of hosts.length === 0 ? [undefined] : hosts) {
      for (const path of patterns) {
        const key = `${host ?? ''} ${path}`
        const other = present.get(key)
        if (other === undefined) {
          present.set(key, JSON.stringify(written))
          routes.push(new From(into.placeOf(at), { ...(host !== undefined && { host }), path, ...written }))
        } else if (other !== JSON.stringify(written) && route.respond === undefined)
          into.leftOut(at, `a second route of ${path}${to(route)}. The first one takes its requests.`)
      }
    }
  }
  return routes
}
