/** Kong's plugins: which hold for a route, and what each of them is: a limit, a guard, or something else. */
import type { KeyPart } from '../../config/words/words.js'
import { KongGroups, namesOf, reference } from './kong-groups.js'
import { type KongWindow, windowsOf } from './kong-quota.js'
import type { Migration } from './migration.js'
import type { Section } from './source.js'

/** Plugins that limit. Each kind is looked up separately, so a route may have one of each. */
export const LIMITERS = ['rate-limiting', 'rate-limiting-advanced'] as const

const PLUGIN = [
  'name',
  'service',
  'route',
  'consumer',
  'config',
  'enabled',
  'tags',
  'id',
  'protocols',
  'created_at',
]
const CONFIG = [
  ...['second', 'minute', 'hour', 'day', 'month', 'year', 'limit', 'window_size', 'window_type'],
  ...['limit_by', 'identifier', 'header_name', 'fault_tolerant', 'policy', 'redis', 'strategy', 'sync_rate'],
  ...[
    'namespace',
    'hide_client_headers',
    'error_code',
    'error_message',
    'dictionary_name',
    'lock_dictionary_name',
  ],
]
const BODY = ['allowed_payload_size', 'size_unit']
/** Plugins that neither refuse nor limit, with what that means here. */
const HARMLESS: Readonly<Record<string, string>> = {
  cors: 'Its preflights are answered by the upstream, and refusals carry "cors" of gateway.yaml',
  'proxy-cache': 'Nothing is cached',
  'proxy-cache-advanced': 'Nothing is cached',
  'request-transformer': 'Requests are passed on as they came',
  'request-transformer-advanced': 'Requests are passed on as they came',
  'response-transformer': 'Responses are passed on as they came',
  'response-transformer-advanced': 'Responses are passed on as they came',
}
const NOT_NEEDED =
  /^(file-log|http-log|tcp-log|udp-log|syslog|loggly|statsd|statsd-advanced|datadog|prometheus|zipkin|opentelemetry|kafka-log|correlation-id)$/
const ELSEWHERE: Readonly<Record<string, string>> = {
  'response-ratelimiting': 'A limit by what answers say is "cost: { answerHeader: … }" of a volumetric rule',
  'request-size-limiting': 'The largest body is maxBody of an upstream',
}

type Holder = 'service' | 'route' | 'consumer' | 'consumer_group'
/** What else a plugin may name, beside what it holds for, to hold for fewer requests. */
const NARROWER: Readonly<Record<Holder, readonly Holder[]>> = {
  service: ['route', 'consumer', 'consumer_group'],
  route: ['consumer', 'consumer_group'],
  consumer: [],
  consumer_group: [],
}

export class KongPlugins {
  readonly #into: Migration
  /** Enabled plugins of the list at the top, which name what they hold for. */
  readonly #scoped: readonly Section[]
  readonly #read = new Map<Section, Section[]>()
  /** By what they are in the file, since a part of it may be read more than once. */
  readonly #limiters = new Map<object, { readonly plugin: Section; readonly isUsed: boolean }>()
  readonly #references = new Map<string, Section[]>()
  readonly #consumers = new Map<string, Section>()
  readonly groups: KongGroups
  readonly global: readonly Section[]

  constructor(file: Section, into: Migration) {
    this.#into = into
    this.groups = new KongGroups(file)
    for (const one of file.list('consumers')) for (const name of namesOf(one)) this.#consumers.set(name, one)
    this.#scoped = this.enabled(file.list('plugins'))
    for (const plugin of this.#scoped) {
      for (const kind of ['service', 'route', 'consumer', 'consumer_group']) {
        const name = reference(plugin, kind)
        if (name === undefined) continue
        const key = `${kind} ${name}`
        this.#references.set(key, [...(this.#references.get(key) ?? []), plugin])
      }
    }
    this.global = this.#scoped.filter(({ node }) =>
      ['service', 'route', 'consumer', 'consumer_group'].every(kind => !(kind in node)),
    )
  }

  enabled(plugins: readonly Section[]): Section[] {
    return plugins.filter(plugin => {
      // Passed over, it could be the addresses or groups that a plugin guards by.
      if ('_config' in plugin.node)
        this.#into.unreadable(
          plugin.at('_config'),
          'Settings that plugins share ("_config") are not read. Write out here what this one stands for.',
        )
      if (plugin.node.enabled !== false) return true
      this.#into.leftOut(plugin.at(), `"${plugin.text('name')}", which is not enabled.`)
      return false
    })
  }

  /** The plugins of a service, route, consumer or group: its own, and those that name it. */
  of(holder: Section, kind: Holder): readonly Section[] {
    const known = this.#read.get(holder)
    if (known !== undefined) return known
    const named = namesOf(holder).flatMap(name => this.#references.get(`${kind} ${name}`) ?? [])
    const own = this.enabled(holder.list('plugins'))
    for (const plugin of [...own, ...named]) this.#meet(plugin)
    // What holds for some of its requests alone must not take the place of what holds for all.
    const isWhole = ({ node }: Section): boolean => NARROWER[kind].every(other => !(other in node))
    const all = [
      ...own.filter(plugin => isWhole(plugin) || !this.isHarmless(plugin)),
      ...new Set(named.filter(isWhole)),
    ]
    this.#read.set(holder, all)
    return all
  }

  /** The plugins of a consumer, and those of its groups. */
  ofConsumer(consumer: Section): readonly Section[] {
    const ofGroups = this.groups.of(consumer).flatMap(group => this.of(group, 'consumer_group'))
    return [...this.of(consumer, 'consumer'), ...ofGroups]
  }

  /** The consumer that requests without a key count as; undefined where Kong refuses them, or refuses it. */
  anonymousOf(plugin: Section): string | undefined {
    const name = plugin.section('config').text('anonymous') ?? ''
    const consumer = this.#consumers.get(name)
    if (consumer === undefined) return undefined
    return this.ofConsumer(consumer).every(one => this.isHarmless(one)) ? name : undefined
  }

  /** The windows of a limiter, which is marked as used. */
  windowsOf(plugin: Section): KongWindow[] {
    this.#limiters.set(plugin.node, { plugin, isUsed: true })
    plugin.others(PLUGIN, this.#into, 'Rules have no counterpart of it.')
    const config = plugin.section('config')
    config.others(CONFIG, this.#into, 'Rules have no counterpart of it.')
    const policy = config.text('policy') ?? config.text('strategy') ?? 'local'
    if (policy === 'redis') this.#redis(config)
    else if (policy !== 'local') {
      this.#into.changedOnce(
        config.at(),
        'gateways count together only with "redis" in gateway.yaml, which is not set.',
      )
    }
    return windowsOf(config, this.#into)
  }

  #redis(config: Section): void {
    const redis = 'redis' in config.node ? config.section('redis') : config
    const host = redis.text('host') ?? config.text('redis_host')
    const port = redis.text('port') ?? config.text('redis_port') ?? '6379'
    const database = redis.text('database') ?? config.text('redis_database') ?? '0'
    const isSecret = ['password', 'username', 'redis_password', 'redis_username'].some(
      key => key in redis.node || key in config.node,
    )
    const url = `${redis.node.ssl === true || config.node.redis_ssl === true ? 'rediss' : 'redis'}://${host}:${port}/${database}`
    if (
      host !== undefined &&
      /^[\w.-]+$/.test(host) &&
      /^\d{1,5}$/.test(port) &&
      /^\d{1,3}$/.test(database) &&
      !isSecret
    ) {
      this.#into.useRedis(url)
    } else if (this.#into.isNew('redis')) {
      this.#into.elsewhere(
        config.at(),
        'the Redis of this limit. It is "redis" in gateway.yaml, with its password from the environment; until then each gateway counts for itself.',
      )
    }
  }

  /** Reports what is neither a limit nor a guard. @returns false for a plugin that guards, or may */
  isHarmless(plugin: Section): boolean {
    const name = plugin.text('name') ?? ''
    if (isLimiter(plugin) || name === 'key-auth') return true
    const isNew = this.#into.isNew(`plugin ${JSON.stringify(plugin.at().path)}`)
    const harmless = Object.hasOwn(HARMLESS, name) ? HARMLESS[name] : undefined
    const elsewhere = Object.hasOwn(ELSEWHERE, name) ? ELSEWHERE[name] : undefined
    if (NOT_NEEDED.test(name)) this.#into.findings.notNeeded(`plugin ${name}`)
    else if (isNew && elsewhere !== undefined) {
      if (name === 'request-size-limiting')
        plugin.section('config').others(BODY, this.#into, 'A body without a length is counted as it comes.')
      else this.#into.elsewhere(plugin.at(), `the plugin "${name}". ${elsewhere}.`)
    } else if (isNew && harmless !== undefined) {
      this.#into.leftOut(plugin.at(), `the plugin "${name}". ${harmless}.`)
    }
    return NOT_NEEDED.test(name) || harmless !== undefined || elsewhere !== undefined
  }

  #meet(plugin: Section): void {
    if (isLimiter(plugin) && !this.#limiters.has(plugin.node))
      this.#limiters.set(plugin.node, { plugin, isUsed: false })
  }

  /** Reports limiters that have not been used. */
  reportUnused(): void {
    for (const plugin of this.#scoped) this.#meet(plugin)
    for (const { plugin, isUsed } of this.#limiters.values()) {
      if (!isUsed)
        this.#into.leftOut(plugin.at(), 'a limit that holds for no route or consumer of this file.')
    }
  }
}

export const isLimiter = (plugin: Section): boolean =>
  (LIMITERS as readonly string[]).includes(plugin.text('name') ?? '')

export const algorithmOf = (plugin: Section): 'fixed-window' | 'sliding-window' =>
  plugin.text('name') === 'rate-limiting' || plugin.section('config').text('window_type') === 'fixed'
    ? 'fixed-window'
    : 'sliding-window'

/** The key for `limit_by`, unless it counts by project; undefined when no key expresses it. */
export function keyOf(by: string, config: Section, match: readonly string[]): KeyPart[] | undefined {
  const header = config.text('header_name')
  if (by === 'ip') return ['client-ip']
  if (by === 'header' && header !== undefined) return [`header:${header.toLowerCase()}`]
  // With a single pattern, the path is the same for all requests, so all are counted together.
  return by === 'service' && new Set(match).size === 1 ? ['path'] : undefined
}
