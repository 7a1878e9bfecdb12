/** Parses an ECMAScript pattern into the few node types that a linear-time matcher needs. */

export type Element =
  | { readonly type: 'atom'; readonly test: RegExp }
  | { readonly type: 'assertion'; readonly at: 'start' | 'end' }
  | { readonly type: 'sequence'; readonly parts: readonly Element[] }
  | { readonly type: 'choice'; readonly options: readonly Element[] }
  | { readonly type: 'repeat'; readonly part: Element; readonly min: number; readonly max: number }

const QUANTIFIER = /^(?:[*+?]|\{(\d+)(,(\d*))?\})\??/
/** One escape, as the source of a regular expression. */
export const ESCAPED = String.raw`\\(?:u\{[0-9a-fA-F]+\}|u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|c[a-zA-Z]|[pP]\{[^{}\\]*\}|.)`
const ESCAPE = new RegExp(`^${ESCAPED}`, 'su')
const CLASS = /^\[(?:\\.|[^\]\\])*\]/s
const GROUP = /^\((?:\?:|\?<[\p{ID_Start}$_][\p{ID_Continue}$]*>)?/u
const MAX_COUNT = 1000
const MAX_NESTING = 50

/** Throws an Error with a phrase about what in the pattern cannot be used. */
export function parsePattern(source: string): Element {
  let rest = checked(source)
  let nesting = 0

  function take(length: number): string {
    const taken = rest.slice(0, length)
    rest = rest.slice(length)
    return taken
  }

  function choice(): Element {
    if (++nesting > MAX_NESTING) throw new Error(`nests groups deeper than ${MAX_NESTING}`)
    const options = [sequence()]
    while (rest.startsWith('|')) {
      take(1)
      options.push(sequence())
    }
    nesting--
    return options.length === 1 ? (options[0] as Element) : { type: 'choice', options }
  }

  function sequence(): Element {
    const parts: Element[] = []
    while (rest !== '' && rest[0] !== '|' && rest[0] !== ')') parts.push(quantified(element()))
    return { type: 'sequence', parts }
  }

  function quantified(part: Element): Element {
    const found = QUANTIFIER.exec(rest)
    if (!found) return part
    take(found[0].length)
    const sign = found[0][0]
    if (sign === '*') return { type: 'repeat', part, min: 0, max: Number.POSITIVE_INFINITY }
    if (sign === '+') return { type: 'repeat', part, min: 1, max: Number.POSITIVE_INFINITY }
    if (sign === '?') return { type: 'repeat', part, min: 0, max: 1 }
    const min = Number(found[1])
    const max = !found[2] ? min : found[3] ? Number(found[3]) : Number.POSITIVE_INFINITY
    if (min > MAX_COUNT || (max !== Number.POSITIVE_INFINITY && max > MAX_COUNT)) {
      throw new Error(`counts repetitions beyond ${MAX_COUNT}`)
    }
    return { type: 'repeat', part, min, max }
  }

  function element(): Element {
    if (rest[0] === '^' || rest[0] === '$')
      return { type: 'assertion', at: take(1) === '^' ? 'start' : 'end' }
    if (rest[0] === '(') {
      if (/^\(\?<?[=!]/.test(rest)) throw new Error('uses look-ahead or look-behind')
      const opening = GROUP.exec(rest)?.[0] ?? '('
      if (opening === '(' && rest[1] === '?') throw new Error('uses a group modifier')
      take(opening.length)
      const inner = choice()
      take(1)
      return inner
    }
    if (/^\\[1-9k]/.test(rest)) throw new Error('uses a back reference')
    if (/^\\[bB]/.test(rest)) throw new Error('uses a word boundary')
    const literal = ESCAPE.exec(rest) ?? CLASS.exec(rest)
    const atom = take(literal ? literal[0].length : String.fromCodePoint(rest.codePointAt(0) ?? 0).length)
    return { type: 'atom', test: new RegExp(`^${atom}$`, 'u') }
  }

  return choice()
}

function checked(source: string): string {
  try {
    new RegExp(source, 'u')
    return source
  } catch {
    throw new Error('is not a regular expression')
  }
}
