/**
 * Kong's consumers: projects with API keys. A consumer or group with a limit of its own gets a plan of its own. And
 * kong.conf, by which clients' addresses are known.
 */
import { createHash } from 'node:crypto'
import { bucketQuota, windowsOf } from './kong-limits.js'
import { isLimiter, type KongPlugins, namesOf, reference } from './kong-plugins.js'
import type { Migration } from './migration.js'
import { ANY_PLAN } from './projects.js'
import { commaSeparated, listUnder, type Section, type SourceFile, words } from './yaml.js'

const CREDENTIALS = /^(basicauth|hmacauth|jwt|oauth2|mtls_auth|acls)/
const CONSUMER = words('username custom_id id keyauth_credentials plugins groups tags created_at')
/** Settings of key-auth that are read, or that change nothing here. */
const KEY_AUTH_CONFIG = [
  ...words('key_names anonymous hide_credentials key_in_query key_in_body key_in_header'),
  ...words('run_on_preflight realm'),
]
const DEFAULT_HEADER = 'apikey'

export class KongConsumers {
  readonly #into: Migration
  readonly #plugins: KongPlugins
  /** The kind of plugin that the limit of a plan replaces. */
  readonly kinds = new Map<string, string>()
  readonly #headers = new Set<string>()
  readonly #planOfConsumer = new Map<string, string>()
  readonly #planOfGroup = new Map<string, string>()

  constructor(into: Migration, plugins: KongPlugins) {
    this.#into = into
    this.#plugins = plugins
  }

  /** @param keyAuth the plugins of that name, wherever they hold */
  read(file: Section, keyAuth: readonly Section[]): void {
    for (const plugin of keyAuth) this.#keyAuth(plugin)
    if (keyAuth.length === 0) this.#headers.add(DEFAULT_HEADER)
    const credentials = new Map<string, Section[]>()
    for (const one of file.list('keyauth_credentials'))
      listUnder(credentials, reference(one, 'consumer') ?? '', one)
    for (const consumer of file.list('consumers')) {
      const ofNames = namesOf(consumer).flatMap(name => credentials.get(name) ?? [])
      this.#consumer(consumer, [...consumer.list('keyauth_credentials'), ...ofNames])
    }
    for (const plugin of keyAuth) {
      const anonymous = this.#plugins.anonymousOf(plugin)
      if (anonymous !== undefined)
        this.#into.projects.countUnknownAs(this.#planOfConsumer.get(anonymous) ?? ANY_PLAN)
    }
  }

  #keyAuth(plugin: Section): void {
    const config = plugin.section('config')
    const { hide_credentials, key_in_query, key_in_body, key_in_header } = config.node
    config.others(KEY_AUTH_CONFIG, this.#into, 'The identifier api-key has no such setting.')
    const names = config.texts('key_names').map(name => name.replaceAll('_', '-'))
    for (const name of names.length === 0 ? [DEFAULT_HEADER] : names) this.#headers.add(name)
    if (hide_credentials === true) {
      const sentence = 'the upstream gets the keys, too: they are not removed from requests.'
      this.#into.changed(config.at('hide_credentials'), sentence)
    }
    const notRead = (where: string): void =>
      this.#into.changedOnce(
        config.at(),
        `a key in the ${where} is not read (key_in_${where}); only one in a header is.`,
      )
    // Kong reads keys of the query unless it says otherwise.
    if (key_in_query === true || key_in_query === undefined) notRead('query')
    if (key_in_body === true) notRead('body')
    if (key_in_header === false) this.#into.changed(config.at('key_in_header'), 'keys are read from headers.')
  }

  #consumer(consumer: Section, credentials: readonly Section[]): void {
    const username = consumer.text('username') ?? consumer.text('custom_id') ?? ''
    const others = Object.keys(consumer.node).filter(key => CREDENTIALS.test(key))
    for (const key of others) {
      const what = `the ${key.replaceAll('_', ' ')} of "${username}"`
      this.#into.lost(consumer.at(key), `${what}. API keys in a header are the only credentials here.`)
    }
    consumer.others([...CONSUMER, ...others], this.#into, 'A project has hosts, paths and API keys.')
    const id = username.replace(/[^A-Za-z0-9._:-]+/g, '-').slice(0, 128)
    if (id === '' || !this.#into.isNew(`project ${id}`)) {
      this.#into.leftOut(consumer.at(), `the consumer "${username}". A project has an id of its own.`)
      return
    }
    const plugins = this.#plugins.of(consumer, 'consumer')
    const all = this.#plugins.ofConsumer(consumer)
    const [guard] = all.filter(plugin => !this.#plugins.isHarmless(plugin))
    if (guard !== undefined) {
      const what = `"${guard.text('name')}" of the consumer "${username}"`
      this.#into.lost(guard.at(), `${what}. The consumer is left out, so its keys are unknown.`)
      return
    }
    for (const one of all.filter(({ node }) => node.name === 'request-size-limiting')) {
      const why = 'maxBody is of an upstream, for all who ask it.'
      this.#into.leftOut(one.at(), `the largest body of the consumer "${username}". ${why}`)
    }
    const limiters = plugins.filter(isLimiter)
    const plan = limiters.length > 0 ? this.#newPlan(id, limiters) : this.#groupPlan(consumer)
    this.#planOfConsumer.set(username, plan)
    const apiKeyHashes = credentials.flatMap(one => this.#hashOf(one))
    const hasKeys = apiKeyHashes.length > 0
    for (const header of hasKeys ? [...this.#headers].reverse() : []) {
      if (this.#into.isSound('api-key', { header }, consumer.at()))
        this.#into.projects.identifyBy({ plugin: 'api-key', header })
    }
    this.#into.projects.add({ id, plan, ...(hasKeys && { apiKeyHashes }) }, consumer.at())
  }

  /** The plan of the first of a consumer's groups that has a limit. */
  #groupPlan(consumer: Section): string {
    for (const group of this.#plugins.groupsOf(consumer)) {
      const name = group.text('name') ?? ''
      const limiters = this.#plugins.of(group, 'consumer_group').filter(isLimiter)
      if (limiters.length === 0) continue
      const plan = this.#planOfGroup.get(name) ?? this.#newPlan(name, limiters)
      this.#planOfGroup.set(name, plan)
      return plan
    }
    return ANY_PLAN
  }

  #newPlan(id: string, own: readonly Section[]): string {
    const [plugin, ...more] = own as [Section, ...Section[]]
    for (const one of more) {
      windowsOf(one, this.#plugins, this.#into)
      this.#into.leftOut(one.at(), 'a second limit of this consumer.')
    }
    const windows = windowsOf(plugin, this.#plugins, this.#into)
    if (windows.length === 0) return ANY_PLAN
    if ('route' in plugin.node || 'service' in plugin.node) {
      this.#into.leftOut(plugin.at(), `a limit of ${id} for some routes alone.`)
      return ANY_PLAN
    }
    const plan = this.#into.projects.plan(id, bucketQuota(windows, plugin))
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
    const at = credential.at('key')
    if (ttl !== undefined) {
      const why = 'Here a key holds until it is removed, so it is left out.'
      this.#into.lost(credential.at('ttl'), `a key that expires. ${why}`)
    } else if (typeof key === 'number') this.#into.leftOut(at, 'a key that is a number. Write it in quotes.')
    else if (typeof key !== 'string' || key.trim() === '' || /^\{vault:|^\$\{/.test(key))
      this.#into.leftOut(credential.at(), 'a key that is not in the file.')
    else {
      const hash = createHash('sha256').update(key).digest('hex')
      if (this.#into.isNew(`key ${hash}`)) return [hash]
      this.#into.leftOut(at, 'a key that is already in the file. A key identifies one consumer.')
    }
    return []
  }
}

/** kong.conf says which proxies Kong trusted. @returns false when clients' addresses would not be known */
export function importKongConf({ text, file }: SourceFile, into: Migration): boolean {
  const lines = text.split('\n')
  const odd = lines.findIndex(line => !/^[ \t]*(?:$|#|[a-z0-9_]{1,100}[ \t]*=)/.test(line))
  if (odd >= 0) {
    into.unreadable({ line: odd + 1, col: 1, file }, 'This is not kong.conf, where a line is "name = value".')
    return false
  }
  const settings = new Map<string, { readonly value: string; readonly line: number }>()
  for (const [i, line] of lines.entries()) {
    const mark = line.indexOf('=')
    const name = line.slice(0, Math.max(0, mark)).trim()
    const [value = ''] = line.slice(mark + 1).split(' #')
    if (mark > 0 && !name.startsWith('#')) settings.set(name, { value: value.trim(), line: i + 1 })
  }
  const trusted = settings.get('trusted_ips')
  if (trusted === undefined || trusted.value === '') return true
  const at = { line: trusted.line, col: 1, file }
  const header = settings.get('real_ip_header')?.value ?? 'X-Real-IP'
  if (header.toLowerCase() !== 'x-forwarded-for') {
    into.lostClients(at, trusted.value, header)
    return false
  }
  into.trust(commaSeparated(trusted.value), at)
  return true
}
