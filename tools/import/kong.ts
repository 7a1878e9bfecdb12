/** Kong's declarative configuration: services, routes, consumers, rate-limiting plugins (developer.konghq.com). */
import { importConsumers, type OwnPlan } from './kong-consumers.js'
import { algorithmOf, KongPlugins, keyOf, LIMITERS, reference } from './kong-plugins.js'
import { bucketQuota, meterQuotas } from './kong-quota.js'
import { ANY_PLAN, type Migration } from './migration.js'
import { below } from './paths.js'
import { readYaml, type Section } from './source.js'

const NOT_HERE = 'It does not concern limits or upstreams.'
/** Name of the bucket with every request, for consumers whose plugin applies to all routes. */
const EVERYWHERE = 'everywhere'

interface KongRoute {
  readonly name: string
  readonly section: Section
  readonly service: Section | undefined
  readonly match: readonly string[]
}

/** Reads `text` into the migration. */
export function importKong(text: string, into: Migration): void {
  const file = readYaml(text, into)
  if (file !== undefined) new KongImport(file, into).read()
}

/** A plugin with the patterns of its routes. */
interface Holding {
  readonly plugin: Section
  readonly name: string
  readonly match: string[]
}

class KongImport {
  readonly #file: Section
  readonly #into: Migration
  readonly #plugins: KongPlugins
  /** The bucket of each pattern, which no other bucket may have. */
  readonly #owners = new Map<string, string>()
  readonly #buckets = new Map<string, readonly string[]>()
  readonly #quotas: Record<string, object> = {}
  #plans = new Map<string, OwnPlan>()
  #isClosed = false

  constructor(file: Section, into: Migration) {
    this.#file = file
    this.#into = into
    this.#plugins = new KongPlugins(into)
  }

  read(): void {
    const known = ['services', 'routes', 'consumers', 'plugins', 'upstreams', '_format_version', '_transform']
    this.#file.others(known, this.#into, NOT_HERE)
    const services = this.#file.list('services')
    const routes = [
      ...services.flatMap(service => service.list('routes').map(route => this.#route(route, service))),
      ...this.#file
        .list('routes')
        .map(route => this.#route(route, named(services, reference(route, 'service')))),
    ]
    for (const service of services) this.#service(service, routes)
    const scoped = this.#plugins.limitersOf(this.#file.list('plugins'))
    const ofConsumers = scoped.filter(plugin => 'consumer' in plugin.node)
    const ofAll = scoped.filter(plugin => !ofConsumers.includes(plugin))
    const held = this.#held(routes, ofAll)
    this.#plans = importConsumers(this.#file.list('consumers'), ofConsumers, this.#plugins, this.#into)
    for (const holding of held) this.#limit(holding)
    this.#plugins.tellUnused()
    if (this.#buckets.size > 0 || this.#plans.size > 0) this.#into.limitProjects(this.#limits())
  }

  #route(section: Section, service: Section | undefined): KongRoute {
    section.others(
      ['name', 'service', 'paths', 'methods', 'strip_path', 'plugins', 'tags', 'protocols'],
      this.#into,
      'Routes go by path alone.',
    )
    if (service === undefined) {
      this.#into.leftOut(section.at(), 'a route of no service of this file.')
    }
    const name = section.text('name') ?? `${service?.text('name') ?? 'route'}-route`
    const paths = section.texts('paths').flatMap(path => {
      if (!path.startsWith('~')) return [below(path)]
      this.#into.leftOut(section.at('paths'), `the path "${path}". Patterns are not regular expressions.`)
      return []
    })
    const isStripped = section.node.strip_path !== false && paths.some(path => path !== '/**')
    if (isStripped)
      this.#into.leftOut(
        section.at(),
        'strip_path. Requests reach the upstream with the path they came with.',
      )
    const whole = 'paths' in section.node ? paths : ['/**']
    const methods = section.texts('methods')
    const match =
      methods.length === 0 ? whole : methods.flatMap(method => whole.map(path => `${method} ${path}`))
    this.#into.place(match)
    return { name, section, service, match }
  }

  #service(service: Section, routes: readonly KongRoute[]): void {
    const known = ['name', 'url', 'protocol', 'host', 'port', 'path', 'routes', 'plugins', 'tags']
    service.others(known, this.#into, 'Upstreams have settings of their own in gateway.yaml.')
    const name = service.text('name') ?? 'service'
    const protocol = service.text('protocol') ?? 'http'
    const host = service.text('host') ?? ''
    const pool = named(this.#file.list('upstreams'), host)
    const port = service.text('port') ?? (protocol === 'https' ? '443' : '80')
    const turns = 'The addresses of an upstream share the requests.'
    pool?.others(['name', 'targets', 'tags'], this.#into, turns)
    const targets = pool?.list('targets')
    for (const target of targets ?? []) target.others(['target', 'tags'], this.#into, turns)
    const hosts = targets?.map(target => target.text('target') ?? '') ?? [`${host}:${port}`]
    const addresses = hosts.map(one => `${protocol}://${one}${service.text('path') ?? ''}`)
    const url = service.text('url')
    const upstream = this.#into.upstream(name, url === undefined ? addresses : [url], service.at())
    if (upstream === undefined) return
    for (const route of routes.filter(one => one.service === service)) {
      for (const path of new Set(route.match.map(pattern => pattern.replace(/^[A-Z]+ /, '')))) {
        this.#into.route(path, upstream, route.section.at())
      }
    }
  }

  /** Each plugin with the routes it applies to: of several plugins of one kind, Kong runs the most specific. */
  #held(routes: readonly KongRoute[], global: readonly Section[]): Holding[] {
    const held = new Map<Section, Holding>()
    const near = new Map<Section, Section[]>()
    const pluginsOf = (holder: Section, kind: 'service' | 'route'): Section[] => {
      const known = near.get(holder)
      if (known !== undefined) return known
      const own = this.#plugins.limitersOf(holder.list('plugins'))
      const named = global.filter(
        plugin => kind in plugin.node && reference(plugin, kind) === holder.text('name'),
      )
      near.set(holder, [...own, ...named])
      return [...own, ...named]
    }
    const everywhere = global.filter(plugin => !('service' in plugin.node) && !('route' in plugin.node))
    for (const { name, section, service, match } of routes) {
      const ofRoute = pluginsOf(section, 'route')
      const ofService = service === undefined ? [] : pluginsOf(service, 'service')
      for (const kind of LIMITERS) {
        const plugin = [...ofRoute, ...ofService, ...everywhere].find(one => one.text('name') === kind)
        if (plugin === undefined) continue
        const ofHolder = ofService.includes(plugin) ? (service?.text('name') ?? 'service') : 'global'
        const holding = held.get(plugin) ?? {
          plugin,
          name: ofRoute.includes(plugin) ? name : ofHolder,
          match: [],
        }
        held.set(plugin, holding)
        holding.match.push(...match)
      }
    }
    return [...held.values()]
  }

  #limit({ plugin, name, match }: Holding): void {
    const config = plugin.section('config')
    const windows = this.#plugins.windowsOf(plugin)
    const by = config.text('limit_by') ?? config.text('identifier') ?? 'consumer'
    const isClosed = config.node.fault_tolerant === false
    if (windows.length === 0) return
    if (by === 'consumer' || by === 'credential') {
      this.#isClosed ||= isClosed
      this.#into.changedOnce(plugin.at(), 'requests of no consumer are counted by host, not by address.')
      this.#bucket(name, match, plugin, bucketQuota(windows, algorithmOf(plugin)))
      return
    }
    const key = keyOf(by, config, match)
    if (key === undefined) {
      this.#into.leftOut(
        plugin.at(),
        `"${plugin.text('name')}" by ${by} for these routes. A rule has no such key.`,
      )
      return
    }
    if (key.some(part => part.startsWith('header:'))) {
      this.#into.changed(
        config.at('header_name'),
        'requests without this header are not counted, where Kong counts them by address.',
      )
    }
    const plans = this.#plansUnder(plugin.text('name') ?? '')
    for (const quota of meterQuotas(windows, config, this.#into)) {
      this.#into.meter(
        {
          name: `${name}-${quota.per}`,
          match,
          key,
          plans,
          quota,
          ...(isClosed && { onStoreError: 'closed' }),
        },
        plugin.at(),
      )
    }
  }

  /** The plans that a plugin of this kind limits; none when it limits all of them. */
  #plansUnder(kind: string): string[] {
    const isOther = [...this.#plans].filter(([, own]) => own.kind !== kind).map(([plan]) => plan)
    return isOther.length === this.#plans.size ? [] : [ANY_PLAN, ...isOther]
  }

  #bucket(name: string, match: readonly string[], plugin: Section, quota: object): void {
    const bucket = this.#into.nameFor('bucket', name)
    const free = [...new Set(match)].filter(pattern => {
      const owner = this.#owners.get(pattern)
      if (owner === undefined) return this.#into.isPattern(pattern, plugin.at())
      this.#into.leftOut(plugin.at(), `the limit of ${pattern}. It counts in the bucket "${owner}" already.`)
      return false
    })
    const document = {
      version: 1,
      kind: 'project-limits',
      buckets: { [bucket]: free },
      limits: [{ for: [{}], quotas: { [bucket]: quota } }],
    }
    if (free.length === 0 || !this.#into.isSound('project-limits', document, plugin.at())) return
    for (const pattern of free) this.#owners.set(pattern, bucket)
    this.#buckets.set(bucket, free)
    this.#quotas[bucket] = quota
    for (const [plan, own] of this.#plans) {
      if (own.kind === plugin.text('name')) continue
      this.#into.changed(
        plugin.at(),
        `this limit does not hold for ${plan}, whose own one counts everything.`,
      )
    }
  }

  #limits(): object {
    const own = [...this.#plans].map(([plan, { quota }]) => ({
      for: [{ plans: [plan] }],
      quotas: { [EVERYWHERE]: quota },
    }))
    return {
      ...(this.#isClosed && { onStoreError: 'closed' }),
      buckets: { ...Object.fromEntries(this.#buckets), ...(own.length > 0 && { [EVERYWHERE]: ['*'] }) },
      limits: [{ for: [{ plans: [ANY_PLAN] }], quotas: this.#quotas }, ...own],
    }
  }
}

function named(sections: readonly Section[], name: string | undefined): Section | undefined {
  return name === undefined ? undefined : sections.find(one => one.text('name') === name)
}
