/** nginx: servers and locations, what guards them, `limit_req` and `limit_conn` (nginx.org). */
import type { Place } from './doors.js'
import type { Migration } from './migration.js'
import { type Guards, guardIn, guardsOf, isGuard, NO_GUARDS, networksDenied } from './nginx-guard.js'
import { Includes, type NamedFile } from './nginx-include.js'
import { Variables } from './nginx-key.js'
import { type Limit, NginxLimits } from './nginx-limits.js'
import { literalsOf } from './nginx-regex.js'
import { importRealIp, namesOf, narrowListen, onlyRedirects } from './nginx-servers.js'
import { type Directive, NginxFault, parseNginx } from './nginx-text.js'
import { NGINX_DEFAULTS, NginxUpstreams, settingsOf } from './nginx-upstreams.js'
import { isRead, toldOf } from './nginx-words.js'
import type { UpstreamSettings } from './parts.js'
import { asLiteral, below } from './paths.js'
import { foreignFile } from './programs.js'
import { dataOf } from './source.js'

/** What a block inherits from the blocks around it. */
interface Context {
  /** Hosts of its server; none: every host. */
  readonly hosts: readonly string[]
  readonly projects: readonly string[]
  readonly kind: Place['kind']
  readonly path: string
  readonly limits: readonly Limit[]
  readonly guards: Guards
  readonly settings: UpstreamSettings
  /** False where only guards are read, because the routes of the server cannot be written. */
  readonly isRouted: boolean
}

/** A server or location that takes requests. */
interface Taker {
  readonly context: Context
  readonly at: Directive
  readonly pass: Directive | undefined
}

const WANTED = 'nginx configuration'

/** Reads `text` into the migration, and the files that it includes. */
export function importNginx(text: string, into: Migration, named: NamedFile): void {
  const foreign = foreignFile('nginx', WANTED, text, undefined)
  if (foreign !== undefined) {
    into.unreadable({ line: 1, col: 1 }, foreign)
    return
  }
  try {
    const directives = new Includes(into, named).expand(parseNginx(text))
    if (
      text.trim() !== '' &&
      !directives.some(({ name }) =>
        /^(http|server|events|upstream|map|geo|limit_|location|include|proxy_)/.test(name),
      )
    ) {
      into.unreadable({ line: 1, col: 1 }, `This is not ${WANTED}: it has no http, server or upstream.`)
      return
    }
    new NginxImport(into).read(directives)
  } catch (error) {
    if (!(error instanceof NginxFault)) throw error
    // YAML and JSON are no text that nginx reads either: whose they are helps more than the first word that does not fit.
    const other = foreignFile('nginx', WANTED, text, dataOf(text))
    if (other === undefined) into.unreadable(error, error.message)
    else into.unreadable({ line: 1, col: 1 }, other)
  }
}

class NginxImport {
  readonly #into: Migration
  readonly #variables = new Variables()
  readonly #upstreams: NginxUpstreams
  readonly #limits: NginxLimits
  readonly #takers: Taker[] = []
  #isNarrowTold = false

  constructor(into: Migration) {
    this.#into = into
    this.#upstreams = new NginxUpstreams(into)
    this.#limits = new NginxLimits(into, this.#variables)
  }

  read(directives: readonly Directive[]): void {
    const http = directives.flatMap(one => (one.name === 'http' ? (one.block ?? []) : [one]))
    for (const one of http) {
      if (one.name === 'geo' || one.name === 'map') this.#variables.add(one)
      if (one.name === 'upstream') this.#upstreams.add(one)
    }
    const servers = http.filter(({ name }) => name === 'server')
    this.#isNarrowTold = servers.some(({ block = [] }) => narrowListen(block) === undefined)
    const knowsClients = importRealIp(http, this.#into)
    this.#limits.knowsClients = knowsClients
    for (const one of http) if (/^limit_(req|conn)_zone$/.test(one.name)) this.#limits.zone(one)
    const root: Context = {
      ...{ hosts: [], projects: [], kind: 'prefix', path: '/', limits: [], guards: NO_GUARDS },
      ...{ settings: NGINX_DEFAULTS, isRouted: true },
    }
    this.#block(http, root, directives[0])
    const isDenied = knowsClients && this.#denyEverywhere()
    for (const taker of this.#takers) this.#finish(taker, isDenied)
    this.#limits.write()
  }

  #block(block: readonly Directive[], outer: Context, at: Directive | undefined): void {
    const context: Context = {
      ...outer,
      limits: this.#limits.of(block, outer.limits),
      guards: guardsOf(block, outer.guards),
      settings: settingsOf(block, outer.settings),
    }
    for (const one of block) this.#directive(one, context)
    // This block takes the requests that no inner block takes.
    const isTaken = block.some(
      ({ name, words }) => name === 'server' || (name === 'location' && words[0] === '/'),
    )
    const pass = block.find(({ name }) => name === 'proxy_pass')
    if (at !== undefined && (!isTaken || pass !== undefined)) this.#takers.push({ context, at, pass })
  }

  #directive(one: Directive, context: Context): void {
    const { name, words, block = [] } = one
    if (name === 'server') {
      this.#server(one, context)
      return
    }
    if (name === 'location') {
      this.#location(one, context)
      return
    }
    if (name === 'limit_req_status' || name === 'limit_conn_status') {
      if (words[0] !== '429') this.#into.changed(one, `refused requests get 429, not ${words[0]}.`)
    } else if (name === 'listen') this.#listen(one)
    else if (name === 'if') {
      if (!block.some(inner => isGuard(inner.name)))
        this.#into.leftOut(one, 'an "if" and all in it. Rules look at requests, not at variables.')
    } else if (name === 'stream' || name === 'mail')
      this.#into.leftOut(one, `"${name}". Only "http" is read.`)
    else if (name === 'return' && !/^[45]/.test(words[0] ?? '')) {
      this.#into.leftOut(one, `"return ${words[0]}". Nothing but refusals is answered here.`)
    } else if (!isRead(name) && !isGuard(name)) this.#tell(one)
  }

  #tell(one: Directive): void {
    const { group, sentence } = toldOf(one.name)
    if (group === 'notNeeded') this.#into.findings.notNeeded(one.name)
    else if (group === 'elsewhere') this.#into.elsewhere(one, `"${one.name}". ${sentence}`)
    else if (this.#into.isNew(`${one.name} ${one.words[0]}`))
      this.#into.leftOut(one, `"${one.name}". ${sentence}`)
  }

  #listen(one: Directive): void {
    if (one.words.includes('ssl') && this.#into.isNew('listen ssl'))
      this.#into.elsewhere(one, '"listen … ssl". TLS is listen.tls in gateway.yaml: cert and key.')
    this.#into.findings.notNeeded('listen')
  }

  #server(one: Directive, outer: Context): void {
    const block = one.block ?? []
    if (onlyRedirects(block)) {
      this.#into.leftOut(one, 'a server that only redirects. Redirect in front of the gateway.')
      return
    }
    const { hosts, patterns } = namesOf(block)
    for (const name of patterns) {
      const whole = hosts.length === 0 ? ' The server is left out with all in it.' : ''
      this.#into.leftOut(one, `the name "${name}". Hosts are written out, without patterns.${whole}`)
    }
    const projects = hosts.length === 0 ? [] : this.#into.callers.ofHosts(hosts, one)
    const narrow = this.#isNarrowTold ? narrowListen(block) : undefined
    const guards = narrow === undefined ? outer.guards : { ...outer.guards, refusing: [narrow] }
    // A guard of a server with only patterns for names holds for hosts that nobody can list.
    const isRouted = hosts.length === 0 ? patterns.length === 0 : projects.length > 0
    this.#block(block, { ...outer, hosts, projects, guards, isRouted }, one)
  }

  #location(one: Directive, outer: Context): void {
    const [first = '', second] = one.words
    const block = one.block ?? []
    if (first === '=' && second !== undefined) {
      this.#block(block, { ...outer, kind: 'exact', path: second }, one)
      return
    }
    const isPrefix =
      (second === undefined && first.startsWith('/')) || (first === '^~' && second !== undefined)
    if (isPrefix) {
      this.#block(block, { ...outer, kind: 'prefix', path: second ?? first }, one)
      return
    }
    if (first.startsWith('@')) {
      this.#into.leftOut(one, `location ${first} and all in it. Other directives lead to a named location.`)
      return
    }
    const expression = /^~\*?$/.test(first) ? (second ?? '') : first.replace(/^~\*?/, '')
    const guard = guardIn(guardsOf(block, outer.guards))
    if (guard === undefined) {
      this.#into.leftOut(
        one,
        `location ${one.words.join(' ')} and all in it. Patterns are not regular expressions.`,
      )
      return
    }
    for (const { kind, path } of literalsOf(expression)) {
      this.#into.close(
        { hosts: outer.hosts, kind, path, rank: rankOf(outer, 2, 0) },
        `in location ${one.words.join(' ')}, ${guard.what}`,
        one,
      )
    }
  }

  /** An address list that holds everywhere is written as access rules. */
  #denyEverywhere(): boolean {
    const [first] = this.#takers
    const networks = networksDenied(this.#takers.map(({ context }) => context.guards))
    if (first === undefined || networks === undefined) return false
    this.#into.rules.deny(networks, first.context.guards.access[0] ?? first.at)
    return true
  }

  #finish({ context, at, pass }: Taker, isDenied: boolean): void {
    const { hosts, projects, kind, path, guards, settings, limits, isRouted } = context
    const rank = kind === 'exact' ? rankOf(context, 3, 0) : rankOf(context, 1, path.length)
    const guard = guardIn(isDenied ? { ...guards, access: [] } : guards)
    if (guard !== undefined) {
      this.#into.close({ hosts, kind, path, rank }, guard.what, guard.at)
      return
    }
    if (!isRouted) return
    const pattern = kind === 'exact' ? asLiteral(path) : below(path)
    if (kind === 'prefix' && !path.endsWith('/')) {
      this.#into.changedOnce(at, `${pattern} matches whole segments: ${path} and all below it, not ${path}x.`)
    }
    this.#limits.hold(limits, { pattern, projects })
    if (pass === undefined) return
    const upstream = this.#upstreams.passed(pass, path, settings)
    if (upstream === undefined) return
    this.#into.open({ hosts, kind, path, rank, patterns: [pattern], upstream }, pass)
  }
}

/** nginx takes the server first, then an exact location, a regular expression, and the longest prefix. */
const rankOf = ({ hosts }: Context, kind: number, length: number): number[] => [
  hosts.length > 0 ? 1 : 0,
  kind,
  length,
]
