/** Kong's plugins, as far as they limit: which there are, and which of them have become a rule. */
import type { KeyPart } from '../../config/words.js'
import { type KongWindow, windowsOf } from './kong-quota.js'
import type { Migration } from './migration.js'
import type { Section } from './source.js'

/** Plugins that limit. Each kind is looked for by itself, so a route may have one of each. */
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

  /** The plugin that finds consumers by their keys, once those of all routes and services are read. */
  get keyAuth(): Section | undefined {
    return this.#keyAuth
  }

  /** Those that limit and are on; what the others are is told. */
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

  /** What the plugin counts. From now on it is in use. */
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

  /** Tells of limiters that nothing has come of. */
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

/** What `limit_by` counts by, where that is no project; undefined where no key says it. */
export function keyOf(by: string, config: Section, match: readonly string[]): KeyPart[] | undefined {
  const header = config.text('header_name')
  if (by === 'ip') return ['client-ip']
  if (by === 'header' && header !== undefined) return [`header:${header.toLowerCase()}`]
  // All requests together: the pattern is the same for all where there is but one.
  return by === 'service' && new Set(match).size === 1 ? ['path'] : undefined
}
