/** The bytes allowed in the parts of a head, as Latin-1 character codes (RFC 9110 section 5.6, RFC 9112). */

export const TAB = 0x09
export const LF = 0x0a
export const CR = 0x0d
export const SPACE = 0x20
export const QUOTE = 0x22
export const COLON = 0x3a
export const SEMICOLON = 0x3b
export const EQUALS = 0x3d
export const BACKSLASH = 0x5c

const DIGITS_AND_LETTERS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** One flag per byte. An index outside, such as the NaN past the end of a string, reads as undefined: not allowed. */
type ByteSet = Uint8Array

function byteSet(test: (byte: number) => boolean): ByteSet {
  return Uint8Array.from({ length: 256 }, (_, byte) => (test(byte) ? 1 : 0))
}

/** Bytes of methods and field names (RFC 9110 section 5.6.2). */
export const TOKEN: ByteSet = byteSet(byte =>
  `!#$%&'*+-.^_\`|~${DIGITS_AND_LETTERS}`.includes(String.fromCharCode(byte)),
)
/** Bytes of a request target: visible ASCII. Paths and queries are checked more strictly elsewhere. */
export const TARGET: ByteSet = byteSet(byte => byte > SPACE && byte < 0x7f)
/** Bytes of field values and reason phrases: visible bytes, blanks and obs-text (RFC 9110 section 5.5). */
export const TEXT: ByteSet = byteSet(byte => byte === TAB || (byte >= SPACE && byte !== 0x7f))

/** The first position from `at` whose byte is not in `set`. */
export function skip(text: string, at: number, set: ByteSet): number {
  let i = at
  while (set[text.charCodeAt(i)] === 1) i++
  return i
}

/** True for a text of nothing but bytes in `set`. Not by `skip`: to read past the end of a whole text is slow. */
export function consistsOf(text: string, set: ByteSet): boolean {
  for (let i = 0; i < text.length; i++) if (set[text.charCodeAt(i)] !== 1) return false
  return true
}

/** True when a line ends at `at` with CRLF; a bare CR or LF does not count (RFC 9112 section 2.2). */
export function isLineEnd(text: string, at: number): boolean {
  return text.charCodeAt(at) === CR && text.charCodeAt(at + 1) === LF
}

/** The text without the blanks around it. Not `trim()`, which also takes bytes of values away, such as 0xA0. */
export function trimBlanks(text: string): string {
  let from = 0
  let to = text.length
  while (from < to && isBlank(text.charCodeAt(from))) from++
  while (to > from && isBlank(text.charCodeAt(to - 1))) to--
  return text.slice(from, to)
}

export function isBlank(code: number): boolean {
  return code === SPACE || code === TAB
}
