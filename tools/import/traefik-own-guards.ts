/** What guards a router of Traefik besides its middlewares: certificates of clients, its entry points, its parents. */
import type { Section } from './source.js'
import type { EntryPoints } from './traefik-static.js'
import { plain } from './traefik-words.js'

/** What the files say about routers as a whole. */
export interface AllRouters {
  readonly entryPoints: EntryPoints
  readonly tlsOptions: ReadonlyMap<string, Section>
  /** True where routers are on different entry points. */
  readonly areApart: boolean
}

/** @param points the names of its entry points; none: all */
export function ownGuards(router: Section, points: readonly string[], around: AllRouters): string[] {
  const guards: string[] = []
  const options = optionsOf(router, points, around.entryPoints)
  const [certified] = options
  if (certified !== undefined && options.every(one => asksCertificates(one, around.tlsOptions)))
    guards.push(`behind certificates of clients (tls options "${certified}")`)
  if (around.areApart && points.length > 0 && points.every(one => around.entryPoints.isNarrow(one)))
    guards.push(`on the entry point ${points.slice(0, 3).join(', ')} alone`)
  // Its requests are those that a parent's rule and middlewares let through.
  const parents = router.texts('parentRefs')
  if (parents.length > 0) guards.push(`behind the router ${parents.slice(0, 3).join(', ')}`)
  return guards
}

/** The options of TLS by which a router can be reached. */
function optionsOf(
  router: Section,
  points: readonly string[],
  entryPoints: EntryPoints,
): (string | undefined)[] {
  if ('tls' in router.node) return [router.section('tls').text('options') ?? 'default']
  return entryPoints.tlsOptionsOf(points)
}

function asksCertificates(options: string | undefined, all: ReadonlyMap<string, Section>): boolean {
  const known = options === undefined ? undefined : all.get(plain(options))
  return known !== undefined ? 'clientAuth' in known.node : options !== undefined && options !== 'default'
}
