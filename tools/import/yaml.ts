/**
 * YAML files: those of another gateway, read with the place of every value, and those that are written, with the place
 * that each entry came from.
 */
import { listed, type Path } from '../../config/problem.js'
import { parseYaml, type YamlFile } from '../../config/yaml.js'
import type { Findings, Origin } from './findings.js'
import { foreignFile, type Members, membersOf } from './programs.js'

/** A file given to the command; `file` is its name if it is not the first one. */
export interface SourceFile {
  readonly text: string
  readonly file?: string
}

export const words = (text: string): string[] => text.split(' ')

export function listUnder<K, V>(map: Map<K, V[]>, key: K, member: V): void {
  const list = map.get(key) ?? []
  map.set(key, list)
  list.push(member)
}

/** A map in the file, and its place. */
export class Section {
  readonly node: Members
  readonly #path: Path
  readonly #yaml: YamlFile
  readonly #name: string | undefined

  /** @param name the name of the file, if it is not the first one */
  constructor(yaml: YamlFile, name: string | undefined, path: Path, value: unknown) {
    this.#yaml = yaml
    this.#name = name
    this.#path = path
    this.node = membersOf(value)
  }

  /** The place of a member's key, or of the map itself. */
  at(key?: string): Origin {
    const path = key === undefined ? this.#path : [...this.#path, key]
    return { ...this.#yaml.locate(path, key !== undefined), path, file: this.#name }
  }

  #inner(value: unknown, ...keys: Path): Section {
    return new Section(this.#yaml, this.#name, [...this.#path, ...keys], value)
  }

  section(key: string): Section {
    return this.#inner(this.node[key], key)
  }

  /** The maps in the list at `key`. */
  list(key: string): Section[] {
    const value = this.node[key]
    return Array.isArray(value) ? value.map((item, i) => this.#inner(item, key, i)) : []
  }

  /** All members by name; one that is no map has no members. */
  members(): [string, Section][] {
    return Object.keys(this.node).map(key => [key, this.section(key)])
  }

  text(key: string): string | undefined {
    const value = this.node[key]
    return typeof value === 'string' || typeof value === 'number' ? String(value) : undefined
  }

  number(key: string): number | undefined {
    const value = this.node[key]
    if (typeof value === 'number') return value
    return typeof value === 'string' && /^\d+(\.\d+)?$/.test(value) ? Number(value) : undefined
  }

  /** The texts in the list at `key`, which Traefik also reads from one text with commas. */
  texts(key: string): string[] {
    const value = this.node[key]
    if (Array.isArray(value)) return value.map(String)
    return commaSeparated(this.text(key) ?? '')
  }

  /** Reports every member that is not one of the `known` words. */
  others(known: readonly string[], into: Findings, reason: string): void {
    for (const key of Object.keys(this.node))
      if (!known.includes(key)) into.leftOut(this.at(key), `"${key}". ${reason}`)
  }
}

export const commaSeparated = (text: string): string[] =>
  text
    .split(',')
    .map(word => word.trim())
    .filter(word => word !== '')

/** References to environment variables have no meaning here. */
export const parseForeign = (text: string): YamlFile => parseYaml(text, scalar => ({ value: scalar }))

/** What a text holds; undefined when it is neither YAML nor JSON. */
export function dataOf(text: string): unknown {
  const { faults, data } = parseForeign(text)
  return faults.length === 0 ? data : undefined
}

/** What a file must be. */
export interface WantedFile {
  readonly format: string
  /** Its name in a sentence, such as `Kong’s declarative configuration`. */
  readonly name: string
  /** It has at least one of these keys. */
  readonly keys: readonly string[]
  /** True where a member that is null is one that is not there. */
  readonly nullIsAbsent?: boolean
}

/** The whole file; undefined, after reporting why, when it is not a YAML map, or of another program. */
export function readYaml(
  { text, file }: SourceFile,
  wanted: WantedFile,
  into: Findings,
): Section | undefined {
  const yaml = parseForeign(text)
  const isSound = yaml.faults.length === 0
  const foreign = foreignFile(wanted.format, wanted.name, text, isSound ? yaml.data : undefined)
  const start = { line: 1, col: 1, file }
  const section = new Section(yaml, file, [], wanted.nullIsAbsent ? withoutNulls(yaml.data) : yaml.data)
  if (foreign !== undefined) into.unreadable(start, foreign)
  else if (!isSound) {
    for (const { path, message, line, col } of yaml.faults)
      into.unreadable({ path, line, col, file }, message)
  } else if (reportMergeKeys(new Section(yaml, file, [], yaml.data), into)) return undefined
  else if (wanted.keys.some(key => key in membersOf(yaml.data))) return section
  else into.unreadable(start, `This is not ${wanted.name}: it has none of ${listed(wanted.keys, 'and')}.`)
  return undefined
}

/** The other programs copy what such a key names, which may be a guard. @returns whether there is one */
function reportMergeKeys(section: Section, into: Findings): boolean {
  let isAny = false
  for (const [key, value] of Object.entries(section.node)) {
    if (key === '<<') {
      const sentence = 'Merge keys ("<<") are not read. Write out here what this one stands for.'
      into.unreadable(section.at(key), sentence)
      isAny = true
      continue
    }
    const inner = Array.isArray(value) ? section.list(key) : [section.section(key)]
    for (const one of inner) if (reportMergeKeys(one, into)) isAny = true
  }
  return isAny
}

function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls)
  if (typeof value !== 'object' || value === null) return value
  const present = Object.entries(value).filter(([, member]) => member !== null)
  return Object.fromEntries(present.map(([key, member]) => [key, withoutNulls(member)]))
}

/** An entry, and the place it came from, which is written above it as a comment. */
export class From {
  readonly place: string
  readonly value: object

  constructor(place: string, value: object) {
    this.place = place
    this.value = value
  }
}

/** Text that YAML reads as the same text without quotes, also between brackets; durations too. */
const PLAIN = /^(?:[A-Za-z/](?:[A-Za-z0-9 ._/*-]*[A-Za-z0-9._/*-])?|\d+(?:ms|s|m|h|d))$/
const NO_TEXT = /^(null|true|false)$/i

/** A whole document, in block style with flow style for lists of words. */
export const yamlText = (document: object): string => `${block(document, '').join('\n')}\n`

function block(value: unknown, pad: string): string[] {
  if (Array.isArray(value)) {
    return value.flatMap(item => {
      const { inner, head } = opened(item, pad)
      if (isFlow(inner)) return [...head, `${pad}- ${flow(inner)}`]
      const [first = '', ...rest] = block(inner, `${pad}  `)
      return [...head, `${pad}- ${first.slice(pad.length + 2)}`, ...rest]
    })
  }
  return Object.entries(value as object).flatMap(([name, member]) => {
    if (member === undefined) return []
    const { inner, head } = opened(member, pad)
    const key = `${pad}${scalar(name)}:`
    return isFlow(inner) ? [...head, `${key} ${flow(inner)}`] : [...head, key, ...block(inner, `${pad}  `)]
  })
}

const opened = (value: unknown, pad: string): { inner: unknown; head: string[] } =>
  value instanceof From
    ? { inner: value.value, head: [`${pad}# ${value.place}`] }
    : { inner: value, head: [] }

/** True for scalars, lists of scalars, and short maps of scalars. */
function isFlow(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return true
  if (value instanceof From || Object.values(value).some(member => typeof member === 'object')) return false
  return Array.isArray(value) || flow(value).length <= 80
}

function flow(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(flow).join(', ')}]`
  if (typeof value !== 'object' || value === null) return scalar(value)
  const pairs = Object.entries(value).filter(([, member]) => member !== undefined)
  const texts = pairs.map(([key, member]) => `${scalar(key)}: ${flow(member)}`)
  return texts.length === 0 ? '{}' : `{ ${texts.join(', ')} }`
}

const scalar = (value: unknown): string =>
  typeof value === 'string' && PLAIN.test(value) && !NO_TEXT.test(value) ? value : JSON.stringify(value)
