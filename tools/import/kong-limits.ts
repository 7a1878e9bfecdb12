/** Kong's rate-limiting plugins: buckets by consumer or address, rules by header. */

import { ANY_PLAN } from './callers.js'
import type { KongConsumers } from './kong-consumers.js'
import { algorithmOf, type KongPlugins, keyOf, LIMITERS } from './kong-plugins.js'
import { bucketQuota, meterQuotas } from './kong-quota.js'
import type { KongRoute } from './kong-route.js'
import type { Migration } from './migration.js'
import type { Section } from './source.js'

const EVERY_PATH = '/**'

/** A plugin with the patterns of its routes. */
interface Holding {
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
    for (const holding of this.#held(routes)) this.#limit(holding)
  }

  /** Each plugin with the routes it applies to: of several plugins of one kind, Kong runs the most specific. */
  #held(routes: readonly KongRoute[]): Holding[] {
    const held = new Map<Section, Holding>()
    const areAlike = new Set(routes.map(({ section }) => section.texts('hosts').sort().join())).size === 1
    for (const { name, section, service, match, plugins } of routes) {
      const ofRoute = new Set(this.#plugins.of(section, 'route'))
      for (const kind of LIMITERS) {
        const plugin = plugins.find(one => one.text('name') === kind)
        if (plugin === undefined) continue
        const isGlobal = this.#plugins.global.includes(plugin)
        const ofHolder = isGlobal ? 'global' : (service?.text('name') ?? 'service')
        const holding = held.get(plugin) ?? { plugin, name: ofRoute.has(plugin) ? name : ofHolder, match: [] }
        held.set(plugin, holding)
        for (const pattern of match) holding.match.push(pattern)
        if (section.texts('hosts').length > 0 && !areAlike) {
          this.#into.changedOnce(
            plugin.at(),
            'limits hold for the paths of their routes on every host, not on the hosts of a route alone.',
          )
        }
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
    const quota = bucketQuota(windows, algorithmOf(plugin))
    if (by === 'consumer' || by === 'credential') {
      this.#bucket({ name, match, key: 'project', quota, plugin })
      return
    }
    const key = keyOf(by, config, match)
    if (key === undefined) {
      const what = `"${plugin.text('name')}" by ${by} for these routes. A rule has no such key.`
      this.#into.leftOut(plugin.at(), what)
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
    const kind = plugin.text('name') ?? ''
    const plans = this.#plansUnder(kind)
    if (
      by === 'ip' &&
      !this.#hasOtherKind(kind) &&
      !this.#isOfEverything(match) &&
      this.#bucket({ name, match, key: 'client-ip', quota, plugin })
    )
      return
    for (const meter of meterQuotas(windows, config, this.#into)) {
      const parts = { name: `${name}-${meter.per}`, match, key, plans, quota: meter }
      this.#into.rules.meter({ ...parts, ...(isClosed && { onStoreError: 'closed' as const }) }, plugin.at())
    }
  }

  /** True for a limit by address of all that the bucket of a plan counts by consumer: they cannot be one bucket. */
  #isOfEverything(match: readonly string[]): boolean {
    return this.#into.callers.planQuotas.size > 0 && match.includes(EVERY_PATH)
  }

  /** True when some plan replaces another kind of limit, so that this one holds beside the plan's own. */
  #hasOtherKind(kind: string): boolean {
    return [...this.#consumers.kinds.values()].some(other => other !== kind)
  }

  /** The plans that a plugin of this kind limits; none when it limits all of them. */
  #plansUnder(kind: string): string[] {
    const kinds = [...this.#consumers.kinds]
    const others = kinds.filter(([, other]) => other !== kind).map(([plan]) => plan)
    return others.length === kinds.length ? [] : [ANY_PLAN, ...others]
  }

  /** @returns false for a limit by address that fits no bucket; one by consumer is reported */
  #bucket({
    name,
    match,
    key,
    quota,
    plugin,
  }: Holding & { readonly key: 'project' | 'client-ip'; readonly quota: object }): boolean {
    const isClosed = plugin.section('config').node.fault_tolerant === false
    const own = key === 'project' ? match.filter(pattern => this.#isFree(pattern, plugin)) : match
    if (own.length === 0) return true
    const counter = JSON.stringify(plugin.at().path)
    const isAdded = this.#into.bucket(
      {
        ...{ name, match: own, key, quota, counter, projects: [] },
        ...(isClosed && { onStoreError: 'closed' as const }),
      },
      plugin.at(),
    )
    if (!isAdded) {
      if (key === 'project') this.#into.leftOut(plugin.at(), 'a limit that fits no bucket.')
      return false
    }
    for (const [plan, kind] of this.#consumers.kinds) {
      if (kind === plugin.text('name')) continue
      this.#into.changed(
        plugin.at(),
        `this limit does not hold for ${plan}, whose own one counts everything.`,
      )
    }
    return true
  }

  #isFree(pattern: string, plugin: Section): boolean {
    const owner = this.#into.ownerOf(pattern)
    if (owner === undefined) return true
    this.#into.leftOut(plugin.at(), `the limit of ${pattern}. It counts in the bucket "${owner}" already.`)
    return false
  }
}
