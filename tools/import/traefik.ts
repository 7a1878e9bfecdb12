/** Traefik's configuration: routers, services, what guards them, rateLimit and inFlightReq (doc.traefik.io). */
import type { Migration } from './migration.js'
import { isPartOfSegments, isWildcard, type MatchedPlace, wholeSegments } from './places.js'
import {
  basedOn,
  changesOf,
  elsewhereOf,
  redirectOf,
  reportFields,
  reportStripped,
  rewriteIn,
  type TraefikRedirect,
} from './traefik-changes.js'
import { readTraefik, TraefikFiles } from './traefik-files.js'
import { guardOf, isLimiter, type LimitedRequests, limitBy } from './traefik-middlewares.js'
import { fitsOf, isNegated, patternOf, placeOf, RuleFault, type RuleFit } from './traefik-rule.js'
import { plain, type ServiceTarget } from './traefik-services.js'
import { listUnder, type Section, type SourceFile, words } from './yaml.js'

const ROUTER = words('rule service middlewares entryPoints tls priority ruleSyntax observability parentRefs')
const MOST_CHAINED = 1000

/** Reads the files, of which one may be the static configuration, into the migration. */
export function importTraefik(sources: readonly SourceFile[], into: Migration): void {
  const files = readTraefik(sources, into)
  if (files !== undefined) new TraefikImport(new TraefikFiles(files, into), into).read()
}

/** A router, with the entry points and middlewares that its requests go through. */
interface TraefikRouter {
  readonly name: string
  readonly section: Section
  /** Its entry points; none: all. */
  readonly points: readonly string[]
  readonly middlewares: readonly (Section | undefined)[]
  /** The name of its service, and what that is, if it leads anywhere. */
  readonly service: string
  readonly target: ServiceTarget | undefined
  /** How it is guarded, in words. */
  readonly guards: readonly string[]
}

class TraefikImport {
  readonly #into: Migration
  readonly #files: TraefikFiles
  readonly #used = new Set<string>()
  /** True where routers are on different entry points. */
  readonly #areApart: boolean

  constructor(files: TraefikFiles, into: Migration) {
    this.#into = into
    this.#files = files
    const points = files.routers.map(([, router]) => files.entryPoints.namesOf(router).sort().join())
    this.#areApart = new Set(points).size > 1
  }

  read(): void {
    for (const [name, router] of this.#files.routers) this.#router(name, router)
    for (const [name, middleware] of this.#files.middlewares) {
      if (!this.#used.has(name))
        this.#into.leftOut(middleware.at(), `the middleware "${name}". No router uses it.`)
    }
  }

  #router(name: string, section: Section): void {
    section.others(ROUTER, this.#into, 'Routes have no counterpart of it.')
    const fits = this.#fitsOf(section)
    if ('entryPoints' in section.node) {
      const sentence = '"entryPoints". There is one address to listen on.'
      this.#into.leftOut(section.at('entryPoints'), sentence, 'entryPoints')
    }
    if ('tls' in section.node) {
      const sentence = '"tls". It is listen.tls in gateway.yaml: cert and key.'
      this.#into.elsewhere(section.at('tls'), sentence, 'tls')
    }
    const { entryPoints, services } = this.#files
    const points = entryPoints.namesOf(section)
    const named = [...entryPoints.middlewaresOf(points), ...section.texts('middlewares')].map(plain)
    const names = named.flatMap(one => this.#chained(one, new Set()))
    for (const one of [...named, ...names]) this.#used.add(one)
    const middlewares = names.map(one => this.#files.middlewares.get(one))
    const guards = [
      ...names.flatMap((one, i) => guardOf(one, middlewares[i], this.#into) ?? []),
      ...this.#ownGuards(section, points),
    ]
    const service = plain(section.text('service') ?? '')
    const target = services.get(service)
    if (target === undefined && service !== 'noop@internal')
      this.#into.leftOut(section.at(), `the route to "${service}". This file names no address of it.`)
    const router = { name, section, points, middlewares, service, target, guards }
    const rank = [section.number('priority') || Buffer.byteLength(section.text('rule') ?? '')]
    const open = fits.filter(fit => this.#opens(router, fit, placeOf(fit, rank)))
    if (open.length > 0) for (const one of middlewares) reportFields(one, this.#into)
    if (open.some(({ host }) => host !== undefined && isWildcard(host)) && middlewares.some(isLimiter))
      this.#into.changedOnce(section.at('rule'), 'limits of a router with HostRegexp hold on every host.')
    for (const requests of this.#byProjects(name, open, section)) {
      this.#into.place(requests.match, requests.projects)
      for (const [i, one] of middlewares.entries()) {
        limitBy(names[i] ?? '', one, requests, this.#into, entryPoints.knowsClients)
      }
    }
  }

  #fitsOf(router: Section): RuleFit[] {
    try {
      return fitsOf(router.text('rule') ?? '')
    } catch (error) {
      if (!(error instanceof RuleFault)) throw error
      this.#into.leftOut(router.at('rule'), `the router. ${error.message}`)
      // It may match any request, so what guards it closes everything.
      return [{ besides: ['a rule that is not understood'] }]
    }
  }

  /** A chain is replaced by its middlewares. */
  #chained(name: string, above: ReadonlySet<string>, budget = { left: MOST_CHAINED }): string[] {
    const middleware = this.#files.middlewares.get(name)
    budget.left -= 1
    if (middleware === undefined || !('chain' in middleware.node)) return [name]
    // Nobody knows what else it asks for, so it counts as one that is not in the file.
    if (above.has(name) || budget.left < 0) return [`${name} and all in it`]
    this.#used.add(name)
    const inner = middleware.section('chain').texts('middlewares').map(plain)
    return inner.flatMap(one => this.#chained(one, new Set([...above, name]), budget))
  }

  /** What guards a router besides its middlewares: certificates of clients, its entry points, its parents. */
  #ownGuards(router: Section, points: readonly string[]): string[] {
    const { entryPoints, tlsOptions } = this.#files
    const guards: string[] = []
    const options = entryPoints.tlsOptionsOf(router, points)
    const [certified] = options
    const asksCertificates = (one = 'default'): boolean => {
      const known = tlsOptions.get(plain(one))
      return known === undefined ? one !== 'default' : 'clientAuth' in known.node
    }
    if (certified !== undefined && options.every(one => one !== undefined && asksCertificates(one)))
      guards.push(`behind certificates of clients (tls options "${certified}")`)
    if (this.#areApart && points.length > 0 && points.every(one => entryPoints.isNarrow(one)))
      guards.push(`on the entry point ${points.slice(0, 3).join(', ')} alone`)
    // Its requests are those that a parent's rule and middlewares let through.
    const parents = router.texts('parentRefs')
    if (parents.length > 0) guards.push(`behind the router ${parents.slice(0, 3).join(', ')}`)
    return guards
  }

  /** Opens or closes the place of a fit, or leaves it to other routers. @returns whether it is open */
  #opens(router: TraefikRouter, fit: RuleFit, place: MatchedPlace): boolean {
    const { name, section, middlewares, guards, service, target } = router
    const at = section.at()
    const [besides] = fit.besides
    if (guards.length > 0) {
      const whats = [...guards, ...(besides === undefined ? [] : [`with ${besides} alone`])]
      this.#into.close(place, [...new Set(whats)].slice(0, 4).join(', '), at)
      return false
    }
    const redirect = this.#redirectOf(router, isNamed(fit) ? fit.host : undefined)
    if (redirect?.isToHttps) {
      // The routers of https take these requests by ranks of their own.
      const sentence = `the router "${name}". It redirects to ${redirect.to}. Where that is https, it is listen.redirectHttp in gateway.yaml.`
      this.#into.elsewhere(at, sentence, `redirect ${name}`)
      return false
    }
    if (besides !== undefined) {
      this.#leaveBesides(router, fit, place, besides)
      return false
    }
    if (isPartOfSegments(place)) this.#into.changedOnce(section.at('rule'), wholeSegments(place.path))
    const patterns = [patternOf(fit)]
    const rewrite = rewriteIn(middlewares, place, target?.base ?? '')
    const isPlain = rewrite !== undefined && Object.keys(rewrite).length === 0
    if (redirect?.route !== undefined && isPlain) {
      const route = { ...redirect.route, ...changesOf(middlewares) }
      const isOpen = this.#into.open({ ...place, patterns, route }, at)
      if (!isOpen || isPartOfSegments(place)) this.#into.divert(place, `redirected to ${redirect.to}`, at)
      return true
    }
    const confined = rewrite === undefined ? basedOn(middlewares, target?.base ?? '') : undefined
    const [elsewhere = confined] = middlewares.flatMap(one => elsewhereOf(one) ?? [])
    const sent = redirect === undefined ? elsewhere : `redirected to ${redirect.to}`
    if (target === undefined || sent !== undefined) {
      this.#into.divert(place, sent ?? `sent to "${service}"`, at)
      if (sent !== undefined)
        this.#into.leftOut(at, `the router "${name}", whose requests were ${sent}.`, `sent ${name}`)
      return false
    }
    if (rewrite === undefined) reportStripped(middlewares, this.#into)
    const changes = { ...rewrite, ...changesOf(middlewares), settings: bodyLimitOf(middlewares) }
    this.#into.open({ ...place, patterns, route: { upstream: target.upstream, ...changes } }, at)
    return true
  }

  #redirectOf({ section, points, middlewares }: TraefikRouter, host?: string): TraefikRedirect | undefined {
    const { entryPoints } = this.#files
    if (entryPoints.redirect(points)) return { to: 'another entry point', isToHttps: true }
    const options = entryPoints.tlsOptionsOf(section, points)
    const isTls = options.length > 0 && options.every(one => one !== undefined)
    return redirectOf(middlewares, isTls, host)
  }

  /** Reports a router with a condition that no route can have, and closes what none but its requests may be. */
  #leaveBesides(router: TraefikRouter, fit: RuleFit, place: MatchedPlace, besides: string): void {
    const { name, section, middlewares } = router
    // The text that an expression begins with is no condition of its own: these paths are the router's.
    const isOwn =
      place.kind === 'prefix' && place.path !== '/' && fit.besides.every(one => one === 'PathRegexp')
    // Those who do not meet a condition may have been sent away by this router.
    const isUsed = isOwn || fit.besides.some(isNegated)
    if (isUsed) this.#into.divert(place, `of the router "${name}" by ${besides}`, section.at())
    const isLimited = !isUsed && middlewares.some(isLimiter)
    const but = isLimited ? ' Its requests take the routes of others, without its own limits.' : ''
    const sentence = `the router "${name}" was reachable with ${besides} alone. It is left out.${but}`
    this.#into.lost(section.at('rule'), sentence, `besides ${name}`)
  }

  /** Groups patterns by host: those for all hosts, then those of named hosts; hosts with the same patterns share one. */
  #byProjects(name: string, fits: readonly RuleFit[], router: Section): LimitedRequests[] {
    const groups = new Map<string, string[]>()
    for (const fit of fits) listUnder(groups, isNamed(fit) ? fit.host : '', patternOf(fit))
    const everybody = groups.get('')
    const hostsOf = new Map<string, string[]>()
    for (const [host, match] of groups) {
      const text = match.join(' ')
      if (host !== '' && text !== everybody?.join(' ')) listUnder(hostsOf, text, host)
    }
    const named = [...hostsOf.values()].flatMap(hosts => {
      const projects = this.#into.projects.ofHosts(hosts, router.at('rule'))
      return projects.length === 0 ? [] : [{ name, projects, match: groups.get(hosts[0] ?? '') ?? [] }]
    })
    return [...(everybody === undefined ? [] : [{ name, projects: [], match: everybody }]), ...named]
  }
}

/** The smallest body that `buffering` allows. */
function bodyLimitOf(middlewares: readonly (Section | undefined)[]): { maxBody?: number } {
  const sizes = middlewares.map(one => one?.section('buffering').number('maxRequestBodyBytes') ?? 0)
  const limits = sizes.filter(size => Number.isInteger(size) && size > 0)
  return limits.length === 0 ? {} : { maxBody: Math.min(...limits) }
}

/** True for a combination for one host, of which there can be a project. */
const isNamed = (fit: RuleFit): fit is RuleFit & { readonly host: string } =>
  fit.host !== undefined && !isWildcard(fit.host)
