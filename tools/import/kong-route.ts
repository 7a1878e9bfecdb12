/** A route of Kong: which requests it takes, and the plugins that hold for it. */

import { isHostName } from '../../config/checks/project-names.js'
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
  /** Its hosts that no route here can name. */
  readonly patterns: readonly string[]
  /** Its paths that are regular expressions, as written. */
  readonly expressions: readonly string[]
}

/** Paths without these characters alone were regular expressions before Kong 3. */
const PLAIN_BEFORE_3 = /^[\w.~/%-]*$/

/** Reads a route, and reports what of it has no counterpart. @param format `_format_version` */
export function readRoute(
  section: Section,
  service: Section | undefined,
  kong: KongPlugins,
  into: Migration,
  format = 3,
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
  const wild = hosts.filter(host => !isHostName(host))
  const common = { hosts: wild.length > 0 ? [] : hosts, ...(methods.length > 0 && { methods }) }
  const isOld = format < 3
  const isExpression = (path: string): boolean =>
    path.startsWith('~') || (isOld && !PLAIN_BEFORE_3.test(path))
  const guards = guardsAmong(plugins, kong)
  const longest = Math.max(...paths.map(({ length }) => length))
  const places = paths.flatMap((path): KongRoute['places'] => {
    if (isExpression(path)) {
      const rank = [...rankOf(section), 1, section.number('regex_priority') ?? 0]
      return literalsOf(`^${path.replace(/^~?\^?/, '')}`).map(one => ({
        ...common,
        ...one,
        rank,
        patterns: [],
      }))
    }
    const whole = below(path)
    const patterns = methods.length === 0 ? [whole] : methods.map(method => `${method} ${whole}`)
    // Before Kong 3, the longest path of a route decides for all of its paths.
    const length = isOld && guards.length > 0 ? longest : path.length
    return [{ ...common, kind: 'prefix' as const, path, rank: [...rankOf(section), 0, length], patterns }]
  })
  const match = places.flatMap(({ patterns }) => patterns)
  return {
    ...{ name, section, service, match, places, plugins },
    ...{ guards, matchers: matchersOf(section), patterns: wild, expressions: paths.filter(isExpression) },
  }
}

/** What decides before paths which route Kong takes: expressions, how many criteria there are, hosts, headers. */
function rankOf(route: Section): number[] {
  const headers = Object.keys(route.section('headers').node).length
  const lists = ['hosts', 'paths', 'methods', 'snis'].filter(key => route.texts(key).length > 0)
  return [
    'expression' in route.node ? 1 : 0,
    lists.length + (headers > 0 ? 1 : 0),
    lists.includes('hosts') ? 1 : 0,
    headers,
  ]
}
