/** What a path must begin with, or hold, to match the regular expression of a location that is to stay closed. */
import { PLAIN, regexText } from './regex-text.js'

export interface Literal {
  readonly kind: 'prefix' | 'contains'
  readonly path: string
}

const MOST_LITERALS = 50
const LONGEST = 1000
/** After what need not be there. */
const OPTIONAL = /^(?:[?*{]|\+[*{])/

/**
 * Literals of which every matching path has one: closing their paths closes at least what the expression matched. `/`
 * alone, which closes everything, when none can be found.
 */
export function literalsOf(expression: string): Literal[] {
  const text = expression.length > LONGEST ? undefined : regexText(expression)
  const found = text === undefined ? undefined : alternativesOf(text).flatMap(literalOf)
  if (found === undefined || found.length === 0 || found.length > MOST_LITERALS) return EVERYTHING
  return found.some(one => one.path === '' || one.path === '/') ? EVERYTHING : found
}

const EVERYTHING: Literal[] = [{ kind: 'prefix', path: '/' }]

/** The parts between the `|` outside of all groups. */
function alternativesOf(text: string): string[] {
  const parts = ['']
  let depth = 0
  for (let at = 0; at < text.length; at++) {
    const char = text[at] as string
    if (char === '\\') {
      parts.push(`${parts.pop()}${char}${text[at + 1] ?? ''}`)
      at += 1
      continue
    }
    if (char === '(') depth += 1
    if (char === ')') depth -= 1
    if (char === '|' && depth === 0) parts.push('')
    else parts.push(`${parts.pop()}${char}`)
  }
  return parts
}

/** The longest run of plain characters, with the words of a group of plain alternatives. */
function literalOf(text: string): Literal[] {
  const isAnchored = text.startsWith('^')
  const runs: string[][] = []
  let run = ['']
  let isFirst = true
  let first: string[] | undefined
  const end = (): void => {
    if (isFirst) first = run
    isFirst = false
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
  const isUsable = (one: string[]): boolean => one.every(word => word.length > 1)
  if (isAnchored && first !== undefined && isUsable(first))
    return first.map(path => ({ kind: 'prefix', path }))
  const best = runs.filter(isUsable).sort((a, b) => shortest(b) - shortest(a))[0]
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
