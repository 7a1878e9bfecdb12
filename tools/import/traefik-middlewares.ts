/** Traefik's middlewares: which guard a router, change paths and fields, send its requests elsewhere, or do something else. */
import { changesOf, type FieldChange, type ImportedHeaders, isChangeable, routeText } from './fields.js'
import { type Findings, shortened } from './findings.js'
import { isConfined, type MatchedPlace } from './places.js'
import { literalsOf } from './regex.js'
import { type ImportedRewrite, prefixesOf } from './routes.js'
import type { Section } from './yaml.js'

const NO_REWRITE = 'The upstream gets the path that the client sent'
const NO_REDIRECT = 'Redirect in front of the gateway'
/** Middlewares that neither refuse nor limit, with what their absence means. */
const HARMLESS: Readonly<Record<string, string>> = {
  stripPrefixRegex: NO_REWRITE,
  redirectScheme: NO_REDIRECT,
  errors: 'Refusals have one shape',
  circuitBreaker: 'An address that does not answer is left out for a while',
  passTLSClientCert: 'Certificates of clients are not passed on',
  retry: 'Another address is tried only while nothing was sent',
}
/** After these, the upstream gets other paths, or none: whether a route may lead there depends on its path. */
const REWRITING: Readonly<Record<string, string>> = {
  replacePath: NO_REWRITE,
  replacePathRegex: NO_REWRITE,
  redirectRegex: NO_REDIRECT,
}
const NOT_NEEDED = /^(compress|contentType|grpcWeb)$/
const READ = /^(rateLimit|inFlightReq|chain|buffering|headers|stripPrefix|addPrefix)$/

/** How a middleware guards, in words; undefined when it does not. What it is otherwise is reported once. */
export function guardOf(name: string, middleware: Section | undefined, into: Findings): string | undefined {
  if (middleware === undefined) return `behind the middleware "${name}", which is not in this file`
  const whats: string[] = []
  for (const [kind, settings] of middleware.members()) {
    if (kind === 'headers') {
      if ('allowedHosts' in settings.node) whats.push(guardText(kind, settings))
      const why = 'A route sets and removes fields by "customRequestHeaders" and "customResponseHeaders".'
      if (into.isNew(`${name} ${kind}`)) settings.others([...FIELDS, 'allowedHosts'], into, why)
      continue
    }
    const absence = Object.hasOwn(HARMLESS, kind)
      ? HARMLESS[kind]
      : Object.hasOwn(REWRITING, kind)
        ? REWRITING[kind]
        : undefined
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

/**
 * What middlewares take away from the beginning of the path, and then put before it; undefined where a route cannot say
 * the same of every request of the place.
 */
export function rewriteBy(
  middlewares: readonly (Section | undefined)[],
  { path }: MatchedPlace,
): ImportedRewrite | undefined {
  let [stripped, added] = ['', '']
  for (const [name, settings] of middlewares.flatMap(one => one?.members() ?? [])) {
    if (name === 'addPrefix') added = (settings.text('prefix') ?? '') + added
    if (name !== 'stripPrefix') continue
    if (added !== '') return undefined
    const rest = path.slice(stripped.length)
    const first = settings.texts('prefixes').find(one => rest.startsWith(one) || one.startsWith(rest))
    if (first === undefined) continue
    if (rest !== first && !rest.startsWith(`${first}/`)) return undefined
    stripped += first
  }
  return prefixesOf(stripped, added)
}

/**
 * Where the requests of a place go that its upstream does not get with a path of the place; undefined when it does.
 *
 * @param keepsPrefix whether prefixes are not written
 */
export function elsewhereOf(
  middleware: Section | undefined,
  place: MatchedPlace,
  keepsPrefix: boolean,
): string | undefined {
  for (const [kind, settings] of middleware?.members() ?? []) {
    const target = settings.text('prefix') ?? settings.text('path') ?? settings.text('replacement') ?? ''
    const fixed = /^[^$]*/.exec(target)?.[0] ?? ''
    const isAny = fixed === '' || (fixed === '/' && target !== '/')
    if (keepsPrefix && kind === 'addPrefix' && isConfined({ ...place, kind: 'prefix' }, fixed))
      return `sent on below ${target}`
    if (kind === 'replacePath' || (kind === 'replacePathRegex' && !isAny)) return `sent on as ${target}`
  }
  return undefined
}

const FIELDS = ['customRequestHeaders', 'customResponseHeaders']

/** Reports fields of certificates, which a client may set where nobody does. */
export function reportFields(middleware: Section | undefined, into: Findings): void {
  if (middleware === undefined || !('passTLSClientCert' in middleware.node)) return
  into.lost(
    middleware.at('passTLSClientCert'),
    'the fields X-Forwarded-Tls-Client-Cert and X-Forwarded-Tls-Client-Cert-Info, which Traefik sets or removes. The upstream gets what the client sends in them, and must not believe it.',
    'field of certificates',
  )
}

/** The changes of fields by middlewares, of which the last one decides; reports those that no route can say. */
export function headersBy(middlewares: readonly (Section | undefined)[], into: Findings): ImportedHeaders {
  const lists = [...middlewares].reverse().flatMap(one => one?.section('headers') ?? [])
  const changes = (key: string, of: 'request' | 'response'): FieldChange[] =>
    lists.flatMap(list =>
      Object.entries(list.section(key).node).flatMap(([name, written]): FieldChange[] => {
        const text = String(written)
        const value = routeText(text, {})
        const at = list.section(key).at(name)
        if (text !== '' && (value === undefined || !isChangeable(name, of)))
          into.leftOut(at, `the field ${name}, which no route sets to "${text.slice(0, 60)}".`)
        // What a client must not choose is better missing than its own.
        return value === undefined ? [{ how: 'remove', name }] : [{ how: 'set', name, value }]
      }),
    )
  return {
    request: changesOf('request', changes('customRequestHeaders', 'request')),
    response: changesOf('response', changes('customResponseHeaders', 'response')),
  }
}

/** The largest body that all of the middlewares let through. */
export function maxBodyOf(middlewares: readonly (Section | undefined)[]): number | undefined {
  const sizes = middlewares
    .map(one => one?.section('buffering').number('maxRequestBodyBytes') ?? 0)
    .filter(size => Number.isInteger(size) && size > 0)
  return sizes.length === 0 ? undefined : Math.min(...sizes)
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
