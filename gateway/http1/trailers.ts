/** Rules for the trailer section of a request or response, whatever the version of HTTP (RFC 9110 section 6.5). */
import { WireError } from './message.js'

/** Bytes of a trailer section. */
export const MAX_TRAILERS = 16 * 1024
/** Each is kept until the request ends, and takes far more memory than its bytes. */
export const MAX_TRAILER_FIELDS = 64

/**
 * Takes the fields' names in lower case. The framing is already known here, so a trailer field that contradicts it is an
 * attack (RFC 9110 section 6.5.1). Throws `bad-framing`.
 */
export function checkTrailers(names: readonly string[]): void {
  if (names.length > MAX_TRAILER_FIELDS) throw new WireError('bad-framing', 'too many trailers')
  if (names.includes('content-length') || names.includes('transfer-encoding')) {
    throw new WireError('bad-framing', 'trailers about the framing')
  }
}
