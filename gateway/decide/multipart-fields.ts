/**
 * Text fields at the beginning of a multipart/form-data body (RFC 7578), which may be cut off anywhere. Reads whatever
 * any upstream might read (bare line feeds, folded and extended parameters, file parts): a value too many shows up as a
 * disagreement, a value too few would go uncounted.
 */

import { isLikeUtf8 } from './body-kind.js'

/** More parts than any recovery form has. */
const MOST_PARTS = 1000
/** `;name=value`, `;name="value"` and `;name*=utf-8''value` (RFC 8187). */
const parameter = (name: string) =>
  new RegExp(`;[ \\t]*${name}(\\*?)[ \\t]*=[ \\t]*(?:"([^"]*)"|([^\\s";]+))`, 'gi')
const BOUNDARY = parameter('boundary')
const NAME = parameter('name')
/** A parameter in several parts (RFC 2231 section 3), which only some upstreams put together. */
const IN_PARTS = /;[ \t]*(?:boundary|name)\*\d/i
const TYPE = /^content-type[ \t]*:/i
/** Not the three encodings that change nothing (RFC 2045 section 6.2), which some HTTP clients write. */
const ENCODED = /^content-transfer-encoding[ \t]*:(?![ \t]*(?:7bit|8bit|binary)[ \t]*$)/i

/** A value that upstreams may read in several ways. */
export const UNCLEAR = Symbol('unclear')

/**
 * The values of a field in the complete parts; a part that the prefix cuts off is ignored, and a body that is not
 * multipart has no parts. Never throws.
 */
export function multipartField(
  contentType: string,
  prefix: Buffer,
  field: string,
): (string | typeof UNCLEAR)[] {
  if (IN_PARTS.test(contentType)) return [UNCLEAR]
  const boundaries = parametersOf(contentType, BOUNDARY)
  const [boundary] = boundaries
  if (boundary === undefined) return []
  // An upstream may take the other of two boundaries, or read a backslash as an escape.
  if (boundaries.length > 1 || boundary.includes('\\')) return [UNCLEAR]
  // One character for each byte; values are decoded once the parts are split.
  const text = `\n${prefix.toString('latin1')}`
  return partsOf(text, `\n--${boundary}`).flatMap(part => valuesIn(part, field))
}

/** The text between two boundaries, without the line break before the second. */
function partsOf(text: string, delimiter: string): string[] {
  const parts: string[] = []
  let from = text.indexOf(delimiter)
  while (from >= 0 && parts.length < MOST_PARTS) {
    const start = from + delimiter.length
    const next = text.indexOf(delimiter, start)
    if (text.startsWith('--', start) || next < 0) break
    parts.push(text.slice(start, text[next - 1] === '\r' ? next - 1 : next))
    from = next
  }
  return parts
}

function valuesIn(part: string, field: string): (string | typeof UNCLEAR)[] {
  const blank = /\r?\n\r?\n/.exec(part)
  if (blank === null) return []
  const lines = part
    .slice(0, blank.index)
    .replace(/\r?\n[ \t]+/g, ' ')
    .split(/\r?\n/)
  const named = lines.filter(line => /^content-disposition[ \t]*:/i.test(line))
  if (named.some(line => IN_PARTS.test(line))) return [UNCLEAR]
  if (!named.some(line => namesIn(line).includes(field))) return []
  // Some upstreams decode the value, others do not (RFC 7578 sections 4.4 and 4.7).
  if (lines.some(line => ENCODED.test(line) || (TYPE.test(line) && !isLikeUtf8(line)))) return [UNCLEAR]
  return [utf8(part.slice(blank.index + blank[0].length))]
}

/** Without what some upstreams take as quotes and escapes. */
function namesIn(line: string): string[] {
  return parametersOf(line, NAME).map(name => name.replace(/['\\]/g, '').toLowerCase())
}

function parametersOf(line: string, pattern: RegExp): string[] {
  return [...line.matchAll(pattern)].map(([, extended, quoted, bare]) => {
    const value = (quoted ?? bare) as string
    return extended === '*' ? unescapeExtended(value) : value
  })
}

function unescapeExtended(value: string): string {
  const text = value.replace(/^[^']*'[^']*'/, '')
  return text.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
}

function utf8(bytes: string): string {
  return Buffer.from(bytes, 'latin1').toString('utf8')
}
