/** Kong's declarative configuration: services, routes, what guards them, limits (developer.konghq.com). */
import { limitBodies } from './kong-bodies.js'
import { importKongConf } from './kong-conf.js'
import { KongConsumers } from './kong-consumers.js'
import { nowhere, reportConsumerFields, reportFields, sentElsewhere } from './kong-elsewhere.js'
import { namesOf, reference } from './kong-groups.js'
import { guardText, KEY_AUTH, linesOf } from './kong-guard.js'
import { KongLimits } from './kong-limits.js'
import { isLimiter, KongPlugins } from './kong-plugins.js'
import { type KongRoute, readRoute } from './kong-route.js'
import type { Migration } from './migration.js'
import { deniedNetworks } from './networks.js'
import { asLiteral } from './paths.js'
import { readYaml, type Section } from './source.js'

const WANTED = {
  format: 'kong',
  name: 'Kong’s declarative configuration',
  keys: ['services', 'routes', 'consumers', 'plugins', 'upstreams', '_format_version'],
  nullIsAbsent: true,
}
const READ = [
  ...['services', 'routes', 'consumers', 'consumer_groups', 'keyauth_credentials', 'plugins', 'upstreams'],
  ...['consumer_group_consumers', '_format_version', '_transform', '_info', '_comment'],
]
const SERVICE = [
  'name',
  'id',
  'url',
  'protocol',
  'host',
  'port',
  'path',
  'routes',
  'plugins',
  'tags',
  'connect_timeout',
  'read_timeout',
  'write_timeout',
  'enabled',
  'created_at',
]

/** Reads `text` into the migration. @param conf the text and name of kong.conf, if it was given */
export function importKong(
  text: string,
  into: Migration,
  conf?: { readonly text: string; readonly file: string },
): void {
  const file = readYaml(text, WANTED, into)
  if (file === undefined) return
  const knowsClients = conf !== undefined && importKongConf(conf.text, conf.file, into)
  new KongImport(file, into, knowsClients).read()
}

class KongImport {
  readonly #file: Section
  readonly #into: Migration
  readonly #plugins: KongPlugins
  readonly #knowsClients: boolean
  readonly #pools: ReadonlyMap<string, Section>

  constructor(file: Section, into: Migration, knowsClients: boolean) {
    this.#file = file
    this.#into = into
    this.#knowsClients = knowsClients
    this.#plugins = new KongPlugins(file, into)
    this.#pools = new Map(file.list('upstreams').map(one => [one.text('name') ?? '', one]))
  }

  read(): void {
    this.#file.others(READ, this.#into, 'The import does not read it.')
    this.#file.section('_info').others(['select_tags'], this.#into, 'The import does not apply it.')
    const services = this.#file.list('services')
    const named = new Map(services.flatMap(one => namesOf(one).map(name => [name, one])))
    const format = this.#file.number('_format_version')
    const read = (route: Section, service: Section | undefined): KongRoute =>
      readRoute(route, service, this.#plugins, this.#into, format)
    const routes = [
      ...services.flatMap(service => service.list('routes').map(route => read(route, service))),
      ...this.#file.list('routes').map(route => read(route, named.get(reference(route, 'service') ?? ''))),
    ]
    const upstreams = new Map(services.map(service => [service, this.#service(service)]))
    const waived = this.#waived(routes)
    const keyAuth = new Set(
      routes.flatMap(({ plugins }) => plugins.filter(one => one.text('name') === KEY_AUTH)),
    )
    const open = routes.filter(route => this.#door(route, waived, upstreams))
    const [first] = keyAuth
    if (first !== undefined && open.length > 0) {
      reportConsumerFields(first, this.#into)
      for (const one of this.#file.list('consumers'))
        reportFields({ plugins: this.#plugins.of(one, 'consumer') }, this.#into)
    }
    const consumers = new KongConsumers(this.#into, this.#plugins)
    consumers.read(this.#file, [...keyAuth])
    const isAnonymous = [...keyAuth].some(plugin => this.#plugins.anonymousOf(plugin) !== undefined)
    if (!isAnonymous && waived.has(KEY_AUTH)) this.#into.callers.rejectUnknown()
    new KongLimits(this.#into, this.#plugins, consumers, this.#knowsClients).read(open)
    limitBodies(routes, upstreams, this.#into)
    this.#plugins.reportUnused()
  }

  /** Guards that hold for every route, and that the whole gateway can keep up: by name. */
  #waived(routes: readonly KongRoute[]): ReadonlySet<string> {
    const waived = new Set<string>()
    const own = routes.filter(({ guards }) =>
      guards.every(one => one.text('name') === KEY_AUTH || one.text('name') === 'ip-restriction'),
    )
    const guardOf = (route: KongRoute, name: string): Section | undefined =>
      route.guards.find(one => one.text('name') === name)
    if (own.length > 0 && own.every(route => guardOf(route, KEY_AUTH) !== undefined)) waived.add(KEY_AUTH)
    const lists = own.map(route => guardOf(route, 'ip-restriction'))
    const [first] = lists
    const text = first && JSON.stringify(linesOf(first))
    if (
      first === undefined ||
      !lists.every(one => one !== undefined && JSON.stringify(linesOf(one)) === text)
    )
      return waived
    const networks = this.#knowsClients ? deniedNetworks(linesOf(first)) : undefined
    if (networks === undefined) return waived
    this.#into.rules.deny(networks, first.at())
    return waived.add('ip-restriction')
  }

  /** Opens a route, or keeps it closed. @returns whether it is open */
  #door(
    route: KongRoute,
    waived: ReadonlySet<string>,
    upstreams: ReadonlyMap<Section, string | undefined>,
  ): boolean {
    const { section, service, places, matchers } = route
    const guards = route.guards.filter(one => !waived.has(one.text('name') ?? ''))
    const [guard] = guards
    const protocols = section.texts('protocols')
    const isOtherwise = protocols.length > 0 && !protocols.includes('http')
    if (guard !== undefined || isOtherwise) {
      const whats = [...guards.map(guardText), ...(matchers === undefined ? [] : [`with ${matchers} alone`])]
      for (const place of places)
        this.#into.close(place, whats.join(', '), guard?.at() ?? section.at('protocols'))
      return false
    }
    if (matchers !== undefined) {
      this.#into.lost(
        section.at(),
        `the route "${route.name}" was reachable with ${matchers} alone. It is left out.`,
      )
      return false
    }
    const upstream =
      service === undefined || service.node.enabled === false ? undefined : upstreams.get(service)
    const wild = route.patterns
    if (wild.length > 0) {
      this.#into.lost(
        section.at('hosts'),
        `the route "${route.name}" was for the hosts ${wild.slice(0, 3).join(', ')} alone. Hosts are written out, without patterns, so it is left out.`,
      )
      return false
    }
    // A disabled service has no routes in Kong either.
    if (service?.node.enabled === false) return false
    for (const place of places) {
      const elsewhere = upstream === undefined ? nowhere(service) : sentElsewhere(route, place)
      if (elsewhere !== undefined) {
        this.#into.keepFrom(place, elsewhere, section.at())
        continue
      }
      if (upstream === undefined || place.patterns.length === 0) continue
      if (!place.path.endsWith('/')) {
        const pattern = `${asLiteral(place.path)}/**`
        this.#into.changedOnce(
          section.at('paths'),
          `${pattern} matches whole segments: ${place.path} and all below it, not ${place.path}x.`,
        )
      }
      this.#into.open({ ...place, upstream }, section.at())
    }
    for (const path of route.expressions) {
      const but = route.plugins.some(isLimiter)
        ? ' Where its requests take other routes, they do so without its own limits.'
        : ''
      this.#into.leftOut(
        section.at('paths'),
        `the path "${path}". Patterns are not regular expressions.${but}`,
      )
    }
    if (upstream === undefined) return false
    reportFields(route, this.#into)
    this.#into.place(route.match, [])
    return true
  }

  #service(service: Section): string | undefined {
    service.others(SERVICE, this.#into, 'Upstreams have settings of their own in gateway.yaml.')
    if (service.node.enabled === false) {
      this.#into.leftOut(service.at('enabled'), 'a service that is not enabled.')
      return undefined
    }
    const name = service.text('name') ?? 'service'
    const protocol = service.text('protocol') ?? 'http'
    const host = service.text('host') ?? ''
    const pool = this.#pools.get(host)
    const port = service.text('port') ?? (protocol === 'https' ? '443' : '80')
    const roundRobin = 'The addresses of an upstream share the requests.'
    pool?.others(['name', 'targets', 'tags', 'id'], this.#into, roundRobin)
    const targets = pool?.list('targets')
    for (const target of targets ?? []) target.others(['target', 'tags', 'id'], this.#into, roundRobin)
    const hosts = targets?.map(target => target.text('target') ?? '') ?? [`${host}:${port}`]
    const addresses = hosts.map(one => `${protocol}://${one}${service.text('path') ?? ''}`)
    const url = service.text('url')
    const upstream = this.#into.upstreams.add(name, url === undefined ? addresses : [url], service.at())
    const ms = (key: string): number | undefined => {
      const value = service.number(key)
      return value !== undefined && Number.isInteger(value) && value > 0 && value <= 86_400_000
        ? value
        : undefined
    }
    const [connect, read, write] = [ms('connect_timeout'), ms('read_timeout'), ms('write_timeout')]
    const timeouts = {
      ...(connect !== undefined && { connect }),
      ...(read !== undefined && { head: read }),
      ...((read ?? write) !== undefined && { idle: Math.max(read ?? 0, write ?? 0) }),
    }
    if (upstream !== undefined && Object.keys(timeouts).length > 0)
      this.#into.upstreams.set(upstream, { timeouts }, service.at())
    return upstream
  }
}
