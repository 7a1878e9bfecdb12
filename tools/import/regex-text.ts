/** One spelling of the regular expressions of PCRE, RE2 and Rust: what is not known to be text is never taken for text. */

/** Stands for what may match anything, and ends what is known of a regular expression. */
const ANYTHING = '.*'
/** Escapes of one character of a class, or of none at a boundary: no text, and nothing after them belongs to them. */
const NO_TEXT = /^[dDwWsShHvVNRXCbBAzZGKtnrfae<>](?!\{\D)/
/** Groups whose text is read, or skipped as a whole; others change what the rest means. */
const KNOWN_GROUP = /^\((?:\?(?:i?:|[=!>|<'&]|P[<=>]|\d)|[^?*]|$)/
/** A character by its number, hexadecimal or octal; other digits refer to groups. */
const CODE = /^(?:x\{([\da-fA-F]{1,6})\}|x([\da-fA-F]{2})|o\{([0-7]{1,6})\}|(0[0-7]{0,2}|1[0-7]{2})(?!\d))/
const ASCII_MOST = 0x7f
/** Characters that stand for themselves in every expression. */
export const PLAIN = /[\w/@~%&=:,; -]/

/**
 * The expression with text as itself, characters with a meaning behind a backslash, and `.` for sets and classes. It
 * ends with `.*` where the rest cannot be known; undefined when nothing of it can.
 */
export function regexText(expression: string): string | undefined {
  let text = ''
  /** Where the group around it begins that is in no other: what is in an unfinished group is not known either. */
  let outermost = 0
  let depth = 0
  let at = 0
  const unknown = (): string | undefined =>
    expression.includes('|', at) ? undefined : (depth > 0 ? text.slice(0, outermost) : text) + ANYTHING
  while (at < expression.length) {
    const char = expression[at] as string
    if (char === '\\') {
      const read = readEscape(expression, at)
      if (read === undefined) return unknown()
      text += read.text
      at = read.end
      continue
    }
    if (char === '[') {
      const end = endOfSet(expression, at)
      if (end === undefined) return unknown()
      text += '.'
      at = end
      continue
    }
    if (expression.startsWith('(?i)', at)) {
      // Letter case is ignored anyway.
      at += 4
      continue
    }
    if (char === '(') {
      if (!KNOWN_GROUP.test(expression.slice(at, at + 4))) return undefined
      if (depth === 0) outermost = text.length
      depth += 1
    }
    if (char === ')') depth -= 1
    if (depth < 0) return undefined
    text += char
    at += 1
  }
  return depth === 0 ? text : undefined
}

/** What an escape stands for, and where it ends; undefined when that is not known. */
function readEscape(from: string, start: number): { text: string; end: number } | undefined {
  const rest = from.slice(start + 1, start + 20)
  const next = rest[0] ?? ''
  if (next === 'Q') {
    const close = from.indexOf('\\E', start + 2)
    const quoted = from.slice(start + 2, close < 0 ? undefined : close)
    return { text: [...quoted].map(asText).join(''), end: close < 0 ? from.length : close + 2 }
  }
  if (next === 'E') return { text: '', end: start + 2 }
  const [whole, ...codes] = CODE.exec(rest) ?? []
  if (whole !== undefined) {
    const digits = codes.find(one => one !== undefined) ?? ''
    const code = Number.parseInt(digits, whole.startsWith('x') ? 16 : 8)
    if (code > ASCII_MOST) return undefined
    return { text: asText(String.fromCharCode(code)), end: start + 1 + whole.length }
  }
  if (NO_TEXT.test(rest)) return { text: '.', end: start + 2 }
  if (next === '' || /[a-z0-9]/i.test(next) || next > '~') return undefined
  return { text: asText(next), end: start + 2 }
}

const asText = (char: string): string => (PLAIN.test(char) || char > '~' ? char : `\\${char}`)

/** The end of a set; undefined where the programs differ on it, as with a set within a set. */
function endOfSet(text: string, start: number): number | undefined {
  let at = start + 1
  if (text[at] === '^') at += 1
  if (text[at] === ']') at += 1
  for (; at < text.length; at++) {
    const char = text[at]
    if (char === ']') return at + 1
    if (char === '[') {
      const named = /^\[:\^?[a-z]+:\]/.exec(text.slice(at, at + 16))
      if (named === null) return undefined
      at += named[0].length - 1
    } else if (char === '\\') {
      if (/[QEc]/.test(text[at + 1] ?? '')) return undefined
      at += 1
    }
  }
  return undefined
}
