/** Traefik's configuration: routers, services, what guards them, rateLimit and inFlightReq (doc.traefik.io). */
import type { Place } from './doors.js'
import type { Migration } from './migration.js'
import { below } from './paths.js'
import { readYaml, type Section } from './source.js'
import { elsewhereOf, guardOf, reportFields } from './traefik-guard.js'
import { inFlight, isLimiter, rateLimit } from './traefik-limits.js'
import { ownGuards } from './traefik-own-guards.js'
import { redirectOf } from './traefik-redirect.js'
import { type Fit, fitsOf, isNegated, patternOf, placeOf, RuleFault } from './traefik-rule.js'
import { readService } from './traefik-services.js'
import { EntryPoints } from './traefik-static.js'
import { plain, refuseOtherCase, refuseTemplate } from './traefik-words.js'

const WANTED = { format: 'traefik', name: 'a Traefik dynamic configuration', keys: ['http', 'entryPoints'] }
/** The requests of a router: patterns, and the projects of their hosts. */
export interface Routed {
  readonly name: string
  readonly projects: readonly string[]
  readonly match: readonly string[]
}

/** Reads the files, of which one may be the static configuration, into the migration. */
export function importTraefik(
  files: readonly { readonly text: string; readonly file?: string }[],
  into: Migration,
): void {
  for (const { text, file } of files) refuseTemplate(text, file, into)
  if (into.isUnreadable) return
  const sections = files.map(({ text, file }) => readYaml(text, WANTED, into, file))
  if (sections.some(one => one === undefined)) return
  const read = sections as Section[]
  for (const section of read) refuseOtherCase(section, into)
  if (into.isUnreadable) return
  if (!read.some(file => 'http' in file.node)) {
    const message =
      'This is Traefik’s static configuration, without routers. Give the dynamic one, too: sluice import traefik traefik.yml dynamic.yml.'
    into.unreadable(read[0]?.at() ?? { line: 1, col: 1 }, message)
    return
  }
  new TraefikImport(into).read(read)
}

class TraefikImport {
  readonly #into: Migration
  readonly #entryPoints: EntryPoints
  readonly #services = new Map<string, string>()
  readonly #middlewares = new Map<string, Section>()
  readonly #tlsOptions = new Map<string, Section>()
  readonly #used = new Set<string>()
  #areApart = false

  constructor(into: Migration) {
    this.#into = into
    this.#entryPoints = new EntryPoints(into)
  }

  read(files: readonly Section[]): void {
    for (const file of files) {
      if ('entryPoints' in file.node) this.#entryPoints.read(file)
      else file.others(['http', 'tls', 'tcp', 'udp'], this.#into, 'Only "http" is read.')
      for (const key of ['tcp', 'udp']) {
        if (key in file.node) this.#into.leftOut(file.at(key), `"${key}". Only "http" is read.`)
      }
      const http = file.section('http')
      http.others(['routers', 'services', 'middlewares'], this.#into, 'The import does not read it.')
      for (const [name, service] of http.section('services').members())
        readService(name, service, this.#into, this.#services)
      for (const [name, one] of http.section('middlewares').members()) this.#middlewares.set(name, one)
      for (const [name, one] of file.section('tls').section('options').members())
        this.#tlsOptions.set(name, one)
    }
    this.#entryPoints.trust()
    const routers = files.flatMap(file => file.section('http').section('routers').members())
    const points = new Set(routers.map(([, router]) => this.#entryPoints.namesOf(router).sort().join()))
    this.#areApart = points.size > 1
    for (const [name, router] of routers) this.#router(name, router)
    for (const [name, middleware] of this.#middlewares) {
      if (!this.#used.has(name))
        this.#into.leftOut(middleware.at(), `the middleware "${name}". No router uses it.`)
    }
  }

  #router(name: string, router: Section): void {
    const read = [
      ...['rule', 'service', 'middlewares', 'entryPoints', 'tls', 'priority', 'ruleSyntax', 'observability'],
      'parentRefs',
    ]
    router.others(read, this.#into, 'Routes have no counterpart of it.')
    const fits = this.#fitsOf(router)
    const entryPoints = this.#entryPoints.namesOf(router)
    if ('entryPoints' in router.node && this.#into.isNew('entryPoints'))
      this.#into.leftOut(router.at('entryPoints'), '"entryPoints". There is one address to listen on.')
    if ('tls' in router.node && this.#into.isNew('tls'))
      this.#into.elsewhere(router.at('tls'), '"tls". It is listen.tls in gateway.yaml: cert and key.')
    const names = [...this.#entryPoints.middlewaresOf(entryPoints), ...router.texts('middlewares')]
    const middlewares = names.flatMap(one => this.#chained(plain(one), new Set()))
    for (const one of [...names.map(plain), ...middlewares]) this.#used.add(one)
    const guards = [
      ...middlewares.flatMap(one => guardOf(one, this.#middlewares.get(one), this.#into) ?? []),
      ...ownGuards(router, entryPoints, {
        ...{ entryPoints: this.#entryPoints, tlsOptions: this.#tlsOptions, areApart: this.#areApart },
      }),
    ]
    const rank = [router.number('priority') || Buffer.byteLength(router.text('rule') ?? '')]
    const service = plain(router.text('service') ?? '')
    const upstream = this.#services.get(service)
    if (upstream === undefined)
      this.#into.leftOut(router.at(), `the route to "${service}". This file names no address of it.`)
    const isLimited = middlewares.some(one => isLimiter(this.#middlewares.get(one)))
    const settings = middlewares.map(one => this.#middlewares.get(one))
    const around = { router, points: entryPoints, middlewares: settings, entryPoints: this.#entryPoints }
    const open: Fit[] = []
    for (const fit of fits) {
      const place = placeOf(fit, rank)
      const [besides] = fit.besides
      if (guards.length > 0) {
        const whats = [...guards, ...(besides === undefined ? [] : [`with ${besides} alone`])]
        this.#into.close(place, [...new Set(whats)].slice(0, 4).join(', '), router.at())
        continue
      }
      const redirect = redirectOf(around, fit.host)
      if (redirect?.isToHttps) {
        // The routers of https take these requests by ranks of their own.
        if (this.#into.isNew(`redirect ${name}`))
          this.#into.leftOut(router.at(), `the router "${name}". It redirects to ${redirect.to}.`)
        continue
      }
      const [sent] =
        redirect === undefined
          ? settings.flatMap(one => elsewhereOf(one, place) ?? [])
          : [`redirected to ${redirect.to}`]
      if (besides !== undefined) {
        // The text that an expression begins with is no condition of its own: these paths are the router's.
        const isOwn =
          place.kind === 'prefix' && place.path !== '/' && fit.besides.every(one => one === 'PathRegexp')
        // Those who do not meet a condition may have been sent away by this router.
        const isUsed = isOwn || fit.besides.some(isNegated)
        if (isUsed) this.#into.keepFrom(place, `of the router "${name}" by ${besides}`, router.at())
        const but =
          isLimited && !isUsed ? ' Its requests take the routes of others, without its own limits.' : ''
        if (this.#into.isNew(`besides ${name}`))
          this.#into.lost(
            router.at('rule'),
            `the router "${name}" was reachable with ${besides} alone. It is left out.${but}`,
          )
      } else if (!upstream || sent !== undefined) {
        this.#into.keepFrom(place, sent ?? `sent to "${service}"`, router.at())
        if (sent !== undefined && this.#into.isNew(`sent ${name}`))
          this.#into.leftOut(router.at(), `the router "${name}", whose requests were ${sent}.`)
      } else {
        open.push(fit)
        this.#open(fit, place, upstream, router)
      }
    }
    if (open.length > 0) for (const one of middlewares) reportFields(this.#middlewares.get(one), this.#into)
    for (const routed of this.#byProjects(name, open, router)) {
      this.#into.place(routed.match, routed.projects)
      for (const one of middlewares) this.#limit(one, routed, upstream)
    }
  }

  #open(fit: Fit, place: Place, upstream: string, router: Section): void {
    const { path = '/', method, kind } = fit
    if (kind === 'prefix' && !path.endsWith('/')) {
      this.#into.changedOnce(
        router.at('rule'),
        `${below(path)} matches whole segments: ${path} and all below it, not ${path}x.`,
      )
    }
    const pattern = patternOf(fit)
    this.#into.open(
      { ...place, patterns: [pattern], upstream, ...(method !== undefined && { methods: [method] }) },
      router.at(),
    )
  }

  #fitsOf(router: Section): Fit[] {
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
  #chained(name: string, above: ReadonlySet<string>, budget = { left: 1000 }): string[] {
    const middleware = this.#middlewares.get(name)
    budget.left -= 1
    if (middleware === undefined || !('chain' in middleware.node)) return [name]
    // Nobody knows what else it asks for, so it counts as one that is not in the file.
    if (above.has(name) || budget.left < 0) return [`${name} and all in it`]
    const inside = new Set([...above, name])
    this.#used.add(name)
    return middleware
      .section('chain')
      .texts('middlewares')
      .flatMap(one => this.#chained(plain(one), inside, budget))
  }

  /** Groups patterns by host: those for all hosts, then those of named hosts; hosts with the same patterns share one. */
  #byProjects(name: string, fits: readonly Fit[], router: Section): Routed[] {
    const groups = new Map<string, string[]>()
    for (const fit of fits) {
      const { host = '' } = fit
      const match = groups.get(host) ?? []
      groups.set(host, match)
      match.push(patternOf(fit))
    }
    const everybody = groups.get('')
    const named = new Map<string, string[]>()
    for (const [host, match] of groups) {
      const text = match.join(' ')
      if (host !== '' && text !== everybody?.join(' ')) named.set(text, [...(named.get(text) ?? []), host])
    }
    return [
      ...(everybody === undefined ? [] : [{ name, projects: [], match: everybody }]),
      ...[...named.values()].flatMap(hosts => {
        const projects = this.#into.callers.ofHosts(hosts, router.at('rule'))
        return projects.length === 0 ? [] : [{ name, projects, match: groups.get(hosts[0] ?? '') ?? [] }]
      }),
    ]
  }

  #limit(name: string, routed: Routed, upstream: string | undefined): void {
    const knows = this.#entryPoints.knowsClients
    for (const [kind, settings] of this.#middlewares.get(name)?.members() ?? []) {
      if (kind === 'rateLimit') rateLimit(name, settings, routed, { into: this.#into, knows })
      else if (kind === 'inFlightReq') inFlight(name, settings, routed, { into: this.#into, knows })
      else if (kind === 'buffering') this.#buffering(settings, upstream)
    }
  }

  #buffering(settings: Section, upstream: string | undefined): void {
    const maxBody = settings.number('maxRequestBodyBytes')
    if (upstream === undefined || maxBody === undefined || !Number.isInteger(maxBody) || maxBody < 1) return
    this.#into.upstreams.limitBody(upstream, maxBody)
    this.#into.changedOnce(
      settings.at(),
      `maxBody is of the whole upstream "${upstream}", for all routers that lead there.`,
    )
  }
}
