/** Traefik's dynamic configuration: routers, services, middlewares rateLimit and inFlightReq (doc.traefik.io). */
import type { KeyPart } from '../../config/words.js'
import type { Migration } from './migration.js'
import { windowOf } from './rate.js'
import { readYaml, type Section } from './source.js'
import { type Fit, fitsOf, RuleFault } from './traefik-rule.js'

const NOT_HERE = 'It does not concern limits or upstreams.'

/** The requests of a router: patterns and their hosts. */
interface Routed {
  readonly name: string
  readonly hosts: readonly string[]
  readonly match: readonly string[]
}

/** Reads `text` into the migration. */
export function importTraefik(text: string, into: Migration): void {
  const file = readYaml(text, into)
  if (file === undefined) return
  if (!('http' in file.node)) {
    into.leftOut(file.at(), 'the file. A dynamic configuration file has "http".')
    return
  }
  file.others(['http'], into, 'Only "http" is read.')
  const http = file.section('http')
  http.others(['routers', 'services', 'middlewares'], into, NOT_HERE)
  const services = servicesOf(http.section('services'), into)
  const middlewares = new Map(http.section('middlewares').members())
  const used = new Set<string>()
  for (const [name, router] of http.section('routers').members()) {
    routerInto({ name, router, services, middlewares, used }, into)
  }
  for (const [name, middleware] of middlewares) {
    if (!used.has(name)) into.leftOut(middleware.at(), `the middleware "${name}". No router uses it.`)
  }
}

function servicesOf(services: Section, into: Migration): ReadonlyMap<string, string> {
  const known = new Map<string, string>()
  for (const [name, service] of services.members()) {
    service.others(['loadBalancer'], into, 'An upstream has only addresses, which share the requests.')
    const balancer = service.section('loadBalancer')
    balancer.others(['servers', 'passHostHeader'], into, 'An upstream has addresses that share the requests.')
    if (balancer.node.passHostHeader === false)
      into.leftOut(balancer.at('passHostHeader'), 'another Host: it is passed on.')
    const urls = balancer.list('servers').map(server => {
      server.others(['url'], into, 'The addresses of an upstream share the requests.')
      return server.text('url') ?? ''
    })
    const upstream = urls.length === 0 ? undefined : into.upstream(name, urls, service.at())
    if (upstream !== undefined) known.set(name, upstream)
  }
  return known
}

interface Router {
  readonly name: string
  readonly router: Section
  readonly services: ReadonlyMap<string, string>
  readonly middlewares: ReadonlyMap<string, Section>
  readonly used: Set<string>
}

function routerInto({ name, router, services, middlewares, used }: Router, into: Migration): void {
  router.others(
    ['rule', 'service', 'middlewares'],
    into,
    'The most specific path wins, on the one address that is listened on.',
  )
  const fits = ruleOf(router, into)
  const service = plain(router.text('service') ?? '')
  const upstream = services.get(service)
  if (upstream === undefined) {
    into.leftOut(router.at(), `the route to "${service}". This file names no address of it.`)
  }
  for (const { path = '/**' } of fits) if (upstream !== undefined) into.route(path, upstream, router.at())
  if (fits.some(({ host, method }) => host !== undefined || method !== undefined)) {
    into.changed(router.at('rule'), 'the route goes by path alone; hosts and methods narrow its limits only.')
  }
  for (const { match, hosts } of byHosts(name, fits)) into.place(match, hosts)
  const expanded = router.texts('middlewares').flatMap(one => chained(plain(one), middlewares, new Set()))
  for (const one of expanded) {
    const middleware = middlewares.get(one)
    used.add(one)
    if (middleware === undefined)
      into.leftOut(router.at('middlewares'), `the middleware "${one}". It is not in this file.`)
    else for (const routed of byHosts(name, fits)) middlewareInto(one, middleware, routed, into)
  }
  for (const one of router.texts('middlewares')) used.add(plain(one))
}

function ruleOf(router: Section, into: Migration): Fit[] {
  try {
    return fitsOf(router.text('rule') ?? '')
  } catch (error) {
    if (!(error instanceof RuleFault)) throw error
    into.leftOut(router.at('rule'), `the router. ${error.message}`)
    return []
  }
}

/**
 * Groups patterns by host: those for all hosts, then those of named hosts; hosts with the same patterns share a group.
 */
function byHosts(name: string, fits: readonly Fit[]): Routed[] {
  const groups = new Map<string, string[]>()
  for (const { path = '/**', method, host = '' } of fits) {
    const match = groups.get(host) ?? []
    groups.set(host, match)
    match.push(method === undefined ? path : `${method} ${path}`)
  }
  const everybody = groups.get('')
  const named = [...groups].filter(([host, match]) => host !== '' && match.join() !== everybody?.join())
  const lists = [...new Set(named.map(([, match]) => match.join()))]
  const shared = lists.map(list => named.filter(([, match]) => match.join() === list))
  return [
    ...(everybody === undefined ? [] : [{ name, hosts: [], match: everybody }]),
    ...shared.map(hosts => ({ name, hosts: hosts.map(([host]) => host), match: hosts[0]?.[1] ?? [] })),
  ]
}

/** A chain is replaced by its middlewares. */
function chained(
  name: string,
  middlewares: ReadonlyMap<string, Section>,
  above: ReadonlySet<string>,
): string[] {
  const middleware = middlewares.get(name)
  if (middleware === undefined || !('chain' in middleware.node) || above.has(name)) return [name]
  const inside = new Set([...above, name])
  return middleware
    .section('chain')
    .texts('middlewares')
    .flatMap(one => chained(plain(one), middlewares, inside))
}

function middlewareInto(name: string, middleware: Section, routed: Routed, into: Migration): void {
  for (const [kind, settings] of middleware.members()) {
    if (kind === 'rateLimit') rateLimit(name, settings, routed, into)
    else if (kind === 'inFlightReq') inFlight(name, settings, routed, into)
    else if (kind !== 'chain' && into.isNew(`${name} ${kind}`))
      into.leftOut(settings.at(), `"${kind}". ${NOT_HERE}`)
  }
}

function rateLimit(
  name: string,
  settings: Section,
  { name: router, hosts, match }: Routed,
  into: Migration,
): void {
  settings.others(['average', 'period', 'burst', 'sourceCriterion'], into, 'Rules have no counterpart of it.')
  const average = settings.number('average') ?? 0
  if (average <= 0) {
    into.leftOut(settings.at(), 'an average of 0, which limits nothing.')
    return
  }
  const period = String(settings.node.period ?? '1s')
  const seconds = secondsOf(period)
  if (seconds === undefined) {
    const what = `a rate with the period "${period}", which is not a length of time such as 500ms or 1m30s.`
    into.leftOut(settings.at(), what)
    return
  }
  const burst = Math.max(1, settings.number('burst') ?? 1)
  const quota = windowOf(average / seconds, burst)
  const key = keyOf(settings.section('sourceCriterion'), 'client-ip', into)
  if (quota === undefined) into.leftOut(settings.at(), 'a rate whose window would be longer than a day.')
  if (quota === undefined || key === undefined) return
  const before = `where Traefik lets ${burst} pass and then ${average} each ${period}`
  into.changed(
    settings.at(),
    `up to ${quota.requests} pass at once and no more until ${quota.per} after the first, ${before}.`,
  )
  into.meter({ name: `${router}-${name}`, match, hosts, key, quota }, settings.at())
}

function inFlight(
  name: string,
  settings: Section,
  { name: router, hosts, match }: Routed,
  into: Migration,
): void {
  settings.others(['amount', 'sourceCriterion'], into, 'Rules have no counterpart of it.')
  const max = settings.number('amount') ?? 0
  const key = keyOf(settings.section('sourceCriterion'), 'header:host', into)
  if (max < 1) into.leftOut(settings.at(), 'an amount of 0, which limits nothing.')
  else if (key !== undefined) into.slots({ name: `${router}-${name}`, match, hosts, key, max }, settings.at())
}

/** The key that requests are grouped by; undefined, after reporting it, when a rule cannot count by it. */
function keyOf(source: Section, fallback: KeyPart, into: Migration): KeyPart[] | undefined {
  source.others(['ipStrategy', 'requestHeaderName', 'requestHost'], into, 'A key has no such part.')
  const header = source.text('requestHeaderName')
  if (header !== undefined) {
    into.changedOnce(source.at('requestHeaderName'), `requests without ${header} are not counted.`)
    return [`header:${header.toLowerCase()}`]
  }
  if (source.node.requestHost === true) return ['header:host']
  if (!('ipStrategy' in source.node)) return [fallback]
  const strategy = source.section('ipStrategy')
  strategy.others(['depth', 'excludedIPs'], into, 'The key client-ip has no such setting.')
  if (Object.keys(strategy.node).length > 0) {
    into.leftOut(
      strategy.at(),
      'the search in X-Forwarded-For. Name your proxies under trustedProxies in gateway.yaml.',
    )
  }
  return ['client-ip']
}

const UNIT_SECONDS: Readonly<Record<string, number>> = {
  ns: 1e-9,
  us: 1e-6,
  ms: 1e-3,
  s: 1,
  m: 60,
  h: 3600,
}
/** A number and its unit in one of Go's durations, such as `1h30m` and `1.5s` (time.ParseDuration). */
const DURATION_PART = /(?<![\d.])(\d+(?:\.\d*)?|\.\d+)(ns|us|ms|s|m|h)/g

/** A period, which is a number of seconds or one of Go's durations; undefined when it is neither, or zero. */
function secondsOf(period: string): number | undefined {
  const isDuration = period.replace(DURATION_PART, '') === ''
  const seconds = isDuration
    ? [...period.matchAll(DURATION_PART)].reduce(
        (sum, [, count, unit = '']) => sum + Number(count) * (UNIT_SECONDS[unit] ?? Number.NaN),
        0,
      )
    : Number(/^\d+$/.exec(period)?.[0])
  return seconds > 0 ? seconds : undefined
}

/** The name without its provider: `limit@file` is `limit`. */
const plain = (name: string): string => name.replace(/@\w+$/, '')
