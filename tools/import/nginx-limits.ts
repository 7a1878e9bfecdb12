/** nginx's limits: the keys of zones, and where `limit_req` and `limit_conn` hold. */

import { parseNetwork } from '../../config/words/address.js'
import type { KeyPart } from '../../config/words/words.js'
import type { Migration } from './migration.js'
import type { Block, Directive } from './nginx-text.js'
import { deniedNetworks } from './rules.js'

/** A zone's key, in terms of a rule. */
interface ZoneKey {
  readonly parts: readonly KeyPart[]
  /** Addresses that the zone does not count. */
  readonly exempt?: readonly string[]
  /** The only addresses that it counts. */
  readonly only?: readonly string[]
  /** Set where the key is never empty, so that requests without one of its headers are counted, too. */
  readonly missing?: 'shared'
}

const PARTS: Readonly<Record<string, KeyPart>> = {
  binary_remote_addr: 'client-ip',
  remote_addr: 'client-ip',
  host: 'host',
  server_name: 'path',
  uri: 'full-path',
  document_uri: 'full-path',
  request_uri: 'full-path',
  request_method: 'method',
}

/** Lines of a `map` that are no text to compare with: expressions, escapes, and settings of the map. */
const NO_TEXT = /^([~\\]|(hostnames|volatile|include)$)/

/** A line of `geo`, with the key of its addresses. */
interface KeyedNetwork {
  readonly network: string
  readonly key: string
}

/** The variables that the file itself defines, by `geo` and `map`. */
class NginxVariables {
  readonly #blocks = new Map<string, Directive>()

  add(directive: Directive): void {
    this.#blocks.set(directive.words.at(-1) ?? '', directive)
  }

  /** Undefined when a rule cannot count by a part of the key. */
  keyOf(text: string): ZoneKey | undefined {
    const names = [...text.matchAll(/\$(?:\{(\w+)\}|(\w+))/g)].map(([, braced, bare]) => braced ?? bare ?? '')
    if (names.length === 1 && this.#blocks.has(`$${names[0]}`)) return this.#mapped(`$${names[0]}`)
    const parts = names.map(partOf)
    if (parts.length === 0 || parts.some(part => part === undefined)) return undefined
    const isEmptyWithout = /^\$(\{\w+\}|\w+)$/.test(text)
    return { parts: [...new Set(parts as KeyPart[])], ...(!isEmptyWithout && { missing: 'shared' as const }) }
  }

  /** For a `map` of a variable that `geo` sets by address, where an empty key means that a request is not counted. */
  #mapped(name: string): ZoneKey | undefined {
    const map = this.#blocks.get(name)
    const geo = this.#blocks.get(map?.words[0] ?? '')
    if (map?.name !== 'map' || geo?.name !== 'geo') return undefined
    // By another variable than the client's address, as in "geo $arg_ip $limited", it says nothing about the address.
    if (geo.words.length !== 1 && geo.words[0] !== '$remote_addr') return undefined
    const lines = map.block ?? []
    if (lines.some(({ name }) => NO_TEXT.test(name))) return undefined
    const keys = new Map(lines.map(({ name: value, words }) => [value.toLowerCase(), words[0] ?? '']))
    const keyOf = (value = ''): string => keys.get(value.toLowerCase()) ?? keys.get('default') ?? ''
    const entries = (geo.block ?? []).map(({ name: network, words }) => ({ network, key: keyOf(words[0]) }))
    const fallback = entries.find(({ network }) => network === 'default')?.key ?? keyOf()
    const networks = entries.filter(({ network }) => network !== 'default')
    const counted = new Set([fallback, ...networks.map(({ key }) => key)].filter(key => key !== ''))
    const [only] = counted
    if (only === undefined || counted.size !== 1 || this.#blocks.has(only)) return undefined
    const key = this.keyOf(only)
    if (key === undefined) return undefined
    const isCounted = fallback === ''
    const chosen = networksWhere(networks, ({ key }) => (key !== '') === isCounted)
    if (chosen === undefined) return undefined
    return isCounted ? { ...key, only: chosen } : { ...key, exempt: chosen }
  }
}

/** The addresses for which the longest network that holds them is one of the chosen ones. */
function networksWhere(
  entries: readonly KeyedNetwork[],
  isChosen: (entry: KeyedNetwork) => boolean,
): string[] | undefined {
  const bits = ({ network }: KeyedNetwork): number => parseNetwork(network)?.bits ?? Number.NaN
  if (entries.some(entry => Number.isNaN(bits(entry)))) return undefined
  // Of a network that is written twice, nginx takes the last line.
  const longestFirst = [...entries].reverse().sort((a, b) => bits(b) - bits(a))
  return deniedNetworks(longestFirst.map(entry => ({ allow: !isChosen(entry), network: entry.network })))
}

function partOf(name: string): KeyPart | undefined {
  if (Object.hasOwn(PARTS, name)) return PARTS[name]
  const header = /^http_(\w+)$/.exec(name)?.[1]
  return header === undefined ? undefined : `header:${header.toLowerCase().replaceAll('_', '-')}`
}

/** A `limit_req` or `limit_conn` directive. */
export interface NginxLimit {
  readonly directive: Directive
  readonly dryRun: boolean
}

/** The limits of a block: those of a module around it hold only if it has none of that module itself. */
export function limitsOf(block: Block, outer: readonly NginxLimit[]): readonly NginxLimit[] {
  const stated = (kind: string): boolean | undefined => {
    const [word] = block.find(one => one.name === `${kind}_dry_run`)?.words ?? []
    return word === undefined ? undefined : word === 'on'
  }
  const own = block
    .filter(({ name }) => name === 'limit_req' || name === 'limit_conn')
    .map(directive => ({ directive, dryRun: stated(directive.name) ?? false }))
  const names = new Set(own.map(({ directive }) => directive.name))
  const inherited = outer
    .filter(({ directive }) => !names.has(directive.name))
    .map(limit => ({ ...limit, dryRun: stated(limit.directive.name) ?? limit.dryRun }))
  return [...inherited, ...own]
}

/** A limit with all locations it applies to: one zone counts them together. */
interface LimitUse {
  readonly limit: NginxLimit
  readonly projects: readonly string[]
  readonly match: string[]
}

export class NginxLimits {
  /** False when rules by address would see the address of a proxy. */
  knowsClients = true
  readonly variables = new NginxVariables()
  readonly #into: Migration
  /** The zones of each kind of limit, with their requests per second; 0 for connections. */
  readonly #zones = new Map<string, { readonly key: ZoneKey; readonly rate: number }>()
  readonly #uses = new Map<string, LimitUse>()
  /** The limits that use a zone. */
  readonly #usersOf = new Map<string, Set<Directive>>()
  readonly #ids = new Map<Directive, number>()

  constructor(into: Migration) {
    this.#into = into
  }

  /** Adds a `limit_req_zone` or `limit_conn_zone`. */
  zone(one: Directive): void {
    const [key = '', ...options] = one.words
    const name = optionOf(options, 'zone')?.split(':')[0]
    const [, count, unit] = /^(\d{1,9})r\/(s|m)$/.exec(optionOf(options, 'rate') ?? '') ?? []
    const rate = Number(count ?? 0) / (unit === 'm' ? 60 : 1)
    const kind = one.name.slice(0, -'_zone'.length)
    const zoneKey = this.variables.keyOf(key)
    if (name === undefined || (kind === 'limit_req' && rate === 0))
      this.#into.leftOut(one, `"${one.name}" without a zone or a rate.`)
    else if (zoneKey === undefined)
      this.#into.leftOut(one, `the zone "${name}". A rule cannot count by "${key}".`)
    else this.#zones.set(`${kind} ${name}`, { key: zoneKey, rate })
  }

  /** Applies limits to the requests of a place. */
  apply(limits: readonly NginxLimit[], pattern: string, projects: readonly string[]): void {
    this.#into.place([pattern], projects)
    for (const limit of limits) {
      const { directive } = limit
      const id = [this.#idOf(directive), limit.dryRun, ...projects].join(' ')
      const use = this.#uses.get(id) ?? { limit, projects, match: [] }
      this.#uses.set(id, use)
      use.match.push(pattern)
      const zone = `${directive.name} ${zoneOf(directive)}`
      this.#usersOf.set(zone, (this.#usersOf.get(zone) ?? new Set()).add(directive))
    }
  }

  #idOf(directive: Directive): number {
    const id = this.#ids.get(directive) ?? this.#ids.size
    this.#ids.set(directive, id)
    return id
  }

  /** Writes the rules, once all places are known. */
  write(): void {
    for (const one of this.#uses.values()) this.#rule(one)
  }

  #rule({ limit: { directive, dryRun }, projects, match }: LimitUse): void {
    const { name, words } = directive
    const zoneName = zoneOf(directive)
    const zone = this.#zones.get(`${name} ${zoneName}`)
    if (zone === undefined) {
      this.#into.leftOut(directive, `"${name}" of the zone "${zoneName}", which could not be read.`)
      return
    }
    const { parts, exempt = [], only, missing } = zone.key
    if (exempt.length > 0) this.#exempt(exempt, zoneName ?? name, directive)
    if ((this.#usersOf.get(`${name} ${zoneName}`)?.size ?? 0) > 1) {
      const sentence = `the zone "${zoneName}" is counted for this limit alone, not with its others.`
      this.#into.changed(directive, sentence)
    }
    // A server with names is a project; otherwise only the location can represent it in a key.
    const key = parts.map(part => (part === 'path' && projects.length === 1 ? 'project' : part))
    if (key.includes('path') && match.length > 1)
      this.#into.changed(directive, 'each location is counted by itself, not all of the server together.')
    const common = {
      ...{ name: zoneName ?? name, match, key: [...new Set(key)], projects, reportOnly: dryRun },
      ...(only !== undefined && { networks: only }),
      ...(missing !== undefined && { missing }),
    }
    if (name === 'limit_conn') {
      const max = Number(words[1])
      if (max >= 1) this.#into.rules.slots({ ...common, max }, directive)
      else this.#into.leftOut(directive, `"${name}" without a number of connections.`)
      return
    }
    const burst = Number(optionOf(words, 'burst') ?? 0)
    const isDelayed = burst > 0 && !words.includes('nodelay')
    const late = isDelayed ? ' Nothing is delayed.' : ''
    const each = Math.round(1000 / zone.rate)
    const limit = {
      ...{ rate: zone.rate, atOnce: burst + 1, counter: String(this.#idOf(directive)) },
      theirs: `where nginx lets ${burst + 1} pass and then one each ${each} ms.${late}`,
      refilled: ({ seconds, requests }: { readonly seconds: number; readonly requests: number }) =>
        `one each ${Math.round((1000 * seconds) / requests)} ms`,
      tooLong: 'a burst that takes longer than a day to refill.',
      isSameAsOne: !(burst > 0),
    }
    if (this.#into.limitRate(common, limit, directive) && isDelayed)
      this.#into.changed(directive, `${burst + 1} pass at once. Nothing is delayed.`)
  }

  #exempt(networks: readonly string[], name: string, at: Directive): void {
    const which = networks.join(', ')
    if (!this.#into.isNew(`exempt ${networks.join()}`)) return
    if (this.knowsClients) this.#into.rules.exempt(`${name}-exempt`, networks, at)
    else {
      const why = 'because clients’ addresses are not known: it could exempt everybody behind a proxy.'
      this.#into.lost(at, `the exemption of ${which}, ${why}`)
    }
  }
}

const optionOf = (words: readonly string[], name: string): string | undefined =>
  words.find(word => word.startsWith(`${name}=`))?.slice(name.length + 1)

const zoneOf = ({ name, words }: Directive): string | undefined =>
  name === 'limit_req' ? optionOf(words, 'zone') : words[0]
