/** Kong's rate-limiting plugins: buckets by consumer or address, rules by header (developer.konghq.com). */
import type { KeyPart } from '../../config/words/words.js'
import { type ImportedWindow, quotaOf, type WindowQuota } from './buckets.js'
import type { KongConsumers } from './kong-consumers.js'
import { type KongPlugins, LIMITERS } from './kong-plugins.js'
import type { KongRoute } from './kong-routes.js'
import type { Migration } from './migration.js'
import { ANY_PLAN } from './projects.js'
import type { Section } from './yaml.js'

/** Kong's days and months are periods of the calendar. */
const UNITS: readonly Omit<ImportedWindow, 'requests'>[] = [
  { name: 'second', seconds: 1 },
  { name: 'minute', seconds: 60 },
  { name: 'hour', seconds: 3600 },
  { name: 'day', seconds: 86_400, calendar: 'day' },
  { name: 'month', seconds: 31 * 86_400, calendar: 'month' },
]
const MOST = 1_000_000_000
const LONGEST = 31 * 86_400
const LONGEST_METER = 86_400

/** The windows of a limiter, which is marked as used: each by its unit, or two lists in `rate-limiting-advanced`. */
export function windowsOf(plugin: Section, kong: KongPlugins, into: Migration): ImportedWindow[] {
  const config = kong.use(plugin)
  if ('year' in config.node)
    into.leftOut(config.at('year'), 'a limit by year. A window has at most 31 days, or a month.')
  const plain = UNITS.flatMap(unit => {
    const requests = config.number(unit.name)
    return requests === undefined ? [] : { ...unit, requests }
  })
  const sizes = config.texts('window_size').map(Number)
  const listed = config.texts('limit').flatMap((limit, i) => {
    const seconds = sizes[i] ?? 0
    if (Number.isInteger(seconds) && seconds >= 1 && seconds <= LONGEST)
      return { name: `w${seconds}`, seconds, requests: Number(limit) }
    into.leftOut(config.at('window_size'), `the window of ${sizes[i]} s. A window has from 1 s to 31 days.`)
    return []
  })
  return [...plain, ...listed].filter(({ requests }) => {
    const isQuota = Number.isInteger(requests) && requests >= 1 && requests <= MOST
    const why = 'A quota is a whole number from 1 to 1,000,000,000.'
    if (!isQuota) into.leftOut(config.at(), `a limit of ${requests} requests. ${why}`)
    return isQuota
  })
}

/** All windows of a limiter together, as the quota of a bucket. */
export function bucketQuota(windows: readonly ImportedWindow[], plugin: Section): object {
  const isFixed =
    plugin.text('name') === 'rate-limiting' || plugin.section('config').text('window_type') === 'fixed'
  return quotaOf(windows, isFixed ? 'fixed-window' : 'sliding-window')
}

/** Each window as the quota of a meter; those that a meter cannot have are reported. */
function meterQuotas(windows: readonly ImportedWindow[], config: Section, into: Migration): WindowQuota[] {
  return windows.flatMap(({ name, seconds, requests }) => {
    if (seconds <= LONGEST_METER) return { requests, per: `${seconds}s` }
    const why = 'Without the project in its key a rule has a window of at most a day.'
    into.leftOut(config.at(), `the limit by ${name}. ${why}`)
    return []
  })
}

/** The key for `limit_by`, unless it counts by project; undefined when no key expresses it. */
function keyOf(by: string, config: Section, match: readonly string[]): KeyPart[] | undefined {
  const header = config.text('header_name')
  if (by === 'ip') return ['client-ip']
  if (by === 'header' && header !== undefined) return [`header:${header.toLowerCase()}`]
  // With a single pattern, the path is the same for all requests, so all are counted together.
  return by === 'service' && new Set(match).size === 1 ? ['path'] : undefined
}

/** A plugin with the patterns of its routes. */
interface KongLimit {
  readonly plugin: Section
  readonly name: string
  readonly match: string[]
}

export class KongLimits {
  readonly #into: Migration
  readonly #plugins: KongPlugins
  readonly #consumers: KongConsumers
  readonly #knowsClients: boolean

  constructor(into: Migration, plugins: KongPlugins, consumers: KongConsumers, knowsClients: boolean) {
    this.#into = into
    this.#plugins = plugins
    this.#consumers = consumers
    this.#knowsClients = knowsClients
  }

  read(routes: readonly KongRoute[]): void {
    for (const limit of this.#limitsOf(routes)) this.#limit(limit)
  }

  /** Each plugin with the routes it applies to: of several plugins of one kind, Kong runs the most specific. */
  #limitsOf(routes: readonly KongRoute[]): KongLimit[] {
    const limits = new Map<Section, KongLimit>()
    const areAlike = new Set(routes.map(({ section }) => section.texts('hosts').sort().join())).size === 1
    for (const { name, section, service, match, plugins } of routes) {
      const ofRoute = new Set(this.#plugins.of(section, 'route'))
      for (const kind of LIMITERS) {
        const plugin = plugins.find(one => one.text('name') === kind)
        if (plugin === undefined) continue
        const isGlobal = this.#plugins.global.includes(plugin)
        const ofHolder = isGlobal ? 'global' : (service?.text('name') ?? 'service')
        const limit = limits.get(plugin) ?? { plugin, name: ofRoute.has(plugin) ? name : ofHolder, match: [] }
        limits.set(plugin, limit)
        for (const pattern of match) limit.match.push(pattern)
        if (section.texts('hosts').length > 0 && !areAlike) {
          this.#into.changedOnce(
            plugin.at(),
            'limits hold for the paths of their routes on every host, not on the hosts of a route alone.',
          )
        }
      }
    }
    return [...limits.values()]
  }

  #limit(limit: KongLimit): void {
    const { plugin, name, match } = limit
    const config = plugin.section('config')
    const kind = plugin.text('name') ?? ''
    const windows = windowsOf(plugin, this.#plugins, this.#into)
    const by = config.text('limit_by') ?? config.text('identifier') ?? 'consumer'
    if (windows.length === 0) return
    const quota = bucketQuota(windows, plugin)
    if (by === 'consumer' || by === 'credential') {
      this.#bucketByProject(limit, quota)
      return
    }
    const key = keyOf(by, config, match)
    if (key === undefined) {
      this.#into.leftOut(plugin.at(), `"${kind}" by ${by} for these routes. A rule has no such key.`)
      return
    }
    if (by === 'ip' && !this.#knowsClients) {
      this.#into.changedOnce(
        plugin.at(),
        'which proxies tell clients’ addresses is in kong.conf (trusted_ips): give it as a second file, or write trustedProxies in gateway.yaml. Without it, clients behind a load balancer share one counter.',
      )
    }
    if (key.some(part => part.startsWith('header:'))) {
      this.#into.changed(
        config.at('header_name'),
        'requests without this header are not counted, where Kong counts them by address.',
      )
    }
    const plans = this.#plansUnder(kind)
    const isBucket =
      by === 'ip' &&
      // A plan may replace another kind of limit, so that this one holds beside the plan's own.
      [...this.#consumers.kinds.values()].every(other => other === kind) &&
      // What the bucket of a plan counts by consumer cannot be one by address.
      !(this.#into.projects.planQuotas.size > 0 && match.includes('/**')) &&
      this.#bucket(limit, match, 'client-ip', quota)
    if (isBucket) return
    const onStoreError = this.#onStoreError(plugin)
    for (const meter of meterQuotas(windows, config, this.#into)) {
      const parts = { name: `${name}-${meter.per}`, match, key, plans, quota: meter, ...onStoreError }
      this.#into.rules.meter(parts, plugin.at())
    }
  }

  #onStoreError(plugin: Section): { readonly onStoreError?: 'closed' } {
    return plugin.section('config').node.fault_tolerant === false ? { onStoreError: 'closed' } : {}
  }

  /** The plans that a plugin of this kind limits; none when it limits all of them. */
  #plansUnder(kind: string): string[] {
    const kinds = [...this.#consumers.kinds]
    const others = kinds.filter(([, other]) => other !== kind).map(([plan]) => plan)
    return others.length === kinds.length ? [] : [ANY_PLAN, ...others]
  }

  #bucketByProject(limit: KongLimit, quota: object): void {
    const at = limit.plugin.at()
    const free = limit.match.filter(pattern => {
      const owner = this.#into.ownerOf(pattern)
      if (owner !== undefined)
        this.#into.leftOut(at, `the limit of ${pattern}. It counts in the bucket "${owner}" already.`)
      return owner === undefined
    })
    if (!this.#bucket(limit, free, 'project', quota)) this.#into.leftOut(at, 'a limit that fits no bucket.')
  }

  /** @returns false for a limit that fits no bucket */
  #bucket(
    { name, plugin }: KongLimit,
    match: readonly string[],
    key: 'project' | 'client-ip',
    quota: object,
  ): boolean {
    if (match.length === 0) return true
    const at = plugin.at()
    const counter = JSON.stringify(at.path)
    const parts = { name, match, key, quota, counter, projects: [], ...this.#onStoreError(plugin) }
    if (!this.#into.bucket(parts, at)) return false
    for (const [plan, kind] of this.#consumers.kinds) {
      if (kind !== plugin.text('name'))
        this.#into.changed(at, `this limit does not hold for ${plan}, whose own one counts everything.`)
    }
    return true
  }
}
