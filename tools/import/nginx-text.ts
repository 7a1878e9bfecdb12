/** nginx's configuration language: directives, words and blocks, and what they include (nginx.org, 'Configuration file's structure'). */
import { readdirSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { quoted } from '../../config/sentences.js'
import type { Position } from '../../config/yaml.js'
import { Unusable } from '../command.js'
import type { Findings } from './findings.js'

/** One directive; `block` if it contains others. */
export interface Directive extends Position {
  readonly name: string
  readonly words: readonly string[]
  /** Set when it is not the file given to the command. */
  readonly file?: string | undefined
  readonly block: Block | undefined
}

export type Block = readonly Directive[]

export const named = (block: Block, name: string): Directive[] => block.filter(one => one.name === name)

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

interface Token extends Position {
  readonly text: string
  /** True for `;`, `{` and `}`; quoted ones are words. */
  readonly isMark: boolean
}

const DEEPEST = 64

/** @param file the file of the text, if not the one given to the command. @throws {NginxFault} */
export function parseNginx(text: string, file?: string): Directive[] {
  const tokens = tokensOf(text, file)
  let at = 0
  const block = (depth: number): Directive[] => {
    const directives: Directive[] = []
    for (let first = tokens[at]; first !== undefined; first = tokens[at]) {
      if (first.isMark && first.text === '}' && depth > 0) break
      if (first.isMark) throw new NginxFault(`"${first.text}" stands where a directive should.`, first, file)
      if (depth > DEEPEST) throw new NginxFault(`Nested deeper than ${DEEPEST} levels.`, first, file)
      directives.push(directive(first, depth))
    }
    return directives
  }
  const directive = (first: Token, depth: number): Directive => {
    const { text: name, line, col } = first
    const words: string[] = []
    let token = tokens[++at]
    for (; token !== undefined && !token.isMark; token = tokens[++at]) words.push(token.text)
    if (token === undefined || token.text === '}')
      throw new NginxFault(`"${quoted(name)}" does not end with ";" or a block.`, token ?? first, file)
    at += 1
    const inner = token.text === ';' ? undefined : block(depth + 1)
    if (inner !== undefined && at++ >= tokens.length)
      throw new NginxFault(`The block of "${quoted(name)}" is not closed.`, first, file)
    return { name, words, line, col, file, block: inner }
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
    for (let i = within.indexOf('\n'); i >= 0; i = within.indexOf('\n', i + 1)) {
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
    if (char === '\\' || (char === '$' && text[at + 1] === '{')) at += 2
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

/** Reads files for `include`. */
export interface FileReader {
  /** The file given to the command. */
  readonly path: string
  /** @throws {Unusable} when the file cannot be read */
  read(file: string): string
}

const MOST_FILES = 1000
/** Files that nginx is delivered with, in which nothing is guarded. */
const HARMLESS = /(?:^|\/)(?:mime\.types|(?:fastcgi|uwsgi|scgi|proxy)_params|fastcgi\.conf|koi-\w+|win-utf)$/

/**
 * The directives with those of included files (ngx_core_module, 'include'); an `include` that cannot be read stays.
 *
 * @throws {NginxFault} if an included file is not valid
 */
export function withIncluded(directives: Block, main: FileReader, into: Findings): Directive[] {
  let files = 0
  const expand = (block: Block, within: readonly string[]): Directive[] =>
    block.flatMap(one => {
      if (one.name === 'include') return included(one, within)
      return one.block === undefined ? one : { ...one, block: expand(one.block, within) }
    })
  const included = (one: Directive, within: readonly string[]): Directive[] => {
    const [pattern = ''] = one.words
    const leftOut = (why: string): void => into.leftOut(one, `"include ${pattern}". ${why}`)
    // Relative to the main file, wherever the directive is.
    const found = matching(resolve(dirname(main.path), pattern))
    if (found.length === 0) leftOut('There is no such file here.')
    const unread = HARMLESS.test(pattern) ? [] : [one]
    return found.flatMap(file => {
      files += 1
      if (within.includes(file) || files > MOST_FILES) {
        leftOut('It includes itself, or too many files.')
        return unread
      }
      try {
        return expand(parseNginx(main.read(file), file), [...within, file])
      } catch (error) {
        if (!(error instanceof Unusable)) throw error
        leftOut(error.message)
        return unread
      }
    })
  }
  return expand(directives, [resolve(main.path)])
}

/** Files that match a path with `*` and `?`; the path itself when it contains neither. */
function matching(path: string): string[] {
  let found = ['/']
  for (const part of path.split('/').filter(text => text !== '')) {
    const isFixed = !/[*?]/.test(part)
    const inFolder = (folder: string): string[] =>
      isFixed ? [part] : namesIn(folder).filter(name => name[0] !== '.' && fits(name, part))
    found = found.flatMap(folder => inFolder(folder).map(name => join(folder, name)))
  }
  return found
}

/** True if `name` is one of those that `shape` stands for. Goes back to the last `*` alone, which is enough. */
function fits(name: string, shape: string): boolean {
  let at = 0
  let star = -1
  /** Where the text that the last `*` stands for ends. */
  let end = 0
  for (let i = 0; i < name.length; ) {
    if (shape[at] === '*') {
      star = at
      at += 1
      end = i
    } else if (shape[at] === '?' || shape[at] === name[i]) {
      at += 1
      i += 1
    } else if (star >= 0) {
      at = star + 1
      end += 1
      i = end
    } else return false
  }
  return shape.slice(at).replaceAll('*', '') === ''
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder).sort()
  } catch {
    return []
  }
}
