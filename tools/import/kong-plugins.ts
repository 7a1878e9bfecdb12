/** Kong's plugins that limit requests: finds them, and keeps track of which became rules. */
import type { KeyPart } from '../../config/words.js'
import { type KongWindow, windowsOf } from './kong-quota.js'
import type { Migration } from './migration.js'
import type { Section } from './source.js'

/** Plugins that limit. Each kind is looked up separately, so a route may have one of each. */
export const LIMITERS = ['rate-limiting', 'rate-limiting-advanced'] as const

const PLUGIN = ['name', 'service', 'route', 'consumer', 'config', 'enabled', 'tags']
const CONFIG = [
  ...['second', 'minute', 'hour', 'day', 'month', 'year', 'limit', 'window_size', 'window_type'],
  ...['limit_by', 'identifier', 'header_name', 'fault_tolerant', 'policy'],
]

export class KongPlugins {
  readonly #into: Migration
  readonly #limiters = new Map<Section, boolean>()
  #keyAuth: Section | undefined

  constructor(into: Migration) {
    this.#into = into
  }

  /** The plugin that identifies consumers by their keys; known once all routes and services have been read. */
  get keyAuth(): Section | undefined {
    return this.#keyAuth
  }

  /** The enabled plugins that limit; the others are reported. */
  limitersOf(plugins: readonly Section[]): Section[] {
    return plugins.filter(plugin => this.#isLimiter(plugin))
  }

  #isLimiter(plugin: Section): boolean {
    const name = plugin.text('name') ?? ''
    if (name === 'key-auth') {
      this.#keyAuth ??= plugin
      return false
    }
    const isKnown = (LIMITERS as readonly string[]).includes(name)
    if (isKnown && plugin.node.enabled !== false) {
      this.#limiters.set(plugin, false)
      return true
    }
    const what = isKnown ? `"${name}", which is not enabled.` : `the plugin "${name}". It limits nothing.`
    this.#into.leftOut(plugin.at(), what)
    return false
  }

  /** The windows of a plugin, which is marked as used. */
  windowsOf(plugin: Section): KongWindow[] {
    this.#limiters.set(plugin, true)
    plugin.others(PLUGIN, this.#into, 'Rules have no counterpart of it.')
    const config = plugin.section('config')
    config.others(CONFIG, this.#into, 'Redis has one setting in gateway.yaml, and refusals have one shape.')
    const policy = config.text('policy') ?? 'local'
    if (policy !== 'local') {
      this.#into.changedOnce(
        config.at('policy'),
        'gateways count together only with "redis" in gateway.yaml, which is not set.',
      )
    }
    return windowsOf(config, this.#into)
  }

  /** Reports limiters that have not been used. */
  tellUnused(): void {
    for (const [plugin, isUsed] of this.#limiters) {
      if (!isUsed)
        this.#into.leftOut(plugin.at(), 'a limit that holds for no route or consumer of this file.')
    }
  }
}

export const algorithmOf = (plugin: Section): 'fixed-window' | 'sliding-window' =>
  plugin.text('name') === 'rate-limiting' || plugin.section('config').text('window_type') === 'fixed'
    ? 'fixed-window'
    : 'sliding-window'

/** The name that a reference such as `service: shop` or `service: { name: shop }` gives. */
export function reference(of: Section, kind: string): string | undefined {
  return of.text(kind) ?? of.section(kind).text('name') ?? of.section(kind).text('username')
}

/** The key for `limit_by`, unless it counts by project; undefined when no key expresses it. */
export function keyOf(by: string, config: Section, match: readonly string[]): KeyPart[] | undefined {
  const header = config.text('header_name')
  if (by === 'ip') return ['client-ip']
  if (by === 'header' && header !== undefined) return [`header:${header.toLowerCase()}`]
  // With a single pattern, the path is the same for all requests, so all are counted together.
  return by === 'service' && new Set(match).size === 1 ? ['path'] : undefined
}
