/** nginx's limits: zones, and where `limit_req` and `limit_conn` hold. */
import type { KeyPart } from '../../config/words/words.js'
import type { Migration } from './migration.js'
import type { Variables, ZoneKey } from './nginx-key.js'
import type { Directive } from './nginx-text.js'
import { tokenBucketOf, windowOf } from './rate.js'

interface Zone {
  readonly key: ZoneKey
  /** Requests per second; 0 for a zone of connections. */
  readonly rate: number
}

/** A `limit_req` or `limit_conn` directive. */
export interface Limit {
  readonly directive: Directive
  readonly dryRun: boolean
}

/** A limit with all locations it applies to: one zone counts them together. */
interface Holding {
  readonly limit: Limit
  readonly projects: readonly string[]
  readonly match: string[]
}

interface Common {
  readonly name: string
  readonly match: readonly string[]
  readonly key: readonly KeyPart[]
  readonly projects: readonly string[]
  readonly reportOnly: boolean
  readonly networks?: readonly string[]
  readonly missing?: 'shared'
}

export class NginxLimits {
  /** False when rules by address would see the address of a proxy. */
  knowsClients = true
  readonly #into: Migration
  readonly #variables: Variables
  readonly #zones = new Map<string, Zone>()
  readonly #holding = new Map<string, Holding>()
  /** How many limits use a zone. */
  readonly #uses = new Map<string, Set<Directive>>()
  readonly #ids = new Map<Directive, number>()

  constructor(into: Migration, variables: Variables) {
    this.#into = into
    this.#variables = variables
  }

  zone(one: Directive): void {
    const [key = '', ...options] = one.words
    const name = optionOf(options, 'zone')?.split(':')[0]
    const [, count, unit] = /^(\d{1,9})r\/(s|m)$/.exec(optionOf(options, 'rate') ?? '') ?? []
    const rate = Number(count ?? 0) / (unit === 'm' ? 60 : 1)
    const isRequests = one.name === 'limit_req_zone'
    const zoneKey = this.#variables.keyOf(key)
    if (name === undefined || (isRequests && rate === 0)) {
      this.#into.leftOut(one, `"${one.name}" without a zone or a rate.`)
    } else if (zoneKey === undefined) {
      this.#into.leftOut(one, `the zone "${name}". A rule cannot count by "${key}".`)
    } else {
      this.#zones.set(`${isRequests ? 'limit_req' : 'limit_conn'} ${name}`, { key: zoneKey, rate })
    }
  }

  /** The limits of a block: those of a module around it hold only if it has none of that module itself. */
  of(block: readonly Directive[], outer: readonly Limit[]): readonly Limit[] {
    const stated = (kind: string): boolean | undefined => {
      const [word] = block.find(one => one.name === `${kind}_dry_run`)?.words ?? []
      return word === undefined ? undefined : word === 'on'
    }
    const own = block.flatMap(one =>
      one.name === 'limit_req' || one.name === 'limit_conn'
        ? { directive: one, dryRun: stated(one.name) ?? false }
        : [],
    )
    const names = new Set(own.map(({ directive }) => directive.name))
    const inherited = outer
      .filter(({ directive }) => !names.has(directive.name))
      .map(limit => ({ ...limit, dryRun: stated(limit.directive.name) ?? limit.dryRun }))
    return [...inherited, ...own]
  }

  /** Applies limits to the requests of a place. */
  hold(
    limits: readonly Limit[],
    place: { readonly pattern: string; readonly projects: readonly string[] },
  ): void {
    const { pattern, projects } = place
    this.#into.place([pattern], projects)
    for (const limit of limits) {
      const { directive } = limit
      const id = [this.#idOf(directive), limit.dryRun, ...projects].join(' ')
      const held = this.#holding.get(id) ?? { limit, projects, match: [] }
      this.#holding.set(id, held)
      held.match.push(pattern)
      const zone = `${directive.name} ${zoneOf(directive)}`
      this.#uses.set(zone, (this.#uses.get(zone) ?? new Set()).add(directive))
    }
  }

  #idOf(directive: Directive): number {
    const id = this.#ids.get(directive) ?? this.#ids.size
    this.#ids.set(directive, id)
    return id
  }

  /** Writes the rules, once all places are known. */
  write(): void {
    for (const one of this.#holding.values()) this.#rule(one)
  }

  #rule({ limit: { directive, dryRun }, projects, match }: Holding): void {
    const { name, words } = directive
    const zoneName = zoneOf(directive)
    const zone = this.#zones.get(`${name} ${zoneName}`)
    if (zone === undefined) {
      this.#into.leftOut(directive, `"${name}" of the zone "${zoneName}", which could not be read.`)
      return
    }
    const { parts, exempt = [], only, missing } = zone.key
    if (exempt.length > 0) this.#exempt(exempt, zoneName ?? name, directive)
    if ((this.#uses.get(`${name} ${zoneName}`)?.size ?? 0) > 1) {
      this.#into.changed(
        directive,
        `the zone "${zoneName}" is counted for this limit alone, not with its others.`,
      )
    }
    // A server with names is a project; otherwise only the location can represent it in a key.
    const key = parts.map(part => (part === 'path' && projects.length === 1 ? 'project' : part))
    if (key.includes('path') && match.length > 1) {
      this.#into.changed(directive, 'each location is counted by itself, not all of the server together.')
    }
    const common: Common = {
      ...{ name: zoneName ?? name, match, key: [...new Set(key)], projects, reportOnly: dryRun },
      ...(only !== undefined && { networks: only }),
      ...(missing !== undefined && { missing }),
    }
    if (name === 'limit_req') {
      this.#requests(common, zone.rate, directive)
      return
    }
    const max = Number(words[1])
    if (max >= 1) this.#into.rules.slots({ ...common, max }, directive)
    else this.#into.leftOut(directive, `"${name}" without a number of connections.`)
  }

  #exempt(networks: readonly string[], name: string, at: Directive): void {
    if (!this.#into.isNew(`exempt ${networks.join()}`)) return
    if (!this.knowsClients) {
      this.#into.lost(
        at,
        `the exemption of ${networks.join(', ')}, because clients’ addresses are not known: it could exempt everybody behind a proxy.`,
      )
      return
    }
    this.#into.rules.exempt(`${name}-exempt`, networks, at)
  }

  #requests(common: Common, rate: number, directive: Directive): void {
    const { words } = directive
    const burst = Number(optionOf(words, 'burst') ?? 0)
    const isDelayed = burst > 0 && !words.includes('nodelay')
    const late = isDelayed ? ' Nothing is delayed.' : ''
    const theirs = `where nginx lets ${burst + 1} pass and then one each ${Math.round(1000 / rate)} ms.${late}`
    const token = tokenBucketOf(rate, burst + 1)
    const isByClient =
      common.key.join() === 'client-ip' && !common.reportOnly && common.networks === undefined
    const isBucket =
      token !== undefined &&
      isByClient &&
      this.#into.bucket(
        { ...common, key: 'client-ip', quota: token.quota, counter: String(this.#idOf(directive)) },
        directive,
      )
    if (isBucket) {
      if (!token.isExact) {
        const each = Math.round((1000 * token.seconds) / token.requests)
        this.#into.changed(
          directive,
          `up to ${token.requests} pass at once and then one each ${each} ms, ${theirs}`,
        )
      } else if (isDelayed) this.#into.changed(directive, `${burst + 1} pass at once. Nothing is delayed.`)
      return
    }
    const quota = windowOf(rate, burst + 1)
    if (quota === undefined) {
      this.#into.leftOut(directive, 'a burst that takes longer than a day to refill.')
      return
    }
    if (burst > 0 || quota.requests > 1) {
      this.#into.changed(
        directive,
        `up to ${quota.requests} pass at once and no more until ${quota.per} after the first, ${theirs}`,
      )
    }
    this.#into.rules.meter({ ...common, quota }, directive)
  }
}

const optionOf = (words: readonly string[], name: string): string | undefined =>
  words.find(word => word.startsWith(`${name}=`))?.slice(name.length + 1)

const zoneOf = ({ name, words }: Directive): string | undefined =>
  name === 'limit_req' ? optionOf(words, 'zone') : words[0]
