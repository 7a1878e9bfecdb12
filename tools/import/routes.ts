/** Routes of an imported configuration: what becomes of the requests of an open place. */
import type { OpenPlace } from './doors.js'
import type { ImportedHeaders } from './fields.js'
import type { Migration } from './migration.js'
import type { PlacePath } from './places.js'
import type { ImportedSettings } from './upstreams.js'
import { From } from './yaml.js'

/** What a route says besides its host and path. */
export interface ImportedRoute {
  /** Absent where the gateway answers itself. */
  readonly upstream?: string
  readonly redirect?: { readonly to: string; readonly status: number }
  readonly respond?: { readonly status: number; readonly type?: string; readonly body?: string }
  readonly rewrite?: ImportedRewrite
  readonly settings?: ImportedSettings
  readonly headers?: ImportedHeaders
}

export interface ImportedRewrite {
  readonly stripPrefix?: string
  readonly addPrefix?: string
}

/** Segments that are spelt alike in every gateway, with or without a slash at the end. */
const PLAIN_PATH = /^(?:\/(?!\.\.?(?:\/|$))[\w.~-]+)*\/?$/

/** True for a place of whole segments alone, which a route has, too. */
export const isWholePath = ({ kind, path }: PlacePath): boolean =>
  PLAIN_PATH.test(path) && (kind === 'exact' || (kind === 'prefix' && path.endsWith('/')))

/** How the path of a place is replaced by `target`, the rest kept; undefined where that is no matter of whole segments. */
export function rewriteOf({ path }: PlacePath, target: string): ImportedRewrite | undefined {
  if (target === path) return {}
  if (path.endsWith('/') !== target.endsWith('/')) return undefined
  return prefixesOf(path.replace(/\/$/, ''), target.replace(/\/$/, ''))
}

/** What is taken away from the beginning of paths, and put before them; undefined unless both are whole segments. */
export function prefixesOf(stripPrefix: string, addPrefix: string): ImportedRewrite | undefined {
  if (![stripPrefix, addPrefix].every(one => PLAIN_PATH.test(one) && !one.endsWith('/'))) return undefined
  return { ...(stripPrefix !== '' && { stripPrefix }), ...(addPrefix !== '' && { addPrefix }) }
}

function writtenHeaders({ request, response }: ImportedHeaders = {}): object {
  return request === undefined && response === undefined ? {} : { headers: { request, response } }
}

const to = ({ upstream }: ImportedRoute): string => (upstream === undefined ? '' : `, to ${upstream}`)

/** The routes to open places, each once. */
export function routesTo(open: readonly OpenPlace[], into: Migration): From[] {
  const routes: From[] = []
  const present = new Map<string, string>()
  into.upstreams.settle(open.map(({ route }) => route))
  // On two addresses, such as those of http and https, a path may be answered on one and forwarded on the other.
  const forwarded = open.filter(({ route }) => route.upstream !== undefined)
  for (const { hosts, patterns, route, at } of new Set([...forwarded, ...open])) {
    const { rewrite, settings, headers, ...target } = route
    const written = { ...target, ...rewrite, ...writtenHeaders(headers), ...into.upstreams.differing(route) }
    for (const host of hosts.length === 0 ? [undefined] : hosts) {
      for (const path of patterns) {
        const key = `${host ?? ''} ${path}`
        const other = present.get(key)
        if (other === undefined) {
          present.set(key, JSON.stringify(written))
          routes.push(new From(into.placeOf(at), { ...(host !== undefined && { host }), path, ...written }))
        } else if (other !== JSON.stringify(written) && route.respond?.status !== 404)
          into.leftOut(at, `a second route of ${path}${to(route)}. The first one takes its requests.`)
      }
    }
  }
  return routes
}
