/**
 * Text fields of a multipart/form-data body (RFC 7578). Reads whatever any upstream might read (bare line breaks, folded
 * and extended parameters, file parts): a value too many shows up as a disagreement, a value too few would go uncounted.
 */

import { isLikeUtf8 } from './body-kind.js'

/** More fields, or parts, than any recovery form has: reading them all would cost far more than their bytes. */
export const MOST_FIELDS = 1000
const BOUNDARY = /;\s*boundary\s*=\s*(?:"([^"]*)"|([^\s";]+))/i
/** What a boundary may not hold, because upstreams disagree on where such a one ends (RFC 2046 section 5.1.1). */
const ODD_BOUNDARY = /[\\,'\s]/
/** `;name=value`, `;name="value"` and `;name*=utf-8''value` (RFC 8187). */
const NAME = /;\s*name\s*(?:(\*)\s*)?=\s*(?:"([^"]*)"|([^\s";]+))/gi
/** A parameter in several parts (RFC 2231 section 3), which only some upstreams put together. */
const IN_PARTS = /;\s*name\*\d/i
const DISPOSITION = /^\s*content-disposition\s*:/i
const TYPE = /^\s*content-type\s*:/i
/** Not the three encodings that change nothing (RFC 2045 section 6.2), which some HTTP clients write. */
const ENCODED = /^\s*content-transfer-encoding\s*:(?!\s*(?:7bit|8bit|binary)\s*$)/i
const BLANK_LINE = /\r\n\r\n|\n\r?\n|\r\r/
const LINE_BREAK = /\r\n|\n|\r/
const FOLD = /(?:\r\n|\n|\r)[ \t]+/g

/** A value that upstreams may read in several ways. */
export const UNCLEAR = Symbol('unclear')

/**
 * The values of a field in the parts of a whole body; a body that upstreams may split in several ways, such as one that is
 * cut off, is unclear. Never throws.
 */
export function multipartField(
  contentType: string,
  body: Buffer,
  field: string,
): (string | typeof UNCLEAR)[] {
  if (body.length === 0) return []
  const boundary = boundaryOf(contentType)
  // One character for each byte; values are decoded once the parts are split.
  const parts = boundary === undefined ? undefined : partsOf(body.toString('latin1'), `--${boundary}`)
  return parts?.flatMap(part => valuesIn(part, field)) ?? [UNCLEAR]
}

/** Undefined if upstreams may disagree on it: one takes the first, another the last, or reads escapes. */
function boundaryOf(contentType: string): string | undefined {
  const [written = '', quoted, bare] = BOUNDARY.exec(contentType) ?? []
  const others = contentType.replace(written, '').toLowerCase()
  const boundary = quoted ?? bare ?? ''
  const isPlain = boundary !== '' && !ODD_BOUNDARY.test(boundary)
  return isPlain && !others.includes('boundary') && !others.includes('"') ? boundary : undefined
}

/** The text between two boundaries; undefined if the last one does not end the body. */
function partsOf(text: string, delimiter: string): string[] | undefined {
  const [, ...parts] = text.split(delimiter, MOST_FIELDS + 2)
  const end = parts.pop()
  return end?.startsWith('--') ? parts : undefined
}

function valuesIn(part: string, field: string): (string | typeof UNCLEAR)[] {
  const blank = BLANK_LINE.exec(part)
  // Some upstreams end at such a boundary, others read on.
  if (blank === null) return [UNCLEAR]
  const lines = part.slice(0, blank.index).replace(FOLD, ' ').split(LINE_BREAK)
  const named = lines.filter(line => DISPOSITION.test(line))
  if (named.some(line => IN_PARTS.test(line) || hasOpenQuote(line))) return [UNCLEAR]
  if (!named.some(line => namesIn(line).includes(field))) return []
  // Some upstreams decode the value, others do not (RFC 7578 sections 4.4 and 4.7).
  if (lines.some(line => ENCODED.test(line) || (TYPE.test(line) && !isLikeUtf8(line)))) return [UNCLEAR]
  return [utf8(part.slice(blank.index + blank[0].length).replace(/\r?\n?$/, ''))]
}

function hasOpenQuote(line: string): boolean {
  return line.replace(/\\./g, '').split('"').length % 2 === 0
}

/** Without what some upstreams take as quotes and escapes. */
function namesIn(line: string): string[] {
  return [...line.matchAll(NAME)].map(([, extended, quoted, bare]) => {
    const value = (quoted ?? bare) as string
    return fieldName((extended === '*' ? unescapeExtended(value) : value).replace(/['\\]/g, ''))
  })
}

function unescapeExtended(value: string): string {
  const text = value.replace(/^[^']*'[^']*'/, '')
  return text.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
}

function utf8(bytes: string): string {
  return Buffer.from(bytes, 'latin1').toString('utf8')
}

/**
 * The name of a form field as upstreams may read it: in lower case, without what some of them drop: PHP leading blanks and all from a bracket or a NUL, Express's qs
 * and Rack the brackets of `email[]`, `email[0]` and `[email]`.
 */
export function fieldName(written: string): string {
  const [, name = ''] = /^[\s[]*([^[\]\0]*)/.exec(written) ?? []
  return name.trim().toLowerCase()
}
