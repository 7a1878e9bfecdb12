/**
 * The text of a YAML document: read into nodes without going too deep, and what is probably meant where it is not
 * well-formed. Like `yaml.ts` a user of package `yaml`.
 */
import { Composer, CST, type Document, Lexer, Parser } from 'yaml'

export const MAX_DEPTH = 64
export const MAX_ALIASES = 100
export const TOO_DEEP = `Nested deeper than ${MAX_DEPTH} levels.`
export const TOO_MANY_ALIASES = `More than ${MAX_ALIASES} aliases, counting those inside aliased values. Write them out.`

/** Thrown for text that is nested too deeply, or has too many aliases, before anything is made of it. */
export class TooMuch extends Error {
  readonly offset: number

  constructor(message: string, offset: number) {
    super(message)
    this.offset = offset
  }
}

/**
 * Like the package's `parseAllDocuments`, but lexes the text only once, checking its depth and aliases on the
 * way. @throws {TooMuch}
 */
export function compose(text: string): Document.Parsed[] {
  // The package's own check of unique keys takes quadratic time; #map checks them instead.
  const composer = new Composer({ version: '1.2', strict: true, uniqueKeys: false, prettyErrors: false })
  return [...composer.compose(tokensOf(text))]
}

function* tokensOf(text: string): Generator<CST.Token> {
  const parser = new Parser()
  for (const lexeme of boundedLexemes(text)) yield* parser.next(lexeme)
  yield* parser.end()
}

/**
 * Limits the depth: the package's composer recurses, so text nested a hundred thousand levels deep would crash the
 * process. Limits the aliases: hundreds of thousands would take seconds until they are refused.
 */
function* boundedLexemes(text: string): Generator<string> {
  let offset = 0
  let flow = 0
  let indicators = 0
  let aliases = 0
  let lineStart = true
  const indents: number[] = []
  for (const lexeme of new Lexer().lex(text)) {
    const type = CST.tokenType(lexeme)
    if (lineStart) {
      const indent = type === 'space' ? lexeme.length : 0
      while ((indents.at(-1) ?? -1) >= indent) indents.pop()
      indents.push(indent)
    }
    lineStart = type === 'newline'
    switch (type) {
      case 'flow-map-start':
      case 'flow-seq-start':
        flow += 1
        break
      case 'flow-map-end':
      case 'flow-seq-end':
        flow -= 1
        break
      case 'seq-item-ind':
      case 'map-value-ind':
      case 'explicit-key-ind':
        indicators += 1
        break
      case 'alias':
        aliases += 1
        indicators = 0
        if (aliases > MAX_ALIASES) throw new TooMuch(TOO_MANY_ALIASES, offset)
        break
      case 'space':
      case 'anchor':
      case 'tag':
        break
      default:
        indicators = 0
    }
    if (Math.max(flow, indicators, indents.length) > MAX_DEPTH) throw new TooMuch(TOO_DEEP, offset)
    if (!ZERO_WIDTH.has(lexeme)) offset += lexeme.length
    yield lexeme
  }
}

/** Markers that the lexer inserts between tokens; they are not in the text. */
const ZERO_WIDTH = new Set<string>([CST.DOCUMENT, CST.FLOW_END, CST.SCALAR])

const LONGEST_LINE = 1000

/** Frequent mistakes, recognized by the text of the line, and how to correct them. */
const MISTAKES: readonly (readonly [RegExp, (line: number, found: string) => string])[] = [
  [/^ *\t/, line => `Line ${line} begins with a tab. Indent with spaces.`],
  [/[{[,:]\s*(?<found>\$\{[^{}]*\})/, (_line, found) => `Inside { } and [ ] write it in quotes: "${found}".`],
  [/[[,:]\s*\*(?=[\s,\]}]|$)/, () => 'An asterisk needs quotes: "*".'],
]

/** The first of these mistakes that explains a syntax error at one of `offsets`, with the offset of its line. */
export function mistakeAmong(
  offsets: readonly number[],
  text: string,
): { readonly offset: number; readonly message: string } | undefined {
  let [start, end] = [0, -1]
  for (const offset of offsets) {
    // A line may hold a hundred thousand errors, and is read for the first one.
    if (offset >= start && offset <= end) continue
    start = text.lastIndexOf('\n', offset - 1) + 1
    end = text.indexOf('\n', offset)
    if (end === -1) end = text.length
    const line = text.slice(start, start + LONGEST_LINE).split('\n', 1)[0] ?? ''
    for (const [mistake, sentence] of MISTAKES) {
      const found = mistake.exec(line)
      if (found === null) continue
      const number = text.slice(0, start).split('\n').length
      return { offset: start, message: sentence(number, found.groups?.found ?? '') }
    }
  }
  return undefined
}
