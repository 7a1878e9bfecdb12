import { isUtf8 } from 'node:buffer'
import { GatewayError } from '../errors.js'

/** A path without escapes, empty or dot segments, or characters that would need an escape. */
const NORMAL = /^(?:\/[\w~!$&'()*+,;=:@-][\w~!$&'()*+,;=:@.-]*)*\/?$/
const ESCAPES_OR_RAW = /(?:%[0-9a-f]{2})+|[^\w~!$&'()*+,;=:@./-]/gi
const MALFORMED_ESCAPE = /%(?![0-9a-f]{2})/i
/**
 * Escapes that servers interpret differently: slash, backslash, and control characters (C0, DEL, and C1 in UTF-8), at
 * which some cut a path off and which others trim away.
 */
const AMBIGUOUS_ESCAPE = /%(?:2f|5c|[01][0-9a-f]|7f|c2%[89][0-9a-f])/i
/** What no path may contain: controls, space, `#`, backslash, and bytes beyond ASCII. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: finding control characters is the point
const FORBIDDEN = /[\x00-\x20#\\\x7f-\uffff]/
/**
 * Characters that mean the same escaped or not: unreserved ones, and sub-delimiters without a meaning to servers. Not
 * `;`, at which some servers cut parameters off a segment.
 */
const PLAIN = /^[\w.~!$&'()*+,=:@-]$/
/** Of these, the ones whose escapes are forwarded: object stores and signatures tell `%2B` from `+`. */
const KEPT_ESCAPE = /%(?:2[1467-9A-C]|3[AD]|40)/i
const UNRESERVED = /^[\w.~-]$/

/**
 * The normal form of a path, which is matched and counted (RFC 3986 section 6.2.2): characters allowed in a segment are
 * decoded, everything else is escaped in upper case, repeated slashes are collapsed, dot segments resolved. `;` and
 * `%3B` stay as they are, and so does a trailing slash. Throws `bad-target` if the path is ambiguous.
 */
export function normalizePath(rawPath: string): string {
  if (NORMAL.test(rawPath) && rawPath !== '') return rawPath
  if (rawPath[0] !== '/' || FORBIDDEN.test(rawPath)) throw new GatewayError('bad-target')
  if (MALFORMED_ESCAPE.test(rawPath) || AMBIGUOUS_ESCAPE.test(rawPath)) throw new GatewayError('bad-target')
  return resolveSegments(rawPath.replace(ESCAPES_OR_RAW, text => reescaped(text, PLAIN)))
}

/**
 * The path as it is forwarded: the normal form, but with escapes of sub-delimiters as they are written. Its segments are
 * those of the normal form, which is also its own normal form.
 *
 * @param path the normal form of `rawPath`
 */
export function speltPath(rawPath: string, path: string): string {
  if (path === rawPath || !KEPT_ESCAPE.test(rawPath)) return path
  return resolveSegments(rawPath.replace(ESCAPES_OR_RAW, text => reescaped(text, UNRESERVED)))
}

/** A run of escapes, or one raw character that must be escaped. What is in `decoded` loses its escape. */
function reescaped(text: string, decoded: RegExp): string {
  const isRun = text[0] === '%'
  const bytes = isRun ? Buffer.from(text.replaceAll('%', ''), 'hex') : Buffer.from(text, 'latin1')
  if (!isUtf8(bytes)) throw new GatewayError('bad-target')
  let normal = ''
  for (const [i, byte] of bytes.entries()) {
    const character = String.fromCharCode(byte)
    if (decoded.test(character)) normal += character
    else if (PLAIN.test(character)) normal += text.slice(3 * i, 3 * i + 3)
    else normal += `%${byte.toString(16).toUpperCase().padStart(2, '0')}`
  }
  return normal
}

/** Collapses slashes first, then resolves dot segments, so `/a//../b` is `/b`. */
function resolveSegments(path: string): string {
  const kept: string[] = []
  const segments = path.split('/')
  for (const segment of segments) {
    if (segment === '' || segment === '.') continue
    if (segment === '..') kept.pop()
    else kept.push(segment)
  }
  const last = segments.at(-1)
  const endsInSlash = last === '' || last === '.' || last === '..'
  return kept.length === 0 ? '/' : `/${kept.join('/')}${endsInSlash ? '/' : ''}`
}
