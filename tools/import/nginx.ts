/** nginx: `limit_req` and `limit_conn`, zones, servers and locations (nginx.org, ngx_http_limit_req_module). */
import type { Migration } from './migration.js'
import { Includes, type NamedFile } from './nginx-include.js'
import { Variables, type ZoneKey } from './nginx-key.js'
import { type Directive, NginxFault, parseNginx } from './nginx-text.js'
import { type Located, NginxUpstreams } from './nginx-upstreams.js'
import type { Origin } from './parts.js'
import { asLiteral, below } from './paths.js'
import { windowOf } from './rate.js'

interface Zone {
  readonly key: ZoneKey
  /** Requests per second; 0 for a zone of connections. */
  readonly rate: number
}

/** A `limit_req` or `limit_conn` directive. */
interface Limit {
  readonly directive: Directive
  readonly dryRun: boolean
}

/** What a block inherits from the blocks around it. */
interface Context extends Located {
  readonly limits: readonly Limit[]
}

/** A limit with all locations it applies to: one zone counts them together. */
interface Holding {
  readonly limit: Limit
  readonly hosts: readonly string[]
  readonly match: string[]
}

/** Reads `text` into the migration, and the files that it includes. */
export function importNginx(text: string, into: Migration, named: NamedFile): void {
  try {
    new NginxImport(into).read(new Includes(into, named).expand(parseNginx(text)))
  } catch (error) {
    if (!(error instanceof NginxFault)) throw error
    into.unreadable(error, error.message)
  }
}

class NginxImport {
  readonly #into: Migration
  readonly #zones = new Map<string, Zone>()
  readonly #variables = new Variables()
  readonly #upstreams: NginxUpstreams
  readonly #holding = new Map<string, Holding>()
  #servers = 0

  constructor(into: Migration) {
    this.#into = into
    this.#upstreams = new NginxUpstreams(into)
  }

  read(directives: readonly Directive[]): void {
    const http = directives.flatMap(one => (one.name === 'http' ? (one.block ?? []) : [one]))
    for (const one of http) {
      if (one.name === 'geo' || one.name === 'map') this.#variables.add(one)
      if (one.name === 'upstream') this.#upstreams.add(one)
      if (one.name === 'server') this.#servers += 1
    }
    for (const one of http) if (/^limit_(req|conn)_zone$/.test(one.name)) this.#zone(one)
    this.#block(http, { hosts: [], pattern: '/**', limits: [] })
    for (const one of this.#holding.values()) this.#rule(one)
  }

  #block(block: readonly Directive[], outer: Context): void {
    const dryRun = (kind: string): boolean =>
      block.some(one => one.name === `${kind}_dry_run` && one.words[0] === 'on')
    const own = block.flatMap(one =>
      one.name === 'limit_req' || one.name === 'limit_conn'
        ? { directive: one, dryRun: dryRun(one.name) }
        : [],
    )
    // A block inherits the limits of a module only if it has none of that module itself.
    const inherited = outer.limits.filter(
      ({ directive: { name } }) => !own.some(one => one.directive.name === name),
    )
    const context = { ...outer, limits: [...inherited, ...own] }
    for (const one of block) this.#directive(one, context)
    // The limits of this block apply to requests that no inner block takes.
    const isTaken = block.some(
      ({ name, words }) => name === 'server' || (name === 'location' && words[0] === '/'),
    )
    if (!isTaken) this.#hold(context)
  }

  #directive(one: Directive, context: Context): void {
    switch (one.name) {
      case 'server':
        if (this.#servers > 1)
          this.#into.changedOnce(
            one,
            'requests for hosts that no server names fall under no rule of a server.',
          )
        this.#block(one.block ?? [], { ...context, hosts: this.#servers > 1 ? this.#hostsOf(one) : [] })
        return
      case 'location': {
        const pattern = this.#patternOf(one)
        if (pattern !== undefined) this.#block(one.block ?? [], { ...context, pattern })
        return
      }
      case 'proxy_pass':
        this.#upstreams.pass(one, context)
        return
      case 'limit_req_status':
      case 'limit_conn_status':
        if (one.words[0] !== '429') this.#into.changed(one, `refused requests get 429, not ${one.words[0]}.`)
        return
      case 'limit_req':
      case 'limit_conn':
      case 'limit_req_zone':
      case 'limit_conn_zone':
      case 'limit_req_dry_run':
      case 'limit_conn_dry_run':
      case 'upstream':
      case 'geo':
      case 'map':
      case 'server_name':
        return
      case 'if':
        this.#into.leftOut(one, 'an "if" and all in it. Rules look at requests, not at variables.')
        return
      case 'stream':
      case 'mail':
        this.#into.leftOut(one, `"${one.name}". Only "http" is read.`)
        return
      default:
        this.#into.leftOut(one, `"${one.name}". It does not concern limits or upstreams.`)
    }
  }

  #zone(one: Directive): void {
    const [key = '', ...options] = one.words
    const name = optionOf(options, 'zone')?.split(':')[0]
    const [, count, unit] = /^(\d+)r\/(s|m)$/.exec(optionOf(options, 'rate') ?? '') ?? []
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

  #hold({ hosts, pattern, limits }: Context): void {
    this.#into.place([pattern], hosts)
    for (const limit of limits) {
      const id = [limit.directive.name, ...limit.directive.words, limit.dryRun, ...hosts].join(' ')
      const held = this.#holding.get(id) ?? { limit, hosts, match: [] }
      this.#holding.set(id, held)
      held.match.push(pattern)
    }
  }

  #rule({ limit: { directive, dryRun }, hosts, match }: Holding): void {
    const { name, words } = directive
    const zoneName = zoneOf(directive)
    const zone = this.#zones.get(`${name} ${zoneName}`)
    if (zone === undefined) {
      this.#into.leftOut(directive, `"${name}" of the zone "${zoneName}", which could not be read.`)
      return
    }
    const { parts, exempt = [], only } = zone.key
    if (exempt.length > 0) {
      this.#into.changedOnce(
        directive,
        `${exempt.join(', ')} are exempt from every limit, not from this one alone.`,
      )
      if (this.#into.isNew(exempt.join())) this.#into.exempt(`${zoneName}-exempt`, exempt, directive)
    }
    const others = [...this.#holding.values()].filter(one => one.limit.directive !== directive)
    if (others.some(one => zoneOf(one.limit.directive) === zoneName && one.limit.directive.name === name)) {
      this.#into.changed(
        directive,
        `the zone "${zoneName}" is counted for this limit alone, not with its others.`,
      )
    }
    // A server with one name is a project; otherwise only the location can represent it in a key.
    const key = parts.map(part => (part === 'path' && hosts.length === 1 ? 'project' : part))
    if (key.includes('path') && match.length > 1) {
      this.#into.changed(directive, 'each location is counted by itself, not all of the server together.')
    }
    const common = {
      ...{ name: zoneName ?? name, match, key, hosts, reportOnly: dryRun },
      ...(only !== undefined && { networks: only }),
    }
    if (name === 'limit_conn') {
      const max = Number(words[1])
      if (max >= 1) this.#into.slots({ ...common, max }, directive)
      else this.#into.leftOut(directive, `"${name}" without a number of connections.`)
      return
    }
    const burst = Number(optionOf(words, 'burst') ?? 0)
    const quota = windowOf(zone.rate, burst + 1)
    if (quota === undefined) {
      this.#into.leftOut(directive, 'a burst that takes longer than a day to refill.')
      return
    }
    if (burst > 0 || quota.requests > 1) {
      const late = burst > 0 && !words.includes('nodelay') ? ' Nothing is delayed.' : ''
      this.#into.changed(
        directive,
        `up to ${quota.requests} pass at once and no more until ${quota.per} after the first, where nginx lets ${burst + 1} pass and then one each ${Math.round(1000 / zone.rate)} ms.${late}`,
      )
    }
    this.#into.meter({ ...common, quota }, directive)
  }

  /** The hosts of a server; patterns among them are reported. */
  #hostsOf(server: Directive): string[] {
    const named = (server.block ?? []).filter(({ name }) => name === 'server_name')
    const hosts = named.flatMap(one =>
      one.words.flatMap(word => {
        if (/^[a-z0-9][a-z0-9.-]*$/i.test(word)) return [word.toLowerCase()]
        if (word !== '_' && word !== '')
          this.#into.leftOut(one, `the name "${word}". Hosts are written out, without patterns.`)
        return []
      }),
    )
    return [...new Set(hosts)]
  }

  #patternOf(location: Directive): string | undefined {
    const [first = '', second] = location.words
    if (second === undefined && first.startsWith('/')) return this.#prefix(first, location)
    if (first === '^~' && second !== undefined) return this.#prefix(second, location)
    if (first === '=' && second !== undefined) return asLiteral(second)
    const what = first.startsWith('@')
      ? 'Other directives lead to a named location.'
      : 'Patterns are not regular expressions.'
    this.#into.leftOut(location, `location ${location.words.join(' ')} and all in it. ${what}`)
    return undefined
  }

  #prefix(path: string, at: Origin): string {
    if (!path.endsWith('/'))
      this.#into.changedOnce(
        at,
        `${below(path)} matches whole segments: ${path} and all below it, not ${path}x.`,
      )
    return below(path)
  }
}

const optionOf = (words: readonly string[], name: string): string | undefined =>
  words.find(word => word.startsWith(`${name}=`))?.slice(name.length + 1)

const zoneOf = ({ name, words }: Directive): string | undefined =>
  name === 'limit_req' ? optionOf(words, 'zone') : words[0]
