/** Traefik's middlewares: which guard a router, limit, or do something else. */
import type { KeyPart } from '../../config/words/words.js'
import { type Findings, shortened } from './findings.js'
import type { Migration } from './migration.js'
import type { Section } from './yaml.js'

export const NO_REWRITE = 'Prefixes are replaced here by whole segments'
/** Middlewares that neither refuse nor limit, with what their absence means. */
const HARMLESS: Readonly<Record<string, string>> = {
  stripPrefixRegex: NO_REWRITE,
  errors: 'Refusals have one shape',
  circuitBreaker: 'An address that does not answer is left out for a while',
  passTLSClientCert: 'Certificates of clients are not passed on',
  retry: 'Another address is tried only while nothing was sent',
}
/** After these, the upstream gets other paths. */
const REWRITING: Readonly<Record<string, string>> = {
  replacePath: NO_REWRITE,
  replacePathRegex: NO_REWRITE,
}
const ABSENT: Readonly<Record<string, string>> = { ...HARMLESS, ...REWRITING }
const HEADERS = ['customRequestHeaders', 'customResponseHeaders']
const NOT_NEEDED = /^(compress|contentType|grpcWeb)$/
const READ = /^(rateLimit|inFlightReq|chain|buffering|stripPrefix|addPrefix|redirectScheme|redirectRegex)$/

/** How a middleware guards, in words; undefined when it does not. What it is otherwise is reported once. */
export function guardOf(name: string, middleware: Section | undefined, into: Findings): string | undefined {
  if (middleware === undefined) return `behind the middleware "${name}", which is not in this file`
  const whats: string[] = []
  for (const [kind, settings] of middleware.members()) {
    const absence = Object.hasOwn(ABSENT, kind) ? ABSENT[kind] : undefined
    if (absence !== undefined) into.leftOut(settings.at(), `"${kind}". ${absence}.`, `${name} ${kind}`)
    else if (NOT_NEEDED.test(kind)) into.notNeeded(`middleware ${kind}`)
    else if (kind === 'headers' && !('allowedHosts' in settings.node)) {
      if (into.isNew(`headers ${name}`)) settings.others(HEADERS, into, 'Routes have no counterpart of it.')
    } else if (!READ.test(kind)) whats.push(guardText(kind, settings))
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
export function secondsOf(period: string): number | undefined {
  if (period.length > LONGEST_PERIOD) return undefined
  const parts = [...period.matchAll(DURATION_PART)]
  const lengths = parts.map(([, count, unit = '']) => Number(count) * (UNITS[unit] ?? Number.NaN))
  const isDuration = period.replace(DURATION_PART, '') === ''
  const seconds = isDuration ? lengths.reduce((sum, one) => sum + one, 0) : Number(/^\d+$/.exec(period)?.[0])
  return seconds > 0 ? seconds : undefined
}
