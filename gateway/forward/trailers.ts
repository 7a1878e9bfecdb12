/** Trailers: fields after the body, too late for most purposes of a field. */
import { lettersOf } from '../../config/words/field-names.js'
import { trimBlanks } from '../http1/grammar.js'
import { lowerName } from '../http1/names.js'
import type { Fields } from '../message.js'
import type { FieldFates } from './request-fields.js'

/** Fields that say how a message is framed, routed, authenticated or treated (RFC 9110 section 6.5.1). */
const NOT_BEHIND = new Set(
  [
    'accept-ranges age allow authorization cache-control connection content-encoding content-length',
    'content-location content-range content-type cookie date expect expires forwarded from host',
    'http2-settings if-match if-modified-since if-none-match if-range if-unmodified-since keep-alive',
    'location max-forwards origin pragma proxy-authenticate proxy-authorization proxy-connection range',
    'ratelimit ratelimit-policy referer retry-after set-cookie te trailer transfer-encoding upgrade vary',
    'via www-authenticate x-api-key x-request-id',
  ].flatMap(line => line.split(' ').map(lettersOf)),
)
const OURS = ['x-sluice-', 'x-forwarded-', 'x-ratelimit-', 'access-control-'].map(lettersOf)

/** The response trailers that may be passed on, in their order, as a flat list; `isKept` is asked for lower-case names. */
export function passedTrailers(
  trailers: readonly string[],
  isKept: (name: string) => boolean,
): readonly string[] {
  return trailers.length === 0 ? trailers : chosen(trailers, name => mayPass(name) && isKept(name))
}

/**
 * The same for a request: only trailers that its head, `announced`, lists in the Trailer field, and only those that
 * anyone may send in a head.
 */
export function announcedTrailers(
  trailers: readonly string[],
  announced: Fields,
  heads: FieldFates,
): readonly string[] {
  const names = announced.get('trailer')
  if (names === undefined || trailers.length === 0) return []
  const passing = new Set(names.split(',').map(name => trimBlanks(name).toLowerCase()))
  return chosen(trailers, name => passing.has(name) && mayPass(name) && heads.fateOf(name) === 'passes')
}

function chosen(trailers: readonly string[], isChosen: (name: string) => boolean): string[] {
  const passed: string[] = []
  for (let i = 0; i < trailers.length; i += 2) {
    const name = trailers[i] as string
    if (isChosen(lowerName(name))) passed.push(name, trailers[i + 1] as string)
  }
  return passed
}

function mayPass(name: string): boolean {
  const letters = lettersOf(name)
  return !NOT_BEHIND.has(letters) && !OURS.some(prefix => letters.startsWith(prefix))
}
