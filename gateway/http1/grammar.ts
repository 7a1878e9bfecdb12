/** Which bytes may stand where in a head, as Latin-1 character codes (RFC 9110 section 5.6, RFC 9112). */

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

/** One flag per byte. What lies outside, such as the NaN behind the end of a text, reads as undefined: not allowed. */
type ByteSet = Uint8Array

function byteSet(test: (byte: number) => boolean): ByteSet {
  return Uint8Array.from({ length: 256 }, (_, byte) => (test(byte) ? 1 : 0))
}

/** Of methods and field names (RFC 9110 section 5.6.2). */
export const TOKEN: ByteSet = byteSet(byte =>
  `!#$%&'*+-.^_\`|~${DIGITS_AND_LETTERS}`.includes(String.fromCharCode(byte)),
)
/** Of a target: visible ASCII. Which of it a path or a query may hold is not asked here. */
export const TARGET: ByteSet = byteSet(byte => byte > SPACE && byte < 0x7f)
/** Of a field's value and a reason phrase: visible bytes, blanks and obs-text (RFC 9110 section 5.5). */
export const TEXT: ByteSet = byteSet(byte => byte === TAB || (byte >= SPACE && byte !== 0x7f))

/** The first place from `at` whose byte is not in `set`. */
export function skip(text: string, at: number, set: ByteSet): number {
  let i = at
  while (set[text.charCodeAt(i)] === 1) i++
  return i
}

/** True when a line ends at `at` as it must: CRLF, never one of the two alone (RFC 9112 section 2.2). */
export function isLineEnd(text: string, at: number): boolean {
  return text.charCodeAt(at) === CR && text.charCodeAt(at + 1) === LF
}

export function isBlank(code: number): boolean {
  return code === SPACE || code === TAB
}
