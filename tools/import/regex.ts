/** What a path must begin with, or hold, to match a regular expression of another gateway whose paths are to stay closed. */

export interface PathLiteral {
  readonly kind: 'prefix' | 'contains'
  readonly path: string
}

const MOST_LITERALS = 50
const LONGEST = 1000
const EVERYTHING: PathLiteral[] = [{ kind: 'prefix', path: '/' }]

/**
 * Literals of which every matching path has one: closing their paths closes at least what the expression matched. `/`
 * alone, which closes everything, when none can be found.
 */
export function literalsOf(expression: string): PathLiteral[] {
  const text = expression.length > LONGEST ? undefined : regexText(expression)
  const found = text === undefined ? undefined : alternativesOf(text).flatMap(literalOf)
  if (found === undefined || found.length === 0 || found.length > MOST_LITERALS) return EVERYTHING
  return found.some(one => one.path === '' || one.path === '/') ? EVERYTHING : found
}

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
const PLAIN = /[\w/@~%&=:,; -]/

/**
 * One spelling of the regular expressions of PCRE, RE2 and Rust, in which what is not known to be text is never taken for
 * text: text as itself, characters with a meaning behind a backslash, and `.` for sets and classes. It ends with `.*`
 * where the rest cannot be known; undefined when nothing of it can.
 */
function regexText(expression: string): string | undefined {
  let text = ''
  /** Where the group around it begins that is in no other: what is in an unfinished group is not known either. */
  let outermost = 0
  let depth = 0
  let at = 0
  while (at < expression.length) {
    const char = expression[at] as string
    if (char === '\\' || char === '[') {
      const end = char === '[' ? endOfSet(expression, at) : undefined
      const read =
        char === '\\' ? readEscape(expression, at) : end === undefined ? undefined : { text: '.', end }
      if (read === undefined) {
        if (expression.includes('|', at)) return undefined
        return (depth > 0 ? text.slice(0, outermost) : text) + ANYTHING
      }
      text += read.text
      at = read.end
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

function alternativesOf(text: string): string[] {
  const parts: string[] = []
  let depth = 0
  let begin = 0
  for (let at = 0; at < text.length; at++) {
    const char = text[at]
    if (char === '\\') at += 1
    else if (char === '(') depth += 1
    else if (char === ')') depth -= 1
    else if (char === '|' && depth === 0) {
      parts.push(text.slice(begin, at))
      begin = at + 1
    }
  }
  return [...parts, text.slice(begin)]
}

/** After what need not be there. */
const OPTIONAL = /^(?:[?*{]|\+[*{])/

/** The longest run of plain characters, with the words of a group of plain alternatives. */
function literalOf(text: string): PathLiteral[] {
  const isAnchored = text.startsWith('^')
  const runs: string[][] = []
  let run = ['']
  const end = (): void => {
    runs.push(run)
    run = ['']
  }
  for (let at = isAnchored ? 1 : 0; at < text.length; at++) {
    const char = text[at] as string
    if (char === '(') {
      const close = endOfGroup(text, at)
      const words = wordsOf(text.slice(at + 1, close - 1))
      const isOptional = OPTIONAL.test(text.slice(close, close + 2))
      if (words === undefined || isOptional || run.length * words.length > MOST_LITERALS) end()
      else run = run.flatMap(head => words.map(word => head + word))
      if (words !== undefined && text[close] === '+') end()
      at = close - 1
      continue
    }
    const plain = char === '\\' ? text[at + 1] : PLAIN.test(char) ? char : undefined
    if (char === '\\') at += 1
    const next = text.slice(at + 1, at + 3)
    if (plain === undefined || OPTIONAL.test(next)) {
      end()
      if (char === '{') at += (/^\{[\d, ]*\}/.exec(text.slice(at))?.[0].length ?? 1) - 1
      continue
    }
    run = run.map(head => head + plain)
    if (next[0] === '+') end()
  }
  end()
  const [first = []] = runs
  const isUsable = (one: string[]): boolean => one.every(word => word.length > 1)
  if (isAnchored && isUsable(first)) return first.map(path => ({ kind: 'prefix', path }))
  const [best] = runs.filter(isUsable).sort((a, b) => shortest(b) - shortest(a))
  return best === undefined ? EVERYTHING : best.map(path => ({ kind: 'contains', path }))
}

const shortest = (words: readonly string[]): number => Math.min(...words.map(word => word.length))

function endOfGroup(text: string, start: number): number {
  let depth = 0
  for (let at = start; at < text.length; at++) {
    if (text[at] === '\\') at += 1
    else if (text[at] === '(') depth += 1
    else if (text[at] === ')' && --depth === 0) return at + 1
  }
  return text.length
}

/** The words of `a|b`, or of `?:a|b`; undefined for anything that is not plain. */
function wordsOf(group: string): string[] | undefined {
  const words = group
    .replace(/^\?:/, '')
    .split('|')
    .map(word => word.replace(/\\([./-])/g, '$1'))
  return words.every(word => /^[\w/.-]+$/.test(word)) && !/(?<!\\)\./.test(group) ? words : undefined
}
