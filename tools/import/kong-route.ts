/** A route of Kong: which requests it takes, and the plugins that hold for it. */
import type { Place } from './doors.js'
import { guardsAmong, matchersOf } from './kong-guard.js'
import type { KongPlugins } from './kong-plugins.js'
import type { Migration } from './migration.js'
import { literalsOf } from './nginx-regex.js'
import { below } from './paths.js'
import type { Section } from './source.js'

const ROUTE = [
  'name',
  'id',
  'service',
  'paths',
  'hosts',
  'methods',
  'headers',
  'snis',
  'sources',
  'destinations',
  'expression',
  'protocols',
  'strip_path',
  'plugins',
  'tags',
  'regex_priority',
  'request_buffering',
  'response_buffering',
  'created_at',
]

/** A route with the patterns and places it stands for. */
export interface KongRoute {
  readonly name: string
  readonly section: Section
  readonly service: Section | undefined
  readonly match: readonly string[]
  readonly places: readonly (Place & { readonly patterns: readonly string[] })[]
  /** Its plugins, the nearest first. */
  readonly plugins: readonly Section[]
  readonly guards: readonly Section[]
  readonly matchers: string | undefined
}

/** Reads a route, and reports what of it has no counterpart. */
export function readRoute(
  section: Section,
  service: Section | undefined,
  kong: KongPlugins,
  into: Migration,
): KongRoute {
  section.others(ROUTE, into, 'Routes have no counterpart of it.')
  if (service === undefined) into.leftOut(section.at(), 'a route of no service of this file.')
  const name = section.text('name') ?? `${service?.text('name') ?? 'route'}-route`
  const plugins = [
    ...kong.of(section, 'route'),
    ...(service === undefined ? [] : kong.of(service, 'service')),
    ...kong.global,
  ]
  const written = section.texts('paths')
  const paths = written.length === 0 ? ['/'] : written
  if (section.node.strip_path !== false && paths.some(path => path !== '/'))
    into.leftOut(section.at(), 'strip_path. Requests reach the upstream with the path they came with.')
  const methods = section.texts('methods').map(method => method.toUpperCase())
  const hosts = section.texts('hosts').map(host => host.toLowerCase().replace(/:\d+$/, ''))
  const criteria = ['hosts', 'paths', 'methods', 'headers', 'snis'].filter(key => key in section.node).length
  const places = paths.flatMap((path): KongRoute['places'] => {
    const common = {
      hosts: hosts.some(host => host.includes('*')) ? [] : hosts,
      ...(methods.length > 0 && { methods }),
    }
    if (path.startsWith('~')) {
      const priority = section.number('regex_priority') ?? 0
      return literalsOf(`^${path.slice(1).replace(/^\^/, '')}`).map(one => ({
        ...common,
        ...one,
        rank: [criteria, 1, priority],
        patterns: [],
      }))
    }
    const whole = below(path)
    const patterns = methods.length === 0 ? [whole] : methods.map(method => `${method} ${whole}`)
    return [{ ...common, kind: 'prefix' as const, path, rank: [criteria, 0, path.length], patterns }]
  })
  const match = places.flatMap(({ patterns }) => patterns)
  return {
    ...{ name, section, service, match, places, plugins },
    guards: guardsAmong(plugins, kong),
    matchers: matchersOf(section),
  }
}
