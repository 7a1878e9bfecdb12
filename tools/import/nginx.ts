/** nginx: servers and locations, what guards them, `limit_req` and `limit_conn` (nginx.org). */
import type { Migration } from './migration.js'
import { answerIn } from './nginx-answers.js'
import { reportDirective } from './nginx-directives.js'
import { changesOf, isLost } from './nginx-fields.js'
import { answeredIn, guardIn, isGuard, isRefusing, networksDenied, rewriteOfAll } from './nginx-guards.js'
import { NginxLimits } from './nginx-limits.js'
import {
  closeIn,
  contextIn,
  divert,
  divertIn,
  leaveExpression,
  locationOf,
  type NginxContext,
  onHosts,
  openIn,
  placeIn,
  ROOT,
} from './nginx-locations.js'
import {
  answersAll,
  importRealIp,
  isNameless,
  NginxServers,
  namesOf,
  withoutRepeated,
} from './nginx-servers.js'
import {
  type Block,
  type Directive,
  type FileReader,
  NginxFault,
  named,
  parseNginx,
  withIncluded,
} from './nginx-text.js'
import { NginxUpstreams } from './nginx-upstreams.js'
import { asLiteral, below, isPartOfSegments, isWildcard, wholeSegments } from './places.js'
import { foreignFile } from './programs.js'
import { withoutSecret } from './upstreams.js'
import { dataOf, type SourceFile } from './yaml.js'

const WANTED = 'nginx configuration'
const OF_NGINX = /^(http|server|events|upstream|map|geo|limit_|location|include|proxy_)/

export function importNginx({ text }: SourceFile, into: Migration, reader: FileReader): void {
  const start = { line: 1, col: 1 }
  const foreign = foreignFile('nginx', WANTED, text, undefined)
  if (foreign !== undefined) {
    into.unreadable(start, foreign)
    return
  }
  try {
    const directives = withIncluded(parseNginx(text), reader, into)
    const not = `This is not ${WANTED}: it has no http, server or upstream.`
    if (directives.some(({ name }) => OF_NGINX.test(name)))
      new NginxImport(directives, into).read(directives[0])
    else into.unreadable(start, text.trim() === '' ? 'The file is empty.' : not)
  } catch (error) {
    if (!(error instanceof NginxFault)) throw error
    // YAML and JSON are no text that nginx reads either: whose they are helps more than the first word that does not fit.
    const other = foreignFile('nginx', WANTED, text, dataOf(text))
    if (other === undefined) into.unreadable(error, error.message)
    else into.unreadable(start, other)
  }
}

/** A server or location that takes requests. */
interface Taker {
  readonly context: NginxContext
  readonly at: Directive
  readonly pass: Directive | undefined
  readonly block: Block
}

class NginxImport {
  readonly #into: Migration
  readonly #upstreams: NginxUpstreams
  readonly #limits: NginxLimits
  readonly #takers: Taker[] = []
  readonly #http: Block
  readonly #servers: NginxServers

  constructor(directives: Block, into: Migration) {
    this.#into = into
    const all = directives.flatMap(one => (one.name === 'http' ? (one.block ?? []) : [one]))
    this.#http = withoutRepeated(all, into)
    this.#servers = new NginxServers(named(this.#http, 'server').map(({ block = [] }) => block))
    this.#upstreams = new NginxUpstreams(into)
    this.#limits = new NginxLimits(into)
  }

  read(first: Directive | undefined): void {
    const http = this.#http
    for (const one of http) {
      if (one.name === 'geo' || one.name === 'map') this.#limits.variables.add(one)
      if (one.name === 'upstream') this.#upstreams.add(one)
    }
    const knowsClients = importRealIp(http, this.#into)
    this.#limits.knowsClients = knowsClients
    for (const one of http) if (/^limit_(req|conn)_zone$/.test(one.name)) this.#limits.zone(one)
    this.#block(http, ROOT, first)
    const isDenied = knowsClients && this.#denyEverywhere()
    for (const taker of this.#takers) this.#finish(taker, isDenied)
    this.#limits.write()
  }

  #block(block: Block, outer: NginxContext, at: Directive | undefined): void {
    const context = contextIn(block, outer)
    for (const one of block) this.#directive(one, context)
    divertIn(block, context, at?.name === 'server', this.#into)
    // This block takes the requests that no inner block takes.
    const isTaken = block.some(
      ({ name, words }) => name === 'server' || (name === 'location' && words[0] === '/'),
    )
    const pass = block.find(({ name }) => name === 'proxy_pass')
    if (at !== undefined && (!isTaken || pass !== undefined)) this.#takers.push({ context, at, pass, block })
  }

  #directive(one: Directive, context: NginxContext): void {
    const { name, words } = one
    switch (name) {
      case 'server':
        this.#server(one, context)
        return
      case 'location':
        this.#location(one, context)
        return
      case 'limit_req_status':
      case 'limit_conn_status':
        if (words[0] !== '429') this.#into.changed(one, `refused requests get 429, not ${words[0]}.`)
        return
      case 'listen':
        if (words.includes('ssl')) {
          const sentence = '"listen … ssl". TLS is listen.tls in gateway.yaml: cert and key.'
          this.#into.elsewhere(one, sentence, 'listen ssl')
        }
        this.#into.notNeeded(name)
        return
      case 'if':
        if (isRefusing(one)) return
        this.#into.leftOut(one, 'an "if" and all in it. Rules look at requests, not at variables.')
        return
      case 'stream':
      case 'mail':
        this.#into.leftOut(one, `"${name}". Only "http" is read.`)
        return
      case 'return':
        return
      default:
        if (!isGuard(name) && !isLost(one)) reportDirective(one, this.#into)
    }
  }

  #server(one: Directive, outer: NginxContext): void {
    const block = one.block ?? []
    const { hosts, patterns } = namesOf(block)
    const apart = this.#servers.apart(block)
    if (apart !== undefined) {
      const who = hosts[0] ?? 'a server'
      this.#into.lost(apart, `${who} was reachable at ${apart.words[0]} alone. No route leads there.`)
      return
    }
    const redirecting = this.#servers.onlyRedirects(block)
    if (redirecting !== undefined) {
      const toHttps = 'a server that sends clients to https. It is listen.redirectHttp in gateway.yaml.'
      if (redirecting === 'to https') this.#into.elsewhere(one, toHttps)
      else this.#into.leftOut(one, 'a server that only redirects, beside another one of its hosts.')
      const whole = { hosts, kind: 'prefix', path: '/', rank: [0] } as const
      if (hosts.length > 0) divert(whole, 'redirected', one, this.#into)
      return
    }
    const isDefault = this.#servers.isDefault(block)
    if (isNameless(block) && !isDefault) {
      const why = 'nginx sends no host there.'
      this.#into.leftOut(one, `a server without a name that is not the default one of its address: ${why}`)
      return
    }
    const whole = hosts.length === 0 ? ' The server is left out with all in it.' : ''
    for (const name of patterns)
      this.#into.leftOut(one, `the name "${name}". A host is a name, or "*." and a name.${whole}`)
    if (hosts.length > 0 && isDefault) {
      this.#into.changedOnce(
        one,
        'requests for a host that no server has are refused, where nginx gives them to the first or default server.',
      )
    }
    const isWild = hosts.some(isWildcard)
    const projects = hosts.length === 0 || isWild ? [] : this.#into.projects.ofHosts(hosts, one)
    // A guard of a server with only patterns for names holds for hosts that nobody can list.
    const isRouted = hosts.length === 0 ? patterns.length === 0 : isWild || projects.length > 0
    const hasOtherHosts = patterns.length > 0 && hosts.length > 0 && this.#servers.isAnyNameless
    const reached = answersAll(block) ? block.filter(({ name }) => name !== 'location') : block
    this.#block(reached, { ...outer, hosts, projects, hasOtherHosts, isRouted }, one)
  }

  #location(one: Directive, outer: NginxContext): void {
    const { kind, text } = locationOf(one.words)
    if (kind === 'expression') leaveExpression(one, text, outer, this.#into)
    else if (kind === 'named')
      this.#into.leftOut(one, `location ${text} and all in it. Other directives lead to a named location.`)
    else this.#block(one.block ?? [], { ...outer, kind, path: text }, one)
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
    const { projects, kind, path, guards, settings, limits, isRouted } = context
    const place = placeIn(context)
    const guard = guardIn(isDenied ? { ...guards, access: [] } : guards)
    if (guard !== undefined) {
      closeIn(context, place, guard.what, guard.at, this.#into)
      return
    }
    if (!isRouted) return
    const pattern = kind === 'exact' ? asLiteral(path) : below(path)
    if (isPartOfSegments(context)) this.#into.changedOnce(at, wholeSegments(path))
    if (limits.length > 0 && context.hosts.some(isWildcard))
      this.#into.changedOnce(at, 'limits of a server with "*." in its names hold on every host.')
    this.#limits.apply(limits, pattern, projects)
    const answered = at.name === 'server' || at.name === 'location' ? answeredIn(block) : undefined
    const rewritten = rewriteOfAll(block, context)
    if (answered !== undefined) answerIn(block, context, { pattern, answered, at }, this.#into)
    else if (rewritten !== undefined)
      divert(place, `rewritten to ${withoutSecret(rewritten.words[1] ?? '')}`, at, this.#into)
    else if (pass !== undefined) {
      const route = this.#upstreams.routeOf(pass, context, block)
      if (route === undefined) {
        divert(place, `sent to ${withoutSecret(pass.words[0] ?? '')}`, at, this.#into)
        return
      }
      const parts = { ...route, ...changesOf(context.fields, this.#into), settings }
      for (const one of onHosts(openIn(context)))
        this.#into.open({ ...one, patterns: [pattern], route: parts }, pass)
    }
  }
}
