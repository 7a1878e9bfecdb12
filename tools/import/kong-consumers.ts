/** Kong's consumers: projects with API keys. A consumer or group with a limit of its own gets a plan of its own. */
import { createHash } from 'node:crypto'
import { ANY_PLAN } from './callers.js'
import { namesOf, reference } from './kong-groups.js'
import { algorithmOf, isLimiter, type KongPlugins } from './kong-plugins.js'
import { bucketQuota } from './kong-quota.js'
import type { Migration } from './migration.js'
import type { Section } from './source.js'

const CREDENTIALS = /^(basicauth|hmacauth|jwt|oauth2|mtls_auth|acls)/
/** Settings of key-auth that are read, or that change nothing here. */
const KEY_AUTH_CONFIG = [
  'key_names',
  'anonymous',
  'hide_credentials',
  'key_in_query',
  'key_in_body',
  'key_in_header',
  'run_on_preflight',
  'realm',
]

const DEFAULT_HEADER = 'apikey'

export class KongConsumers {
  readonly #into: Migration
  readonly #plugins: KongPlugins
  /** The kind of plugin that the limit of a plan replaces. */
  readonly kinds = new Map<string, string>()
  readonly #headers = new Set<string>()

  constructor(into: Migration, plugins: KongPlugins) {
    this.#into = into
    this.#plugins = plugins
  }

  /** @param keyAuth the plugins of that name, wherever they hold */
  read(file: Section, keyAuth: readonly Section[]): void {
    for (const plugin of keyAuth) this.#keyAuth(plugin)
    if (keyAuth.length === 0) this.#headers.add(DEFAULT_HEADER)
    const listed = new Map<string, Section[]>()
    for (const credential of file.list('keyauth_credentials')) {
      const owner = reference(credential, 'consumer') ?? ''
      listed.set(owner, [...(listed.get(owner) ?? []), credential])
    }
    for (const consumer of file.list('consumers')) {
      const own = namesOf(consumer).flatMap(name => listed.get(name) ?? [])
      this.#consumer(consumer, own)
    }
    for (const plugin of keyAuth) this.#anonymous(plugin)
  }

  #keyAuth(plugin: Section): void {
    const config = plugin.section('config')
    config.others(KEY_AUTH_CONFIG, this.#into, 'The identifier api-key has no such setting.')
    const names = config.texts('key_names').map(name => name.replaceAll('_', '-'))
    for (const name of names.length === 0 ? [DEFAULT_HEADER] : names) this.#headers.add(name)
    if (config.node.hide_credentials === true) {
      this.#into.changed(
        config.at('hide_credentials'),
        'the upstream gets the keys, too: they are not removed from requests.',
      )
    }
    for (const key of ['key_in_query', 'key_in_body']) {
      // Kong reads keys of the query unless it is told not to.
      if (config.node[key] === true || (key === 'key_in_query' && config.node[key] === undefined)) {
        this.#into.changedOnce(
          config.at(),
          `a key in the ${key.slice(7)} is not read (${key}); only one in a header is.`,
        )
      }
    }
    if (config.node.key_in_header === false) {
      this.#into.changed(config.at('key_in_header'), 'keys are read from headers.')
    }
  }

  #anonymous(plugin: Section): void {
    const anonymous = this.#plugins.anonymousOf(plugin)
    if (anonymous === undefined) return
    const plan = this.#planNamed.get(anonymous) ?? ANY_PLAN
    this.#into.callers.countUnknownAs(plan)
  }

  readonly #planNamed = new Map<string, string>()

  #consumer(consumer: Section, listed: readonly Section[]): void {
    const username = consumer.text('username') ?? consumer.text('custom_id') ?? ''
    const known = [
      'username',
      'custom_id',
      'id',
      'keyauth_credentials',
      'plugins',
      'groups',
      'tags',
      'created_at',
    ]
    for (const key of Object.keys(consumer.node)) {
      if (CREDENTIALS.test(key)) {
        this.#into.lost(
          consumer.at(key),
          `the ${key.replaceAll('_', ' ')} of "${username}". API keys in a header are the only credentials here.`,
        )
      }
    }
    consumer.others(
      [...known, ...Object.keys(consumer.node).filter(key => CREDENTIALS.test(key))],
      this.#into,
      'A project has hosts, paths and API keys.',
    )
    const id = username.replace(/[^A-Za-z0-9._:-]+/g, '-').slice(0, 128)
    if (id === '' || !this.#into.isNew(`project ${id}`)) {
      this.#into.leftOut(consumer.at(), `the consumer "${username}". A project has an id of its own.`)
      return
    }
    const plugins = this.#plugins.of(consumer, 'consumer')
    const all = this.#plugins.ofConsumer(consumer)
    const guards = all.filter(plugin => !this.#plugins.isHarmless(plugin))
    const [guard] = guards
    if (guard !== undefined) {
      this.#into.lost(
        guard.at(),
        `"${guard.text('name')}" of the consumer "${username}". The consumer is left out, so its keys are unknown.`,
      )
      return
    }
    for (const one of all.filter(({ node }) => node.name === 'request-size-limiting'))
      this.#into.leftOut(
        one.at(),
        `the largest body of the consumer "${username}". maxBody is of an upstream, for all who ask it.`,
      )
    const limiters = plugins.filter(isLimiter)
    const plan = limiters.length > 0 ? this.#planOf(id, limiters) : this.#groupPlan(consumer)
    this.#planNamed.set(username, plan)
    const credentials = [...consumer.list('keyauth_credentials'), ...listed]
    const apiKeyHashes = credentials.flatMap(one => this.#hashOf(one))
    if (apiKeyHashes.length > 0) {
      for (const header of [...this.#headers].reverse()) {
        if (this.#into.isSound('api-key', { header }, consumer.at())) {
          this.#into.callers.identifyBy({ plugin: 'api-key', header })
        }
      }
    }
    this.#into.callers.project({ id, plan, ...(apiKeyHashes.length > 0 && { apiKeyHashes }) }, consumer.at())
  }

  /** The plan of the first of a consumer's groups that has a limit. */
  #groupPlan(consumer: Section): string {
    for (const group of this.#plugins.groups.of(consumer)) {
      const name = group.text('name') ?? ''
      const limiters = this.#plugins.of(group, 'consumer_group').filter(isLimiter)
      if (limiters.length > 0) return this.#groupPlans.get(name) ?? this.#newGroupPlan(name, limiters)
    }
    return ANY_PLAN
  }

  readonly #groupPlans = new Map<string, string>()

  #newGroupPlan(name: string, limiters: readonly Section[]): string {
    const plan = this.#planOf(name, limiters)
    this.#groupPlans.set(name, plan)
    return plan
  }

  #planOf(id: string, own: readonly Section[]): string {
    const [plugin, ...more] = own as [Section, ...Section[]]
    for (const one of more) {
      this.#plugins.windowsOf(one)
      this.#into.leftOut(one.at(), 'a second limit of this consumer.')
    }
    const windows = this.#plugins.windowsOf(plugin)
    if (windows.length === 0) return ANY_PLAN
    if ('route' in plugin.node || 'service' in plugin.node) {
      this.#into.leftOut(plugin.at(), `a limit of ${id} for some routes alone.`)
      return ANY_PLAN
    }
    const plan = this.#into.callers.plan(id, bucketQuota(windows, algorithmOf(plugin)))
    if (plan === undefined) {
      this.#into.leftOut(plugin.at(), `the limit of ${id}. There are at most 100 plans.`)
      return ANY_PLAN
    }
    this.kinds.set(plan, plugin.text('name') ?? '')
    return plan
  }

  /** A number is not accepted as a key: YAML has already changed values such as 0123 or 1e5. */
  #hashOf(credential: Section): string[] {
    const { key, ttl } = credential.node
    if (ttl !== undefined) {
      this.#into.lost(
        credential.at('ttl'),
        'a key that expires. Here a key holds until it is removed, so it is left out.',
      )
    } else if (typeof key === 'number')
      this.#into.leftOut(credential.at('key'), 'a key that is a number. Write it in quotes.')
    else if (typeof key !== 'string' || key.trim() === '' || /^\{vault:|^\$\{/.test(key)) {
      this.#into.leftOut(credential.at(), 'a key that is not in the file.')
    } else {
      const hash = createHash('sha256').update(key).digest('hex')
      if (this.#into.isNew(`key ${hash}`)) return [hash]
      this.#into.leftOut(
        credential.at('key'),
        'a key that is already in the file. A key identifies one consumer.',
      )
    }
    return []
  }
}
