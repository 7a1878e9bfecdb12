/** Kong's plugins: which hold for a route, and what each of them is: a limit, a guard, or something else. */
import type { Migration } from './migration.js'
import { listUnder, type Section, words } from './yaml.js'

/** Plugins that limit. Each kind is looked up separately, so a route may have one of each. */
export const LIMITERS = ['rate-limiting', 'rate-limiting-advanced']

const PLUGIN = words('name service route consumer config enabled tags id protocols created_at')
const CONFIG = [
  ...words('second minute hour day month year limit window_size window_type limit_by identifier header_name'),
  ...words('fault_tolerant policy redis strategy sync_rate namespace hide_client_headers error_code'),
  ...words('error_message dictionary_name lock_dictionary_name'),
]
/** Plugins that neither refuse nor limit, with what that means here. */
const HARMLESS: Readonly<Record<string, string>> = {
  cors: 'Its preflights are answered by the upstream, and refusals carry "cors" of gateway.yaml',
  'proxy-cache': 'Nothing is cached',
  'proxy-cache-advanced': 'Nothing is cached',
}
const NOT_NEEDED =
  /^(file-log|http-log|tcp-log|udp-log|syslog|loggly|statsd|statsd-advanced|datadog|prometheus|zipkin|opentelemetry|kafka-log|correlation-id)$/
const TRANSFORMER = /^(request|response)-transformer(-advanced)?$/
const BODY_LIMIT = 'request-size-limiting'
const ANSWER_LIMIT = 'response-ratelimiting'
const BY_ANSWER = 'A limit by what answers say is "cost: { answerHeader: … }" of a volumetric rule'

const HOLDERS = ['service', 'route', 'consumer', 'consumer_group'] as const
type Holder = (typeof HOLDERS)[number]
/** What else a plugin may name, beside what it holds for, to hold for fewer requests. */
const NARROWER: Readonly<Record<Holder, readonly Holder[]>> = {
  service: ['route', 'consumer', 'consumer_group'],
  route: ['consumer', 'consumer_group'],
  consumer: [],
  consumer_group: [],
}

/** What references may call a service, route, consumer or group. */
export const namesOf = (one: Section): string[] =>
  ['name', 'username', 'id'].flatMap(key => one.text(key) ?? [])

/** The name that a reference such as `service: shop` or `service: { name: shop }` gives. */
export function reference(of: Section, kind: string): string | undefined {
  return of.text(kind) ?? namesOf(of.section(kind))[0]
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
  readonly #groups: KongGroups
  /** Plugins that hold for every route. */
  readonly global: readonly Section[]

  constructor(file: Section, into: Migration) {
    this.#into = into
    this.#groups = new KongGroups(file)
    for (const one of file.list('consumers')) for (const name of namesOf(one)) this.#consumers.set(name, one)
    this.#scoped = this.#enabled(file.list('plugins'))
    for (const plugin of this.#scoped) {
      for (const kind of HOLDERS) {
        const name = reference(plugin, kind)
        if (name !== undefined) listUnder(this.#references, `${kind} ${name}`, plugin)
      }
    }
    this.global = this.#scoped.filter(({ node }) => HOLDERS.every(kind => !(kind in node)))
  }

  #enabled(plugins: readonly Section[]): Section[] {
    return plugins.filter(plugin => {
      // Passed over, it could be the addresses or groups that a plugin guards by.
      if ('_config' in plugin.node)
        this.#into.unreadable(
          plugin.at('_config'),
          'Settings that plugins share ("_config") are not read. Write out here what this one stands for.',
        )
      const isEnabled = plugin.node.enabled !== false
      if (!isEnabled) this.#into.leftOut(plugin.at(), `"${plugin.text('name')}", which is not enabled.`)
      return isEnabled
    })
  }

  /** The plugins of a service, route, consumer or group: its own, and those that name it. */
  of(holder: Section, kind: Holder): readonly Section[] {
    const known = this.#read.get(holder)
    if (known !== undefined) return known
    const referring = namesOf(holder).flatMap(name => this.#references.get(`${kind} ${name}`) ?? [])
    const own = this.#enabled(holder.list('plugins'))
    for (const plugin of [...own, ...referring]) this.#meet(plugin)
    // What holds for some of its requests alone must not take the place of what holds for all.
    const isWhole = ({ node }: Section): boolean => NARROWER[kind].every(other => !(other in node))
    const all = [
      ...own.filter(plugin => isWhole(plugin) || !this.isHarmless(plugin)),
      ...new Set(referring.filter(isWhole)),
    ]
    this.#read.set(holder, all)
    return all
  }

  groupsOf(consumer: Section): readonly Section[] {
    return this.#groups.of(consumer)
  }

  ofConsumer(consumer: Section): readonly Section[] {
    const ofGroups = this.groupsOf(consumer).flatMap(group => this.of(group, 'consumer_group'))
    return [...this.of(consumer, 'consumer'), ...ofGroups]
  }

  /** The consumer that requests without a key count as; undefined where Kong refuses them, or refuses it. */
  anonymousOf(plugin: Section): string | undefined {
    const name = plugin.section('config').text('anonymous') ?? ''
    const consumer = this.#consumers.get(name)
    if (consumer === undefined) return undefined
    return this.ofConsumer(consumer).every(one => this.isHarmless(one)) ? name : undefined
  }

  /** Reads the settings of a limiter, which is marked as used. */
  use(plugin: Section): Section {
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
    return config
  }

  #redis(config: Section): void {
    const redis = 'redis' in config.node ? config.section('redis') : config
    const of = (key: string): string | undefined => redis.text(key) ?? config.text(`redis_${key}`)
    const [host = '', port = '6379', database = '0'] = [of('host'), of('port'), of('database')]
    const isSecret = words('password username redis_password redis_username').some(
      key => key in redis.node || key in config.node,
    )
    const isUsable = /^[\w.-]+$/.test(host) && /^\d{1,5}$/.test(port) && /^\d{1,3}$/.test(database)
    const isEncrypted = redis.node.ssl === true || config.node.redis_ssl === true
    if (isUsable && !isSecret)
      this.#into.useRedis(`${isEncrypted ? 'rediss' : 'redis'}://${host}:${port}/${database}`)
    else {
      const sentence =
        'the Redis of this limit. It is "redis" in gateway.yaml, with its password from the environment; until then each gateway counts for itself.'
      this.#into.elsewhere(config.at(), sentence, 'redis')
    }
  }

  /** Reports what is neither a limit nor a guard. @returns false for a plugin that guards, or may */
  isHarmless(plugin: Section): boolean {
    const name = plugin.text('name') ?? ''
    if (isLimiter(plugin) || name === 'key-auth') return true
    const isNew = this.#into.isNew(`plugin ${JSON.stringify(plugin.at().path)}`)
    const what = `the plugin "${name}".`
    if (NOT_NEEDED.test(name)) this.#into.notNeeded(`plugin ${name}`)
    else if (name === BODY_LIMIT) {
      const config = plugin.section('config')
      const known = ['allowed_payload_size', 'size_unit']
      if (isNew) config.others(known, this.#into, 'A body without a length is counted as it comes.')
    } else if (name === ANSWER_LIMIT) {
      if (isNew) this.#into.elsewhere(plugin.at(), `${what} ${BY_ANSWER}.`)
    } else if (TRANSFORMER.test(name)) {
      const parts = isNew ? plugin.section('config').members() : []
      for (const [, part] of parts)
        part.others(['headers', 'uri'], this.#into, 'Routes change header fields.')
    } else if (!Object.hasOwn(HARMLESS, name)) return false
    else if (isNew) this.#into.leftOut(plugin.at(), `${what} ${HARMLESS[name]}.`)
    return true
  }

  #meet(plugin: Section): void {
    if (isLimiter(plugin) && !this.#limiters.has(plugin.node))
      this.#limiters.set(plugin.node, { plugin, isUsed: false })
  }

  reportUnused(): void {
    for (const plugin of this.#scoped) this.#meet(plugin)
    for (const { plugin, isUsed } of this.#limiters.values()) {
      if (!isUsed)
        this.#into.leftOut(plugin.at(), 'a limit that holds for no route or consumer of this file.')
    }
  }
}

export const isLimiter = (plugin: Section): boolean => LIMITERS.includes(plugin.text('name') ?? '')

/** Which groups a consumer is in: said by the consumer, by the group, or by `consumer_group_consumers`. */
class KongGroups {
  readonly #named = new Map<string, Section>()
  /** The groups of each name that a consumer may have. */
  readonly #ofMember = new Map<string, Section[]>()

  constructor(file: Section) {
    const groups = file.list('consumer_groups')
    for (const group of groups) for (const name of namesOf(group)) this.#named.set(name, group)
    for (const group of groups)
      for (const member of listed(group, 'consumers')) listUnder(this.#ofMember, member, group)
    for (const pair of file.list('consumer_group_consumers')) {
      const group = this.#named.get(reference(pair, 'consumer_group') ?? '')
      const member = reference(pair, 'consumer')
      if (group !== undefined && member !== undefined) listUnder(this.#ofMember, member, group)
    }
  }

  of(consumer: Section): Section[] {
    const own = listed(consumer, 'groups').flatMap(name => this.#named.get(name) ?? [])
    const others = namesOf(consumer).flatMap(name => this.#ofMember.get(name) ?? [])
    return [...new Set([...own, ...others])]
  }
}

const listed = (of: Section, key: string): string[] => [
  ...of.texts(key).filter(name => name !== '[object Object]'),
  ...of.list(key).flatMap(namesOf),
]
