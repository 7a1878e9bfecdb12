/** Traefik's middlewares: which guard a router, and what the others are. */
import type { Place } from './doors.js'
import type { Migration } from './migration.js'
import { isConfined } from './paths.js'
import type { Section } from './source.js'

const NO_REWRITE = 'The upstream gets the path that the client sent'
/** Middlewares that neither refuse nor limit, with what their absence means. */
const HARMLESS: Readonly<Record<string, string>> = {
  headers: 'Requests and responses are passed on with the fields they have',
  stripPrefix: NO_REWRITE,
  stripPrefixRegex: NO_REWRITE,
  redirectScheme: 'Redirect in front of the gateway',
  errors: 'Refusals have one shape',
  circuitBreaker: 'An address that does not answer is left out for a while',
  passTLSClientCert: 'Certificates of clients are not passed on',
  retry: 'Another address is tried only while nothing was sent',
}
const NOT_NEEDED = /^(compress|contentType|grpcWeb)$/
const READ = /^(rateLimit|inFlightReq|chain|buffering)$/
/** After these, the upstream gets other paths, or none: whether a route may lead there depends on its path. */
const REWRITING = /^(addPrefix|replacePath|replacePathRegex|redirectRegex)$/

/** How a middleware guards, in words; undefined when it does not. What it is otherwise is reported once. */
export function guardOf(name: string, middleware: Section | undefined, into: Migration): string | undefined {
  if (middleware === undefined) return `behind the middleware "${name}", which is not in this file`
  const whats: string[] = []
  for (const [kind, settings] of middleware.members()) {
    const missing = Object.hasOwn(HARMLESS, kind) ? HARMLESS[kind] : undefined
    const refuses = kind === 'headers' && 'allowedHosts' in settings.node
    if (REWRITING.test(kind) && into.isNew(`${name} ${kind}`))
      into.leftOut(
        settings.at(),
        `"${kind}". ${kind === 'redirectRegex' ? 'Redirect in front of the gateway' : NO_REWRITE}.`,
      )
    if (kind === 'inFlightReq' && !admitsAny(settings))
      whats.push('closed by inFlightReq, with no amount above 0')
    if (READ.test(kind) || REWRITING.test(kind)) continue
    if (NOT_NEEDED.test(kind)) into.findings.notNeeded(`middleware ${kind}`)
    else if (missing !== undefined && !refuses) {
      if (into.isNew(`${name} ${kind}`)) into.leftOut(settings.at(), `"${kind}". ${missing}.`)
    } else whats.push(guardText(kind, settings))
  }
  return whats.length === 0 ? undefined : whats.join(', ')
}

/** Where the requests of a place go that its upstream does not get with a path of the place; undefined when it does. */
export function elsewhereOf(middleware: Section | undefined, place: Place): string | undefined {
  for (const [kind, settings] of middleware?.members() ?? []) {
    const target = settings.text('prefix') ?? settings.text('path') ?? settings.text('replacement') ?? ''
    const fixed = /^[^$]*/.exec(target)?.[0] ?? ''
    if (kind === 'addPrefix' && isConfined({ ...place, kind: 'prefix' }, fixed))
      return `sent on below ${target}`
    if (kind === 'replacePath') return `sent on as ${target}`
    const isAny = fixed === '' || (fixed === '/' && target !== '/')
    if (kind === 'replacePathRegex' && !isAny) return `sent on as ${target}`
  }
  return undefined
}

/** Reports fields that a middleware sets, and that a client may set where nobody does. */
export function reportFields(middleware: Section | undefined, into: Migration): void {
  if (
    middleware !== undefined &&
    'passTLSClientCert' in middleware.node &&
    into.isNew('field of certificates')
  ) {
    into.lost(
      middleware.at('passTLSClientCert'),
      'the fields X-Forwarded-Tls-Client-Cert and X-Forwarded-Tls-Client-Cert-Info, which Traefik sets or removes. The upstream gets what the client sends in them, and must not believe it.',
    )
  }
  const fields = middleware?.section('headers').section('customRequestHeaders')
  for (const name of Object.keys(fields?.node ?? {})) {
    if (
      fields !== undefined &&
      !/^(host|x-forwarded-.*|x-real-ip)$/i.test(name) &&
      into.isNew(`field ${name.toLowerCase()}`)
    ) {
      into.lost(
        fields.at(name),
        `the field ${name}, which Traefik sets or removes. The upstream gets what the client sends in it, and must not believe it.`,
      )
    }
  }
}

/** False for an inFlightReq that refuses every request, as it does without an amount. */
const admitsAny = (settings: Section): boolean => (settings.number('amount') ?? 0) > 0

function guardText(kind: string, settings: Section): string {
  if (kind === 'ipAllowList' || kind === 'ipWhiteList') {
    const ranges = settings.texts('sourceRange')
    return `closed to all but ${ranges.slice(0, 5).join(', ')}${ranges.length > 5 ? ', …' : ''}`
  }
  if (kind === 'headers')
    return `for the hosts ${settings.texts('allowedHosts').slice(0, 5).join(', ')} alone`
  return `behind ${kind}`
}
