/** Traefik's middlewares: which guard a router, and what the others are. */
import type { Migration } from './migration.js'
import type { Section } from './source.js'

const NO_REWRITE = 'The upstream gets the path that the client sent'
/** Middlewares that neither refuse nor limit, with what their absence means. */
const HARMLESS: Readonly<Record<string, string>> = {
  headers: 'Requests and responses are passed on with the fields they have',
  stripPrefix: NO_REWRITE,
  stripPrefixRegex: NO_REWRITE,
  addPrefix: NO_REWRITE,
  replacePath: NO_REWRITE,
  replacePathRegex: NO_REWRITE,
  redirectScheme: 'Redirect in front of the gateway',
  redirectRegex: 'Redirect in front of the gateway',
  errors: 'Refusals have one shape',
  circuitBreaker: 'An address that does not answer is left out for a while',
  passTLSClientCert: 'Certificates of clients are not passed on',
  retry: 'Another address is tried only while nothing was sent',
}
const NOT_NEEDED = /^(compress|contentType|grpcWeb)$/
const READ = /^(rateLimit|inFlightReq|chain|buffering)$/

/** How a middleware guards, in words; undefined when it does not. What it is otherwise is reported once. */
export function guardOf(name: string, middleware: Section | undefined, into: Migration): string | undefined {
  if (middleware === undefined) return `behind the middleware "${name}", which is not in this file`
  const whats: string[] = []
  for (const [kind, settings] of middleware.members()) {
    const missing = Object.hasOwn(HARMLESS, kind) ? HARMLESS[kind] : undefined
    const refuses = kind === 'headers' && 'allowedHosts' in settings.node
    if (READ.test(kind)) continue
    if (NOT_NEEDED.test(kind)) into.findings.notNeeded(`middleware ${kind}`)
    else if (missing !== undefined && !refuses) {
      if (into.isNew(`${name} ${kind}`)) into.leftOut(settings.at(), `"${kind}". ${missing}.`)
    } else whats.push(guardText(kind, settings))
  }
  return whats.length === 0 ? undefined : whats.join(', ')
}

function guardText(kind: string, settings: Section): string {
  if (kind === 'ipAllowList' || kind === 'ipWhiteList') {
    const ranges = settings.texts('sourceRange')
    return `closed to all but ${ranges.slice(0, 5).join(', ')}${ranges.length > 5 ? ', …' : ''}`
  }
  if (kind === 'headers')
    return `for the hosts ${settings.texts('allowedHosts').slice(0, 5).join(', ')} alone`
  return `behind ${kind}`
}
