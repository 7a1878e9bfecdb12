/** Traefik's middlewares: which guard a router, limit, send its requests elsewhere, or do something else. */
import type { KeyPart } from '../../config/words/words.js'
import { type Findings, shortened } from './findings.js'
import type { Migration } from './migration.js'
import { isConfined, type MatchedPlace } from './places.js'
import { literalsOf } from './regex.js'
import type { Section } from './yaml.js'

const NO_REWRITE = 'The upstream gets the path that the client sent'
const NO_REDIRECT = 'Redirect in front of the gateway'
/** Middlewares that neither refuse nor limit, with what their absence means. */
const HARMLESS: Readonly<Record<string, string>> = {
  headers: 'Requests and responses are passed on with the fields they have',
  stripPrefix: NO_REWRITE,
  stripPrefixRegex: NO_REWRITE,
  redirectScheme: NO_REDIRECT,
  errors: 'Refusals have one shape',
  circuitBreaker: 'An address that does not answer is left out for a while',
  passTLSClientCert: 'Certificates of clients are not passed on',
  retry: 'Another address is tried only while nothing was sent',
}
/** After these, the upstream gets other paths, or none: whether a route may lead there depends on its path. */
const REWRITING: Readonly<Record<string, string>> = {
  addPrefix: NO_REWRITE,
  replacePath: NO_REWRITE,
  replacePathRegex: NO_REWRITE,
  redirectRegex: NO_REDIRECT,
}
const NOT_NEEDED = /^(compress|contentType|grpcWeb)$/
const READ = /^(rateLimit|inFlightReq|chain|buffering)$/

/** How a middleware guards, in words; undefined when it does not. What it is otherwise is reported once. */
export function guardOf(name: string, middleware: Section | undefined, into: Findings): string | undefined {
  if (middleware === undefined) return `behind the middleware "${name}", which is not in this file`
  const whats: string[] = []
  for (const [kind, settings] of middleware.members()) {
    const isHarmless =
      Object.hasOwn(HARMLESS, kind) && !(kind === 'headers' && 'allowedHosts' in settings.node)
    const absence = isHarmless ? HARMLESS[kind] : Object.hasOwn(REWRITING, kind) ? REWRITING[kind] : undefined
    if (absence !== undefined) into.leftOut(settings.at(), `"${kind}". ${absence}.`, `${name} ${kind}`)
    else if (NOT_NEEDED.test(kind)) into.notNeeded(`middleware ${kind}`)
    else if (!READ.test(kind)) whats.push(guardText(kind, settings))
    else if (kind === 'inFlightReq' && !((settings.number('amount') ?? 0) > 0))
      whats.push('closed by inFlightReq, with no amount above 0')
  }
  return whats.length === 0 ? undefined : whats.join(', ')
}

function guardText(kind: string, settings: Section): string {
  if (kind === 'ipAllowList' || kind === 'ipWhiteList')
    return `closed to all but ${shortened(settings.texts('sourceRange'))}`
  if (kind === 'headers')
    return `for the hosts ${settings.texts('allowedHosts').slice(0, 5).join(', ')} alone`
  return `behind ${kind}`
}

/** Where the requests of a place go that its upstream does not get with a path of the place; undefined when it does. */
export function elsewhereOf(middleware: Section | undefined, place: MatchedPlace): string | undefined {
  for (const [kind, settings] of middleware?.members() ?? []) {
    const target = settings.text('prefix') ?? settings.text('path') ?? settings.text('replacement') ?? ''
    const fixed = /^[^$]*/.exec(target)?.[0] ?? ''
    const isAny = fixed === '' || (fixed === '/' && target !== '/')
    if (kind === 'addPrefix' && isConfined({ ...place, kind: 'prefix' }, fixed))
      return `sent on below ${target}`
    if (kind === 'replacePath' || (kind === 'replacePathRegex' && !isAny)) return `sent on as ${target}`
  }
  return undefined
}

/** Reports fields that a middleware sets, and that a client may set where nobody does. */
export function reportFields(middleware: Section | undefined, into: Findings): void {
  if (middleware === undefined) return
  if ('passTLSClientCert' in middleware.node) {
    into.lost(
      middleware.at('passTLSClientCert'),
      'the fields X-Forwarded-Tls-Client-Cert and X-Forwarded-Tls-Client-Cert-Info, which Traefik sets or removes. The upstream gets what the client sends in them, and must not believe it.',
      'field of certificates',
    )
  }
  const fields = middleware.section('headers').section('customRequestHeaders')
  for (const name of Object.keys(fields.node)) {
    if (!/^(host|x-forwarded-.*|x-real-ip)$/i.test(name)) into.lostField(fields.at(name), name, 'Traefik')
  }
}

/** Where a middleware redirects. */
export interface TraefikRedirect {
  /** In words. */
  readonly to: string
  /** True for one to https, whose paths are those of the routers of https, which may guard them. */
  readonly isToHttps: boolean
}

/** A redirect to another host or scheme alone, with the path that was asked for. */
const SAME_PATH = /^(?:https?|\$\{?\w+\}?):\/\/(?:[^/]+\/?)?\$\{?\w+\}?$/

/** Where middlewares redirect requests for a host. @param isTls true where all of them came by https */
export function redirectOf(
  middlewares: readonly (Section | undefined)[],
  isTls: boolean,
  host: string | undefined,
): TraefikRedirect | undefined {
  for (const [kind, settings] of middlewares.flatMap(one => one?.members() ?? [])) {
    // Requests that came by https are not redirected there.
    if (kind === 'redirectScheme' && !isTls)
      return { to: settings.text('scheme') ?? 'https', isToHttps: true }
    if (kind !== 'redirectRegex' || isOfOthers(settings.text('regex') ?? '', host)) continue
    const to = settings.text('replacement') ?? ''
    return { to, isToHttps: !isTls && SAME_PATH.test(to) }
  }
  return undefined
}

/** True for an expression of addresses of other hosts alone, such as `^https://www\.(.*)`. */
function isOfOthers(expression: string, host: string | undefined): boolean {
  if (host === undefined) return false
  return literalsOf(expression.replace(/^\^https?\??/, '')).every(({ path }) => {
    const [, rest] = path.split('://')
    return rest !== undefined && !rest.startsWith(host) && !`${host}/`.startsWith(rest)
  })
}

/** The requests of a router: patterns, and the projects of their hosts. */
export interface LimitedRequests {
  readonly name: string
  readonly projects: readonly string[]
  readonly match: readonly string[]
}

const LIMITERS: Readonly<Record<string, typeof rateLimit>> = { rateLimit, inFlightReq: inFlight }

export const isLimiter = (middleware: Section | undefined): boolean =>
  Object.keys(LIMITERS).some(kind => kind in (middleware?.node ?? {}))

/** Writes the limits of a middleware. @param knows true when it is known whose X-Forwarded-For is trusted */
export function limitBy(
  name: string,
  middleware: Section | undefined,
  requests: LimitedRequests,
  into: Migration,
  knows: boolean,
): void {
  for (const [kind, settings] of middleware?.members() ?? []) {
    const parts = { ...requests, name: `${requests.name}-${name}` }
    if (Object.hasOwn(LIMITERS, kind)) LIMITERS[kind]?.(settings, requests.name, parts, into, knows)
  }
}

function rateLimit(
  settings: Section,
  router: string,
  parts: LimitedRequests,
  into: Migration,
  knows: boolean,
): void {
  const at = settings.at()
  settings.others(['average', 'period', 'burst', 'sourceCriterion'], into, 'Rules have no counterpart of it.')
  const average = settings.number('average') ?? 0
  const period = String(settings.node.period ?? '1s')
  const seconds = secondsOf(period)
  if (average <= 0) into.leftOut(at, 'an average of 0, which limits nothing.')
  else if (seconds === undefined) {
    const why = 'which is not a length of time such as 500ms or 1m30s.'
    into.leftOut(at, `a rate with the period "${period}", ${why}`)
  } else {
    const burst = Math.max(1, settings.number('burst') ?? 1)
    const key = keyOf(settings.section('sourceCriterion'), 'client-ip', into, knows)
    const limit = {
      ...{ rate: average / seconds, atOnce: burst, counter: JSON.stringify([router, at.path]) },
      theirs: `where Traefik lets ${burst} pass and then ${average} each ${period}.`,
      refilled: (token: { readonly requests: number; readonly seconds: number }) =>
        `${token.requests} each ${token.seconds}s`,
      tooLong: 'a rate whose window would be longer than a day.',
      isSameAsOne: false,
    }
    into.limitRate({ ...parts, key, missing: 'shared' }, limit, at)
  }
}

function inFlight(
  settings: Section,
  _router: string,
  parts: LimitedRequests,
  into: Migration,
  knows: boolean,
): void {
  settings.others(['amount', 'sourceCriterion'], into, 'Rules have no counterpart of it.')
  const key = keyOf(settings.section('sourceCriterion'), 'host', into, knows)
  const max = settings.number('amount')
  if (max !== undefined) into.rules.slots({ ...parts, key, max, missing: 'shared' }, settings.at())
}

/** The key that requests are grouped by. */
function keyOf(source: Section, fallback: KeyPart, into: Findings, knows: boolean): KeyPart[] {
  source.others(['ipStrategy', 'requestHeaderName', 'requestHost'], into, 'A key has no such part.')
  const header = source.text('requestHeaderName')
  if (header !== undefined) return [`header:${header.toLowerCase()}`]
  if (source.node.requestHost === true) return ['host']
  if (!('ipStrategy' in source.node)) return [fallback]
  const strategy = source.section('ipStrategy')
  strategy.others(['depth', 'excludedIPs', 'ipv6Subnet'], into, 'The key client-ip has no such setting.')
  if (!('depth' in strategy.node) && !('excludedIPs' in strategy.node)) return ['client-ip']
  const at = strategy.at()
  const found = '"client-ip" is the first address from the right of X-Forwarded-For that is no trusted proxy'
  if (knows) into.changedOnce(at, `${found}, whatever "depth" and "excludedIPs" say.`)
  else {
    const advice =
      'Name your proxies under trustedProxies in gateway.yaml, or give the static configuration, too'
    const sentence = `the search for clients’ addresses in X-Forwarded-For. ${advice}: ${found}.`
    into.lost(at, sentence, `strategy ${JSON.stringify(at.path)}`)
  }
  return ['client-ip']
}

const UNITS: Readonly<Record<string, number>> = { ns: 1e-9, us: 1e-6, ms: 1e-3, s: 1, m: 60, h: 3600 }
/** A number and its unit in one of Go's durations, such as `1h30m` and `1.5s` (time.ParseDuration). */
const DURATION_PART = /(?<![\d.])(\d+(?:\.\d*)?|\.\d+)(ns|us|ms|s|m|h)/g
const LONGEST_PERIOD = 64

/** A period, which is a number of seconds or one of Go's durations; undefined when it is neither, or zero. */
function secondsOf(period: string): number | undefined {
  if (period.length > LONGEST_PERIOD) return undefined
  const parts = [...period.matchAll(DURATION_PART)]
  const lengths = parts.map(([, count, unit = '']) => Number(count) * (UNITS[unit] ?? Number.NaN))
  const isDuration = period.replace(DURATION_PART, '') === ''
  const seconds = isDuration ? lengths.reduce((sum, one) => sum + one, 0) : Number(/^\d+$/.exec(period)?.[0])
  return seconds > 0 ? seconds : undefined
}
