/** Kong's routes: which requests one takes, what guards it, and where its requests go. */
import { type Findings, shortened } from './findings.js'
import { transformersOf } from './kong-fields.js'
import type { KongPlugins } from './kong-plugins.js'
import { below, isRouteHost, type MatchedPlace } from './places.js'
import { literalsOf } from './regex.js'
import { type Rewrite, rewriteOf } from './routes.js'
import type { AddressLine } from './rules.js'
import { type Section, words } from './yaml.js'

const ROUTE = [
  ...words('name id service paths hosts methods headers snis sources destinations expression protocols'),
  ...words('strip_path plugins tags regex_priority request_buffering response_buffering created_at'),
]

/** A route with the patterns and places it stands for. */
export interface KongRoute {
  readonly name: string
  readonly section: Section
  readonly service: Section | undefined
  readonly match: readonly string[]
  readonly places: readonly (MatchedPlace & { readonly patterns: readonly string[] })[]
  /** Its plugins, the nearest first. */
  readonly plugins: readonly Section[]
  readonly guards: readonly Section[]
  /** What a request must have besides host, method and path. */
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
  into: Findings,
  format = 3,
): KongRoute {
  section.others(ROUTE, into, 'Routes have no counterpart of it.')
  if (service === undefined) into.leftOut(section.at(), 'a route of no service of this file.')
  const ofService = service === undefined ? [] : kong.of(service, 'service')
  const plugins = [...kong.of(section, 'route'), ...ofService, ...kong.global]
  const written = section.texts('paths')
  const paths = written.length === 0 ? ['/'] : written
  const methods = section.texts('methods').map(method => method.toUpperCase())
  const hosts = section.texts('hosts').map(host => host.toLowerCase().replace(/:\d+$/, ''))
  const wild = hosts.filter(host => !isRouteHost(host))
  const common = { hosts: wild.length > 0 ? [] : hosts, ...(methods.length > 0 && { methods }) }
  const isOld = format < 3
  const isExpression = (path: string): boolean =>
    path.startsWith('~') || (isOld && !PLAIN_BEFORE_3.test(path))
  const guards = guardsAmong(plugins, kong)
  const longest = Math.max(...paths.map(({ length }) => length))
  const places = paths.flatMap((path): KongRoute['places'] => {
    if (isExpression(path)) {
      const rank = [...rankOf(section), 1, section.number('regex_priority') ?? 0]
      const literals = literalsOf(`^${path.replace(/^~?\^?/, '')}`)
      return literals.map(one => ({ ...common, ...one, rank, patterns: [] }))
    }
    const whole = below(path)
    const patterns = methods.length === 0 ? [whole] : methods.map(method => `${method} ${whole}`)
    // Before Kong 3, the longest path of a route decides for all of its paths.
    const length = isOld && guards.length > 0 ? longest : path.length
    return [{ ...common, kind: 'prefix' as const, path, rank: [...rankOf(section), 0, length], patterns }]
  })
  return {
    ...{ section, service, places, plugins, guards, patterns: wild },
    name: section.text('name') ?? `${service?.text('name') ?? 'route'}-route`,
    match: places.flatMap(({ patterns }) => patterns),
    matchers: matchersOf(section),
    expressions: paths.filter(isExpression),
  }
}

/** What decides before paths which route Kong takes: expressions, how many criteria there are, hosts, headers. */
function rankOf(route: Section): number[] {
  const headers = Object.keys(route.section('headers').node).length
  const lists = ['hosts', 'paths', 'methods', 'snis'].filter(key => route.texts(key).length > 0)
  const plain = route.texts('hosts').every(host => !host.includes('*')) ? 1 : 0
  const criteria = lists.length + (headers > 0 ? 1 : 0)
  return ['expression' in route.node ? 1 : 0, criteria, lists.includes('hosts') ? 1 : 0, plain, headers]
}

/** Plugins that ask for a key alone can be a rule of the whole gateway: requests of no consumer are refused. */
export const KEY_AUTH = 'key-auth'

/** The plugins that guard a route, of which the nearest of each kind applies. */
function guardsAmong(plugins: readonly Section[], kong: KongPlugins): Section[] {
  const seen = new Set<string>()
  return plugins.filter(plugin => {
    const name = plugin.text('name') ?? ''
    if (seen.has(name)) return false
    seen.add(name)
    return name === KEY_AUTH ? kong.anonymousOf(plugin) === undefined : !kong.isHarmless(plugin)
  })
}

/** The words of lists, under their names now and before. */
const allowedBy = (config: Section): string[] => [...config.texts('allow'), ...config.texts('whitelist')]
const deniedBy = (config: Section): string[] => [...config.texts('deny'), ...config.texts('blacklist')]

export function guardText(plugin: Section): string {
  const name = plugin.text('name') ?? 'a plugin without a name'
  const config = plugin.section('config')
  const allowed = allowedBy(config)
  switch (name) {
    case 'ip-restriction':
      if (allowed.length > 0) return `closed to all but ${shortened(allowed)}`
      return `closed to ${shortened(deniedBy(config))}`
    case 'acl':
      if (allowed.length > 0) return `for the groups ${shortened(allowed)} alone (acl)`
      return 'closed to some groups (acl)'
    case 'request-termination':
      return `answered ${config.text('status_code') ?? 503} by request-termination`
    default:
      return `behind ${name}`
  }
}

export function linesOf(plugin: Section): AddressLine[] {
  const config = plugin.section('config')
  const allowed = allowedBy(config)
  return [
    ...deniedBy(config).map(network => ({ allow: false, network })),
    ...allowed.map(network => ({ allow: true, network })),
    ...(allowed.length > 0 ? [{ allow: false, network: 'all' }] : []),
  ]
}

/** What of a route a request must have besides host, method and path; undefined when nothing. */
function matchersOf(route: Section): string | undefined {
  const parts = ['headers', 'snis', 'sources', 'destinations', 'expression'].filter(key => key in route.node)
  const protocols = route.texts('protocols')
  const headers = Object.keys(route.section('headers').node).slice(0, 3)
  const what = parts.map(key => (key === 'headers' ? `the header ${headers.join(', ')}` : key))
  if (protocols.length > 0 && !protocols.includes('http')) what.push(`the protocol ${protocols.join(' or ')}`)
  return what.length === 0 ? undefined : what.join(' and ')
}

/** Where the requests of a place go if not to its upstream with the path they came with; undefined when there. */
export function sentElsewhere(
  { section, service, plugins }: KongRoute,
  place: MatchedPlace,
): string | undefined {
  const uri = transformersOf(plugins, 'request')
    .map(config => config.section('replace').text('uri'))
    .find(text => text !== undefined)
  if (uri !== undefined) return `sent on as ${uri}`
  // The text that an expression begins with is no condition of its own: these paths are the route's.
  const paths = section.texts('paths')
  const isOwn = place.path === '/' || paths.length === 0 || paths.includes(place.path)
  if (place.kind === 'prefix' && !isOwn) return 'matched by a regular expression'
  const base = basePathOf(service)
  return base !== '' && rewriteAt({ section, service }, place) === undefined
    ? `sent on below ${base}`
    : undefined
}

/** How the path of a request changes for the upstream; undefined when no route can say it. */
export function rewriteAt(
  { section, service }: Pick<KongRoute, 'section' | 'service'>,
  { path }: MatchedPlace,
): Rewrite | undefined {
  const stripped = section.node.strip_path === false ? '' : path.replace(/\/$/, '')
  return rewriteOf({ kind: 'prefix', path: `${stripped}/` }, `${basePathOf(service)}/`)
}

/** The path that a service puts before that of the request. */
function basePathOf(service: Section | undefined): string {
  const url = service?.text('url') ?? ''
  const path = service?.text('path') ?? (URL.canParse(url) ? new URL(url).pathname : '')
  return path.replace(/\/$/, '')
}
