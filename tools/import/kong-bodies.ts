/** Kong's request-size-limiting. */
import type { KongRoute } from './kong-route.js'
import type { Migration } from './migration.js'
import type { Section } from './source.js'

/** The largest body of routes becomes that of their upstream. */
export function limitBodies(
  routes: readonly KongRoute[],
  upstreams: ReadonlyMap<Section, string | undefined>,
  into: Migration,
): void {
  const sizes = new Map<Section, Map<number, Section>>()
  const without = new Set<Section>()
  for (const { service, plugins } of routes) {
    const plugin = plugins.find(one => one.text('name') === 'request-size-limiting')
    if (service === undefined) continue
    if (plugin === undefined) without.add(service)
    else sizes.set(service, (sizes.get(service) ?? new Map()).set(bytesOf(plugin), plugin))
  }
  for (const [service, found] of sizes) {
    const maxBody = Math.min(...found.keys())
    const [plugin] = found.values()
    const name = upstreams.get(service)
    if (plugin === undefined || name === undefined || !(maxBody >= 0)) continue
    into.upstreams.limitBody(name, maxBody)
    if (found.size > 1 || without.has(service)) {
      into.changed(
        plugin.at(),
        `maxBody is of the whole upstream "${name}": the smallest one holds for all of its routes.`,
      )
    }
  }
}

const UNITS: Readonly<Record<string, number>> = { bytes: 1, kilobytes: 1024, megabytes: 1024 * 1024 }

function bytesOf(plugin: Section): number {
  const config = plugin.section('config')
  return Math.floor(
    (config.number('allowed_payload_size') ?? 128) *
      (UNITS[config.text('size_unit') ?? 'megabytes'] ?? Number.NaN),
  )
}
