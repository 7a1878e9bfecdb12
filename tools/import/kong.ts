/** Kong's declarative configuration: services, routes, what guards them, limits (developer.konghq.com). */
import { importKongConf, KongConsumers } from './kong-consumers.js'
import { changesOf, reportFields } from './kong-fields.js'
import { KongLimits } from './kong-limits.js'
import { isLimiter, KongPlugins, namesOf, reference } from './kong-plugins.js'
import {
  guardText,
  KEY_AUTH,
  type KongRoute,
  linesOf,
  readRoute,
  rewriteAt,
  sentElsewhere,
} from './kong-routes.js'
import type { Migration } from './migration.js'
import { wholeSegments } from './places.js'
import { deniedByAll } from './rules.js'
import { LONGEST_TIMEOUT_MS, type WeightedAddress } from './upstreams.js'
import { readYaml, type Section, type SourceFile, words } from './yaml.js'

const WANTED = {
  format: 'kong',
  name: 'Kong’s declarative configuration',
  keys: ['services', 'routes', 'consumers', 'plugins', 'upstreams', '_format_version'],
  nullIsAbsent: true,
}
const READ = [
  ...words('services routes consumers consumer_groups keyauth_credentials plugins upstreams'),
  ...words('consumer_group_consumers _format_version _transform _info _comment'),
]
const SERVICE = [
  ...words('name id url protocol host port path routes plugins tags connect_timeout read_timeout'),
  ...words('write_timeout enabled created_at'),
]

/** @param conf kong.conf, if it was given */
export function importKong(source: SourceFile, into: Migration, conf?: SourceFile): void {
  const file = readYaml(source, WANTED, into)
  if (file === undefined) return
  const knowsClients = conf !== undefined && importKongConf(conf, into)
  new KongImport(file, into, knowsClients).read()
}

const nameOf = (one: Section): string | undefined => one.text('name')

class KongImport {
  readonly #file: Section
  readonly #into: Migration
  readonly #plugins: KongPlugins
  readonly #knowsClients: boolean
  /** The upstream of each service that can have one. */
  readonly #upstreams = new Map<Section | undefined, string>()

  constructor(file: Section, into: Migration, knowsClients: boolean) {
    this.#file = file
    this.#into = into
    this.#knowsClients = knowsClients
    this.#plugins = new KongPlugins(file, into)
  }

  read(): void {
    this.#file.others(READ, this.#into, 'The import does not read it.')
    this.#file.section('_info').others(['select_tags'], this.#into, 'The import does not apply it.')
    const services = this.#file.list('services')
    const byName = new Map(services.flatMap(one => namesOf(one).map(name => [name, one])))
    const format = this.#file.number('_format_version')
    const read = (route: Section, service: Section | undefined): KongRoute =>
      readRoute(route, service, this.#plugins, this.#into, format)
    const routes = [
      ...services.flatMap(service => service.list('routes').map(route => read(route, service))),
      ...this.#file.list('routes').map(route => read(route, byName.get(reference(route, 'service') ?? ''))),
    ]
    this.#readServices(services)
    const waived = this.#waived(routes)
    const keyAuth = [
      ...new Set(routes.flatMap(({ plugins }) => plugins.filter(one => nameOf(one) === KEY_AUTH))),
    ]
    const open = routes.filter(route => this.#door(route, waived))
    const [first] = keyAuth
    if (first !== undefined && open.length > 0) {
      this.#into.lost(
        first.at(),
        'the fields X-Consumer-ID, X-Consumer-Username, X-Consumer-Custom-ID, X-Consumer-Groups, X-Credential-Identifier and X-Anonymous-Consumer, which Kong sets or removes. The upstream gets what the client sends in them, and must not believe it.',
      )
      for (const one of this.#file.list('consumers'))
        reportFields(this.#plugins.of(one, 'consumer'), this.#into)
    }
    const consumers = new KongConsumers(this.#into, this.#plugins)
    consumers.read(this.#file, keyAuth)
    const isAnonymous = keyAuth.some(plugin => this.#plugins.anonymousOf(plugin) !== undefined)
    if (!isAnonymous && waived.has(KEY_AUTH)) this.#into.projects.rejectUnknown()
    new KongLimits(this.#into, this.#plugins, consumers, this.#knowsClients).read(open)
    this.#plugins.reportUnused()
  }

  /** Guards that hold for every route, and that the whole gateway can replace: by name. */
  #waived(routes: readonly KongRoute[]): ReadonlySet<string> {
    const waived = new Set<string>()
    const guardOf = (route: KongRoute, name: string): Section | undefined =>
      route.guards.find(one => nameOf(one) === name)
    const own = routes.filter(({ guards }) =>
      guards.every(one => nameOf(one) === KEY_AUTH || nameOf(one) === 'ip-restriction'),
    )
    if (own.length > 0 && own.every(route => guardOf(route, KEY_AUTH) !== undefined)) waived.add(KEY_AUTH)
    const lists = own.map(route => guardOf(route, 'ip-restriction'))
    const [first] = lists
    const networks = this.#knowsClients ? deniedByAll(lists.map(one => one && linesOf(one))) : undefined
    if (first === undefined || networks === undefined) return waived
    this.#into.rules.deny(networks, first.at())
    return waived.add('ip-restriction')
  }

  /** Opens a route, or closes it. @returns whether it is open */
  #door(route: KongRoute, waived: ReadonlySet<string>): boolean {
    const { section, service, places, matchers, patterns, name } = route
    const guards = route.guards.filter(one => !waived.has(nameOf(one) ?? ''))
    const [guard] = guards
    const protocols = section.texts('protocols')
    if (guard !== undefined || (protocols.length > 0 && !protocols.includes('http'))) {
      const whats = [...guards.map(guardText), ...(matchers === undefined ? [] : [`with ${matchers} alone`])]
      const at = guard?.at() ?? section.at('protocols')
      for (const place of places) this.#into.close(place, whats.join(', '), at)
      return false
    }
    if (matchers !== undefined) {
      const what = `the route "${name}" was reachable with ${matchers} alone`
      this.#into.lost(section.at(), `${what}. It is left out.`)
      return false
    }
    if (patterns.length > 0) {
      const what = `the route "${name}" was for the hosts ${patterns.slice(0, 3).join(', ')} alone`
      const why = 'Hosts are written out, without patterns, so it is left out.'
      this.#into.lost(section.at('hosts'), `${what}. ${why}`)
      return false
    }
    // A disabled service has no routes in Kong either.
    if (service?.node.enabled === false) return false
    const upstream = this.#upstreams.get(service)
    const nowhere = service === undefined ? 'of no service' : `sent to the service "${nameOf(service) ?? ''}"`
    const changes = upstream === undefined ? {} : changesOf(route.plugins, this.#into)
    for (const place of places) {
      const elsewhere = upstream === undefined ? nowhere : sentElsewhere(route, place)
      if (elsewhere !== undefined) this.#into.divert(place, elsewhere, section.at())
      else if (upstream !== undefined && place.patterns.length > 0) {
        if (!place.path.endsWith('/')) this.#into.changedOnce(section.at('paths'), wholeSegments(place.path))
        const rewrite = rewriteAt(route, place)
        if (rewrite === undefined)
          this.#into.leftOut(section.at(), 'strip_path. Prefixes are replaced here by whole segments.')
        this.#into.open(
          { ...place, route: { upstream, ...rewrite, ...changes, settings: bodyLimitOf(route.plugins) } },
          section.at(),
        )
      }
    }
    const but = route.plugins.some(isLimiter)
      ? ' Where its requests take other routes, they do so without its own limits.'
      : ''
    for (const path of route.expressions) {
      const sentence = `the path "${path}". Patterns are not regular expressions.${but}`
      this.#into.leftOut(section.at('paths'), sentence)
    }
    if (upstream === undefined) return false
    this.#into.place(route.match, [])
    return true
  }

  #readServices(services: readonly Section[]): void {
    const pools = new Map(this.#file.list('upstreams').map(one => [nameOf(one) ?? '', one]))
    for (const service of services) {
      service.others(SERVICE, this.#into, 'Upstreams have settings of their own in gateway.yaml.')
      if (service.node.enabled === false) {
        this.#into.leftOut(service.at('enabled'), 'a service that is not enabled.')
        continue
      }
      const protocol = service.text('protocol') ?? 'http'
      const host = service.text('host') ?? ''
      const port = service.text('port') ?? (protocol === 'https' ? '443' : '80')
      const hosts = this.#targetsOf(pools.get(host)) ?? [{ url: `${host}:${port}`, weight: 1 }]
      const url = service.text('url')
      const urls =
        url === undefined ? hosts.map(one => ({ ...one, url: `${protocol}://${one.url}` })) : [originOf(url)]
      const upstream = this.#into.upstreams.add(nameOf(service) ?? 'service', urls, service.at())
      if (upstream === undefined) continue
      this.#upstreams.set(service, upstream)
      this.#check(upstream, pools.get(host))
      const timeouts = timeoutsOf(service)
      if (Object.keys(timeouts).length > 0) this.#into.upstreams.set(upstream, { timeouts })
    }
  }

  #targetsOf(pool: Section | undefined): WeightedAddress[] | undefined {
    const roundRobin = 'The addresses of an upstream share the requests.'
    pool?.others(['name', 'targets', 'tags', 'id', 'healthchecks'], this.#into, roundRobin)
    return pool?.list('targets').map(target => {
      target.others(['target', 'weight', 'tags', 'id'], this.#into, roundRobin)
      return { url: target.text('target') ?? '', weight: target.number('weight') ?? 100 }
    })
  }

  /** Writes the active checks of a pool, which Kong makes if they have an interval. */
  #check(upstream: string, pool: Section | undefined): void {
    if (pool === undefined || !('healthchecks' in pool.node)) return
    const checks = pool.section('healthchecks')
    checks.others(['active'], this.#into, 'Requests that fail count in any case.')
    const active = checks.section('active')
    const [healthy, unhealthy] = [active.section('healthy'), active.section('unhealthy')]
    const every = (healthy.number('interval') ?? 0) * 1000
    const failures = ['http_failures', 'tcp_failures', 'timeouts'].map(key => unhealthy.number(key) ?? 0)
    const most = failures.filter(count => count > 0)
    if (every <= 0 || most.length === 0) return
    const health = {
      ...{ path: active.text('http_path') ?? '/', every, timeout: (active.number('timeout') ?? 1) * 1000 },
      ...{ healthy: healthy.number('successes') || 1, unhealthy: Math.min(...most) },
    }
    this.#into.upstreams.check(upstream, health, active.at())
    const sentence = 'a health check passes with 2xx alone, and its failures count together.'
    this.#into.changedOnce(active.at(), sentence)
  }
}

/** The address of a service without its path, which its routes put before that of requests. */
function originOf(url: string): string {
  const { pathname, search } = URL.canParse(url) ? new URL(url) : { pathname: '/', search: '' }
  return pathname === '/' || search !== '' ? url : new URL('/', url).href
}

const UNIT_BYTES: Readonly<Record<string, number>> = { bytes: 1, kilobytes: 1024, megabytes: 1024 ** 2 }

/** The largest body of the nearest request-size-limiting. */
function bodyLimitOf(plugins: readonly Section[]): { maxBody?: number } {
  const config = plugins.find(one => nameOf(one) === 'request-size-limiting')?.section('config')
  if (config === undefined) return {}
  const unit = UNIT_BYTES[config.text('size_unit') ?? 'megabytes'] ?? Number.NaN
  const maxBody = Math.floor((config.number('allowed_payload_size') ?? 128) * unit)
  return maxBody >= 0 ? { maxBody } : {}
}

/** In milliseconds, as both gateways write them. */
function timeoutsOf(service: Section): { connect?: number; head?: number; idle?: number } {
  const [connect, read, write] = ['connect_timeout', 'read_timeout', 'write_timeout'].map(key => {
    const ms = service.number(key) ?? 0
    return Number.isInteger(ms) && ms > 0 && ms <= LONGEST_TIMEOUT_MS ? ms : undefined
  })
  return {
    ...(connect !== undefined && { connect }),
    ...(read !== undefined && { head: read }),
    ...((read ?? write) !== undefined && { idle: Math.max(read ?? 0, write ?? 0) }),
  }
}
