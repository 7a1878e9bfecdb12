/** nginx's configuration language: directives, words and blocks (nginx.org, 'Configuration file's structure'). */

import { quoted } from '../../config/sentences.js'
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
      if (at >= tokens.length)
        throw new NginxFault(`The block of "${quoted(name)}" is not closed.`, first, file)
      at += 1
      return { name, words, line, col, file, block: inner }
    }
    throw new NginxFault(
      `"${quoted(first.text)}" does not end with ";" or a block.`,
      at < tokens.length ? last() : first,
      file,
    )
  }
  return block(0)
}

/** One pass over the text, without regular expressions that could look at a part of it twice. */
function tokensOf(text: string, file: string | undefined): Token[] {
  const tokens: Token[] = []
  let line = 1
  let lineStart = 0
  let at = 0
  while (at < text.length) {
    const char = text[at] as string
    if (char === '\n') {
      line += 1
      lineStart = at + 1
    }
    if (isBlank(char)) {
      at += 1
      continue
    }
    if (char === '#') {
      const end = text.indexOf('\n', at)
      at = end < 0 ? text.length : end
      continue
    }
    const place = { line, col: at - lineStart + 1 }
    if (isMark(char)) {
      tokens.push({ text: char, isMark: true, ...place })
      at += 1
      continue
    }
    const isQuoted = char === '"' || char === "'"
    const end = isQuoted ? endOfQuoted(text, at) : endOfWord(text, at)
    if (end === undefined) throw new NginxFault('A quoted text does not end.', place, file)
    const word = isQuoted ? text.slice(at + 1, end - 1) : text.slice(at, end)
    tokens.push({ text: unescaped(word), isMark: false, ...place })
    const within = text.slice(at, end)
    for (let i = within.indexOf('\n'); i !== -1; i = within.indexOf('\n', i + 1)) {
      line += 1
      lineStart = at + i + 1
    }
    at = end
  }
  return tokens
}

/** Quotes and backslashes behind a backslash, and blanks by their letters; other escapes stay for who reads the word. */
const unescaped = (word: string): string =>
  word.replace(/\\(["'\\trn])/g, (_, char: string) => BLANKS[char] ?? char)
const BLANKS: Readonly<Record<string, string>> = { t: '\t', r: '\r', n: '\n' }

function endOfQuoted(text: string, start: number): number | undefined {
  for (let at = start + 1; at < text.length; at++) {
    if (text[at] === '\\') at += 1
    else if (text[at] === text[start]) return at + 1
  }
  return undefined
}

/** In a word, `${` opens no block. */
function endOfWord(text: string, start: number): number {
  let at = start
  while (at < text.length) {
    const char = text[at] as string
    if (char === '\\') at += 2
    else if (char === '$' && text[at + 1] === '{') at += 2
    else if (char === '}' && isOpen(text, start, at)) at += 1
    else if (isBlank(char) || isMark(char)) break
    else at += 1
  }
  return Math.min(at, text.length)
}

/** True when the word from `start` has an open `${`, which is looked for no further back than a variable is long. */
function isOpen(text: string, start: number, at: number): boolean {
  const before = text.slice(Math.max(start, at - LONGEST_VARIABLE), at)
  return before.lastIndexOf('${') > before.lastIndexOf('}')
}

const LONGEST_VARIABLE = 128
const isBlank = (char: string): boolean => char.trim() === ''
const isMark = (char: string): boolean => char === ';' || char === '{' || char === '}'
