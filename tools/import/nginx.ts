/** nginx: servers and locations, what guards them, `limit_req` and `limit_conn` (nginx.org). */
import type { Migration } from './migration.js'
import { type Context, closeIn, openIn, rankIn, type Taker } from './nginx-context.js'
import { answeredIn, rewriteOfAll } from './nginx-elsewhere.js'
import { fieldsOf, isChosen, reportFields } from './nginx-fields.js'
import { guardIn, guardsOf, isGuard, isRefusing, NO_GUARDS, networksDenied } from './nginx-guard.js'
import { Includes, type NamedFile } from './nginx-include.js'
import { Variables } from './nginx-key.js'
import { NginxLimits } from './nginx-limits.js'
import { closeLocation, locationOf } from './nginx-location.js'
import {
  apartAmong,
  defaultsAmong,
  importRealIp,
  isNameless,
  namesOf,
  onlyRedirects,
} from './nginx-servers.js'
import { type Directive, NginxFault, parseNginx } from './nginx-text.js'
import { withoutTwice } from './nginx-twice.js'
import { addFixedAnswers, addRewritten, leaveExpression } from './nginx-unrouted.js'
import { NGINX_DEFAULTS, NginxUpstreams, settingsOf } from './nginx-upstreams.js'
import { explainDirective, isRead } from './nginx-words.js'
import { asLiteral, below } from './paths.js'
import { foreignFile } from './programs.js'
import { dataOf } from './source.js'
import { withoutSecret } from './without-secret.js'

const WANTED = 'nginx configuration'
const OF_NGINX = /^(http|server|events|upstream|map|geo|limit_|location|include|proxy_)/

/** Reads `text` into the migration, and the files that it includes. */
export function importNginx(text: string, into: Migration, named: NamedFile): void {
  const foreign = foreignFile('nginx', WANTED, text, undefined)
  if (foreign !== undefined) {
    into.unreadable({ line: 1, col: 1 }, foreign)
    return
  }
  try {
    const directives = new Includes(into, named).expand(parseNginx(text))
    if (!directives.some(({ name }) => OF_NGINX.test(name))) {
      const isEmpty = text.trim() === ''
      const fault = isEmpty
        ? 'The file is empty.'
        : `This is not ${WANTED}: it has no http, server or upstream.`
      into.unreadable({ line: 1, col: 1 }, fault)
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
  #defaults: ReadonlySet<readonly Directive[]> = new Set()
  /** True when requests for hosts that no server has reach an upstream. */
  #isAnyNameless = false
  #apart: ReturnType<typeof apartAmong> = () => undefined

  constructor(into: Migration) {
    this.#into = into
    this.#upstreams = new NginxUpstreams(into)
    this.#limits = new NginxLimits(into, this.#variables)
  }

  read(directives: readonly Directive[]): void {
    const all = directives.flatMap(one => (one.name === 'http' ? (one.block ?? []) : [one]))
    const http = withoutTwice(all, this.#into)
    for (const one of http) {
      if (one.name === 'geo' || one.name === 'map') this.#variables.add(one)
      if (one.name === 'upstream') this.#upstreams.add(one)
    }
    const servers = http.flatMap(({ name, block = [] }) => (name === 'server' ? [block] : []))
    this.#isAnyNameless = servers.some(isNameless)
    this.#apart = apartAmong(servers)
    this.#defaults = defaultsAmong(servers)
    const knowsClients = importRealIp(http, this.#into)
    this.#limits.knowsClients = knowsClients
    for (const one of http) if (/^limit_(req|conn)_zone$/.test(one.name)) this.#limits.zone(one)
    const root: Context = {
      ...{ hosts: [], projects: [], kind: 'prefix', path: '/', limits: [], guards: NO_GUARDS, fields: [] },
      ...{ settings: NGINX_DEFAULTS, isRouted: true, hasOtherHosts: false },
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
      fields: fieldsOf(block, outer.fields),
    }
    for (const one of block) this.#directive(one, context)
    const isServer = at?.name === 'server'
    for (const one of block) {
      if (one.name === 'rewrite') addRewritten(one, context, isServer, this.#into)
      else if (one.name === 'return' && isServer) addFixedAnswers(one, context, this.#into)
    }
    // This block takes the requests that no inner block takes.
    const isTaken = block.some(
      ({ name, words }) => name === 'server' || (name === 'location' && words[0] === '/'),
    )
    const pass = block.find(({ name }) => name === 'proxy_pass')
    if (at !== undefined && (!isTaken || pass !== undefined)) this.#takers.push({ context, at, pass, block })
  }

  #directive(one: Directive, context: Context): void {
    const { name, words } = one
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
      if (!isRefusing(one))
        this.#into.leftOut(one, 'an "if" and all in it. Rules look at requests, not at variables.')
    } else if (name === 'stream' || name === 'mail')
      this.#into.leftOut(one, `"${name}". Only "http" is read.`)
    else if (name === 'return' && !/^[45]/.test(words[0] ?? '')) {
      this.#into.leftOut(one, `"return ${words[0]}". Nothing but refusals is answered here.`)
    } else if (!isRead(name) && !isGuard(name) && !isChosen(one)) this.#report(one)
  }

  #report(one: Directive): void {
    const { group, sentence } = explainDirective(one.name)
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
    const { hosts, patterns } = namesOf(block)
    const apart = this.#apart(block)
    if (apart !== undefined) {
      const who = hosts[0] ?? 'a server'
      this.#into.lost(apart, `${who} was reachable at ${apart.words[0]} alone. No route leads there.`)
      return
    }
    if (onlyRedirects(block)) {
      this.#into.leftOut(one, 'a server that only redirects. Redirect in front of the gateway.')
      const whole = { hosts, kind: 'prefix', path: '/', rank: [1, 1, 1] } as const
      if (hosts.length > 0) this.#into.keepFrom(whole, 'redirected', one)
      return
    }
    if (isNameless(block) && !this.#defaults.has(block)) {
      this.#into.leftOut(
        one,
        'a server without a name that is not the default one of its address: nginx sends no host there.',
      )
      return
    }
    for (const name of patterns) {
      const whole = hosts.length === 0 ? ' The server is left out with all in it.' : ''
      this.#into.leftOut(one, `the name "${name}". Hosts are written out, without patterns.${whole}`)
    }
    if (hosts.length > 0 && this.#defaults.has(block)) {
      this.#into.changedOnce(
        one,
        'requests for a host that no server has are refused, where nginx gives them to the first or default server.',
      )
    }
    const projects = hosts.length === 0 ? [] : this.#into.callers.ofHosts(hosts, one)
    // A guard of a server with only patterns for names holds for hosts that nobody can list.
    const isRouted = hosts.length === 0 ? patterns.length === 0 : projects.length > 0
    const hasOtherHosts = patterns.length > 0 && hosts.length > 0 && this.#isAnyNameless
    this.#block(block, { ...outer, hosts, projects, hasOtherHosts, isRouted }, one)
  }

  #location(one: Directive, outer: Context): void {
    const block = one.block ?? []
    const { kind, text } = locationOf(one.words)
    if (kind === 'exact' || kind === 'prefix') this.#block(block, { ...outer, kind, path: text }, one)
    else if (kind === 'named')
      this.#into.leftOut(one, `location ${text} and all in it. Other directives lead to a named location.`)
    else {
      const guard = guardIn(guardsOf(block, outer.guards))
      if (guard === undefined) leaveExpression(one, text, outer, this.#into)
      else closeLocation(one, guard.what, outer, this.#into)
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

  #finish({ context, at, pass, block }: Taker, isDenied: boolean): void {
    const { hosts, projects, kind, path, guards, settings, limits, isRouted } = context
    const rank = rankIn(context)
    const guard = guardIn(isDenied ? { ...guards, access: [] } : guards)
    if (guard !== undefined) {
      closeIn(context, { kind, path, rank }, guard.what, guard.at, this.#into)
      return
    }
    if (!isRouted) return
    const pattern = kind === 'exact' ? asLiteral(path) : below(path)
    if (kind === 'prefix' && !path.endsWith('/')) {
      this.#into.changedOnce(at, `${pattern} matches whole segments: ${path} and all below it, not ${path}x.`)
    }
    this.#limits.hold(limits, { pattern, projects })
    const elsewhere = (what: string): void => this.#into.keepFrom({ hosts, kind, path, rank }, what, at)
    const answered = at.name === 'server' || at.name === 'location' ? answeredIn(block) : undefined
    const rewritten = rewriteOfAll(block, context)
    if (answered !== undefined) elsewhere(answered)
    else if (rewritten !== undefined) elsewhere(`rewritten to ${withoutSecret(rewritten.words[1] ?? '')}`)
    if (pass === undefined || answered !== undefined || rewritten !== undefined) return
    const upstream = this.#upstreams.passed(pass, context, settings)
    if (upstream === undefined) {
      elsewhere(`sent to ${withoutSecret(pass.words[0] ?? '')}`)
      return
    }
    reportFields(context.fields, this.#into)
    this.#into.open({ ...openIn(context), patterns: [pattern], upstream }, pass)
  }
}
