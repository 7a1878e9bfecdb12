/** Routers of Traefik that redirect: their requests come back to another router, which may guard them. */
import { literalsOf } from './nginx-regex.js'
import type { Section } from './source.js'
import type { EntryPoints } from './traefik-static.js'

export interface Redirect {
  /** Where it leads, in words. */
  readonly to: string
  /** True for one to https, whose paths are those of the routers of https. */
  readonly isToHttps: boolean
}

/** A redirect to another host or scheme alone, with the path that was asked for. */
const SAME_PATH = /^(?:https?|\$\{?\w+\}?):\/\/(?:[^/]+\/?)?\$\{?\w+\}?$/

/** What of a router can redirect its requests. */
export interface Redirecting {
  readonly router: Section
  /** The names of its entry points; none: all. */
  readonly points: readonly string[]
  readonly middlewares: readonly (Section | undefined)[]
  readonly entryPoints: EntryPoints
}

/** Where a router redirects the requests for a host, by a middleware or by its entry points. */
export function redirectOf(
  { router, points, middlewares, entryPoints }: Redirecting,
  host: string | undefined,
): Redirect | undefined {
  const options = 'tls' in router.node ? ['default'] : entryPoints.tlsOptionsOf(points)
  const isTls = options.length > 0 && options.every(one => one !== undefined)
  if (entryPoints.redirect(points)) return { to: 'another entry point', isToHttps: true }
  for (const [kind, settings] of middlewares.flatMap(one => one?.members() ?? [])) {
    // Requests that came by https are not redirected there.
    if (kind === 'redirectScheme' && !isTls)
      return { to: settings.text('scheme') ?? 'https', isToHttps: true }
    if (kind !== 'redirectRegex' || isOfOthers(settings.text('regex') ?? '', host)) continue
    const to = settings.text('replacement') ?? ''
    return { to, isToHttps: !isTls && SAME_PATH.test(to) }
  }
  return undefined
}

/** True for an expression of addresses of other hosts alone, such as `^https://www\.(.*)`. */
function isOfOthers(expression: string, host: string | undefined): boolean {
  if (host === undefined) return false
  return literalsOf(expression.replace(/^\^https?\??/, '')).every(({ path }) => {
    const [, rest] = path.split('://')
    return rest !== undefined && !rest.startsWith(host) && !`${host}/`.startsWith(rest)
  })
}
