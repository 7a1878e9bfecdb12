/** nginx's configuration language: directives, words and blocks (nginx.org, 'Configuration file's structure'). */

import type { Position } from '../../config/yaml.js'

/** One directive; `block` if it contains others. */
export interface Directive {
  readonly name: string
  readonly words: readonly string[]
  readonly line: number
  readonly col: number
  /** Set when it is not the file given to the command. */
  readonly file?: string | undefined
  readonly block: readonly Directive[] | undefined
}

/** A fault in the text that nginx would not accept either, with its place. */
export class NginxFault extends Error {
  readonly line: number
  readonly col: number
  readonly file: string | undefined

  constructor(message: string, { line, col }: Position, file: string | undefined) {
    super(message)
    this.line = line
    this.col = col
    this.file = file
  }
}

interface Token {
  readonly text: string
  /** True for `;`, `{` and `}`; quoted ones are words. */
  readonly isMark: boolean
  readonly line: number
  readonly col: number
}

const DEEPEST = 64
/** White space, a comment, a quoted word, a mark, or a plain word, in which `${` opens no block. */
const LEXEME =
  /(\s+)|(#[^\n]*)|"((?:[^"\\]|\\[\s\S])*)"|'((?:[^'\\]|\\[\s\S])*)'|([;{}])|((?!["'])(?:\\[\s\S]|\$\{[^}\s]*\}|[^\s;{}])+)/y

/** @param file the file of the text, if not the one given to the command. @throws {NginxFault} */
export function parseNginx(text: string, file?: string): Directive[] {
  const tokens = tokensOf(text, file)
  let at = 0
  const last = (): Token =>
    tokens[Math.min(at, tokens.length - 1)] ?? { text: '', isMark: false, line: 1, col: 1 }

  const block = (depth: number): Directive[] => {
    const directives: Directive[] = []
    while (at < tokens.length) {
      const first = tokens[at] as Token
      if (first.isMark && first.text === '}' && depth > 0) break
      if (first.isMark) throw new NginxFault(`"${first.text}" stands where a directive should.`, first, file)
      if (depth > DEEPEST) throw new NginxFault(`Nested deeper than ${DEEPEST} levels.`, first, file)
      directives.push(directive(first, depth))
    }
    return directives
  }
  const directive = (first: Token, depth: number): Directive => {
    const words: string[] = []
    for (at += 1; at < tokens.length; at++) {
      const token = tokens[at] as Token
      if (!token.isMark) {
        words.push(token.text)
        continue
      }
      if (token.text === '}') break
      at += 1
      const { text: name, line, col } = first
      if (token.text === ';') return { name, words, line, col, file, block: undefined }
      const inner = block(depth + 1)
      if (at >= tokens.length) throw new NginxFault(`The block of "${name}" is not closed.`, first, file)
      at += 1
      return { name, words, line, col, file, block: inner }
    }
    throw new NginxFault(
      `"${first.text}" does not end with ";" or a block.`,
      at < tokens.length ? last() : first,
      file,
    )
  }
  return block(0)
}

function tokensOf(text: string, file: string | undefined): Token[] {
  const tokens: Token[] = []
  let line = 1
  let lineStart = 0
  LEXEME.lastIndex = 0
  for (let offset = 0; offset < text.length; offset = LEXEME.lastIndex) {
    const place = { line, col: offset - lineStart + 1 }
    const [whole, blank, comment, double, single, mark, word] = LEXEME.exec(text) ?? []
    if (whole === undefined) throw new NginxFault('A quoted text does not end.', place, file)
    const quoted = double ?? single
    const unescaped = quoted?.replace(/\\(["'\\])/g, '$1') ?? mark ?? word
    if (blank === undefined && comment === undefined && unescaped !== undefined) {
      tokens.push({ text: unescaped, isMark: mark !== undefined, ...place })
    }
    for (let i = whole.indexOf('\n'); i !== -1; i = whole.indexOf('\n', i + 1)) {
      line += 1
      lineStart = offset + i + 1
    }
  }
  return tokens
}
