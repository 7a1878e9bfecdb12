/** One YAML 1.2 document as plain data, with the place of every value. With `yaml-text.ts` the only user of package `yaml`. */
import { type Document, isAlias, isMap, isScalar, isSeq, LineCounter, type ParsedNode } from 'yaml'
import type { Expanded } from './environment.js'
import type { Path, UnplacedProblem } from './problem.js'
import {
  compose,
  MAX_ALIASES,
  MAX_DEPTH,
  mistakeAmong,
  TOO_DEEP,
  TOO_MANY_ALIASES,
  TooMuch,
} from './yaml-text.js'

const MAX_ALIASED_NODES = 10_000
const MAX_SYNTAX_FAULTS = 10
/** Keys that would read or write an object's prototype in some consumer. */
export const UNSAFE_KEYS = new Set(['__proto__', 'constructor', 'prototype'])

export interface Position {
  readonly line: number
  readonly col: number
}

/** A fault in the text itself, with its position. */
export interface TextFault extends UnplacedProblem, Position {}

export interface YamlFile {
  /** Plain data; undefined when the text is not one well-formed document. Not reliable when there are faults. */
  readonly data: unknown
  readonly faults: readonly TextFault[]
  /** The place of the value at `path`, of its key when `atKey`, or of its nearest ancestor in the document. */
  locate(path: Path, atKey?: boolean): Position
  /** The environment variables that the value at `path` came from: messages must not quote it. */
  variablesOf(path: Path): readonly string[]
}

/**
 * Parses strictly: one document, no duplicate keys, no unknown tags, limited depth and aliases; warnings are errors.
 */
export function parseYaml(text: string, expand: (scalar: string, path: Path) => Expanded): YamlFile {
  const lines = new LineCounter()
  lines.addNewLine(0)
  for (let i = text.indexOf('\n'); i !== -1; i = text.indexOf('\n', i + 1)) lines.addNewLine(i + 1)
  const position = (offset: number): Position => lines.linePos(offset)
  const reader = new Reader(expand)
  const faults = reader.read(text)
  return {
    data: reader.data,
    faults: faults.map(({ offset, ...fault }) => ({ ...fault, ...position(offset) })),
    locate: (path, atKey = false) => {
      const mark = reader.marks.nearest(path)
      return position(atKey ? mark.key : mark.value)
    },
    variablesOf: path => {
      const mark = reader.marks.nearest(path)
      return mark.depth === path.length ? mark.variables : []
    },
  }
}

/** Position of a value in the text, in a tree of the document's shape, so that a look-up costs only its depth. */
class Mark {
  /** Offset of the value's key; for a list item, of the list. */
  readonly key: number
  /** Offset of the value; for an alias, of the value it refers to. */
  value: number
  readonly depth: number
  /** Environment variables that the value came from. */
  variables: readonly string[] = []
  readonly #parent: Mark | undefined
  readonly #name: string | number
  #parts: Map<string, Mark> | undefined

  constructor(key: number, value: number, parent?: Mark, name: string | number = '') {
    this.key = key
    this.value = value
    this.depth = parent === undefined ? 0 : parent.depth + 1
    this.#parent = parent
    this.#name = name
    if (parent !== undefined) {
      parent.#parts ??= new Map()
      parent.#parts.set(String(name), this)
    }
  }

  /** Keys and list positions from the root. */
  get path(): Path {
    const path: (string | number)[] = []
    for (let mark: Mark = this; mark.#parent !== undefined; mark = mark.#parent) path.push(mark.#name)
    return path.reverse()
  }

  /** The mark at `path` below this one, or else its nearest ancestor in the document. */
  nearest(path: Path): Mark {
    let mark: Mark = this
    for (const part of path) {
      const next = mark.#parts?.get(String(part))
      if (next === undefined) return mark
      mark = next
    }
    return mark
  }
}

type OffsetFault = UnplacedProblem & { readonly offset: number }

class Reader {
  data: unknown
  marks = new Mark(0, 0)
  readonly #expand: (scalar: string, path: Path) => Expanded
  readonly #faults: OffsetFault[] = []
  #document: Document.Parsed | undefined
  #aliases = 0
  #aliasedNodes = 0
  #insideAlias = false
  /** The lists and maps that contain the current value. */
  readonly #around = new Set<unknown>()

  constructor(expand: (scalar: string, path: Path) => Expanded) {
    this.#expand = expand
  }

  read(text: string): readonly OffsetFault[] {
    let documents: Document.Parsed[]
    try {
      documents = compose(text)
    } catch (error) {
      if (!(error instanceof TooMuch)) throw error
      return [{ path: [], offset: error.offset, message: error.message }]
    }
    const [document, second] = documents
    if (document === undefined) return [{ path: [], offset: 0, message: 'The file is empty.' }]
    const offsets = document.errors.map(({ pos }) => pos[0])
    const mistake = mistakeAmong(offsets, text)
    for (const { pos, message } of [...document.errors, ...document.warnings]) {
      // Errors after the mistake are only its consequences.
      if (mistake !== undefined && pos[0] >= mistake.offset) continue
      // Further errors at the same place, or after many others, only repeat the first.
      if (this.#faults.length === MAX_SYNTAX_FAULTS || this.#faults.at(-1)?.offset === pos[0]) continue
      this.#fault(pos[0], [], `Not well-formed YAML: ${sentence(message)}`)
    }
    if (mistake !== undefined) this.#fault(mistake.offset, [], mistake.message)
    if (document.directives.yaml.explicit && document.directives.yaml.version !== '1.2') {
      this.#fault(0, [], 'Only YAML 1.2 is read. Remove the %YAML directive.')
    }
    if (second !== undefined) {
      this.#fault(second.range[0], [], 'A file holds one document. Move what follows "---" to its own file.')
    }
    if (this.#faults.length > 0) return this.#faults
    this.#document = document
    this.marks = this.#markOf(document.contents, 0)
    this.data = this.#value(document.contents, this.marks)
    // The data is plain by now: the parsed tree can be garbage-collected.
    this.#document = undefined
    return this.#faults
  }

  #fault(offset: number, path: Path, message: string): void {
    this.#faults.push({ offset, path, message })
  }

  #markOf(node: ParsedNode | null, keyOffset: number, parent?: Mark, name?: string | number): Mark {
    // Inside an alias the marks point at the anchored text, which is where the operator must look.
    return new Mark(keyOffset, node?.range[0] ?? keyOffset, parent, name)
  }

  #value(node: ParsedNode | null, mark: Mark): unknown {
    if (mark.depth > MAX_DEPTH) return this.#fault(mark.value, mark.path, TOO_DEEP)
    if (this.#insideAlias && ++this.#aliasedNodes > MAX_ALIASED_NODES) {
      if (this.#aliasedNodes === MAX_ALIASED_NODES + 1) {
        const message = `Aliases stand for more than ${MAX_ALIASED_NODES} values. Write them out.`
        this.#fault(mark.value, mark.path, message)
      }
      return undefined
    }
    if (isAlias(node)) return this.#alias(node, mark)
    if (isMap<ParsedNode, ParsedNode | null>(node) || isSeq<ParsedNode>(node)) {
      this.#around.add(node)
      const data = isMap<ParsedNode, ParsedNode | null>(node)
        ? this.#map(node.items, mark)
        : node.items.map((item, i) => this.#value(item, this.#markOf(item, mark.value, mark, i)))
      this.#around.delete(node)
      return data
    }
    const scalar = isScalar(node) ? node.value : null
    return typeof scalar === 'string' && scalar.includes('${') ? this.#reference(scalar, mark) : scalar
  }

  #map(pairs: readonly { key: ParsedNode; value: ParsedNode | null }[], mark: Mark): Record<string, unknown> {
    const data: Record<string, unknown> = {}
    for (const { key, value } of pairs) {
      const offset = key.range[0]
      const name = isScalar(key) ? key.value : undefined
      if (typeof name !== 'string') this.#fault(offset, mark.path, 'A key must be text. Put it in quotes.')
      else if (UNSAFE_KEYS.has(name)) this.#fault(offset, mark.path, `The key "${name}" is not allowed.`)
      else if (Object.hasOwn(data, name)) {
        this.#fault(offset, [...mark.path, name], `The key "${name}" is written twice.`)
      } else data[name] = this.#value(value, this.#markOf(value, offset, mark, name))
    }
    return data
  }

  /** Each alias gets its own copy, because validation changes values in place and must not change one twice. */
  #alias(node: Extract<ParsedNode, { source: string; resolve: unknown }>, mark: Mark): unknown {
    this.#aliases += 1
    if (this.#aliases > MAX_ALIASES) {
      if (this.#aliases === MAX_ALIASES + 1) this.#fault(mark.value, mark.path, TOO_MANY_ALIASES)
      return undefined
    }
    const target = this.#document && node.resolve(this.#document)
    if (target === undefined) {
      return this.#fault(mark.value, mark.path, `No anchor &${node.source} stands before this alias.`)
    }
    if (this.#around.has(target)) {
      return this.#fault(mark.value, mark.path, `The alias *${node.source} stands inside its own anchor.`)
    }
    const outer = this.#insideAlias
    this.#insideAlias = true
    mark.value = (target as ParsedNode).range[0]
    const value = this.#value(target as ParsedNode, mark)
    this.#insideAlias = outer
    return value
  }

  #reference(scalar: string, mark: Mark): unknown {
    const expanded = this.#expand(scalar, mark.path)
    if ('fault' in expanded) return this.#fault(mark.value, mark.path, expanded.fault)
    mark.variables = expanded.variables ?? []
    return expanded.value
  }
}

const sentence = (text: string): string => (/[.?!]$/.test(text) ? text : `${text}.`)
