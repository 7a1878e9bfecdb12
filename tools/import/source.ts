/** A YAML file of another gateway, read together with the place of every value. */
import { listed, type Path } from '../../config/problem.js'
import { parseYaml, type YamlFile } from '../../config/yaml.js'
import type { Migration } from './migration.js'
import type { Origin } from './parts.js'
import { foreignFile } from './programs.js'
import { nodeOf } from './servers.js'

/** A parsed file, and its name if it is not the one given to the command. */
interface Whole {
  readonly yaml: YamlFile
  readonly name: string | undefined
}

/** A map in the file, and its place. */
export class Section {
  readonly node: Readonly<Record<string, unknown>>
  readonly #path: Path
  readonly #file: Whole

  constructor(file: Whole, path: Path, value: unknown) {
    this.#file = file
    this.#path = path
    this.node = nodeOf(value)
  }

  /** The place of a member's key, or of the map itself. */
  at(key?: string): Origin {
    const path = key === undefined ? this.#path : [...this.#path, key]
    return { ...this.#file.yaml.locate(path, key !== undefined), path, file: this.#file.name }
  }

  section(key: string): Section {
    return new Section(this.#file, [...this.#path, key], this.node[key])
  }

  /** The maps in the list at `key`. */
  list(key: string): Section[] {
    const value = this.node[key]
    if (!Array.isArray(value)) return []
    return value.map((item, i) => new Section(this.#file, [...this.#path, key, i], item))
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
    const words = this.text(key)?.split(',') ?? []
    return words.map(word => word.trim()).filter(word => word !== '')
  }

  /** Reports every member that is not `known`. */
  others(known: readonly string[], into: Migration, reason: string): void {
    for (const key of Object.keys(this.node)) {
      if (!known.includes(key)) into.leftOut(this.at(key), `"${key}". ${reason}`)
    }
  }
}

/** References to environment variables have no meaning here. */
const parsed = (text: string): YamlFile => parseYaml(text, scalar => ({ value: scalar }))

/** What a text holds; undefined when it is neither YAML nor JSON. */
export function dataOf(text: string): unknown {
  const { faults, data } = parsed(text)
  return faults.length === 0 ? data : undefined
}

/** What a file must be. */
export interface Wanted {
  readonly format: string
  /** Its name in a sentence, such as `Kong’s declarative configuration`. */
  readonly name: string
  /** It has at least one of these keys. */
  readonly keys: readonly string[]
  /** True where a member that is null is one that is not there. */
  readonly nullIsAbsent?: boolean
}

/** The whole file; undefined, after reporting why, when it is not a YAML map, or of another program. */
export function readYaml(text: string, wanted: Wanted, into: Migration, name?: string): Section | undefined {
  const yaml = parsed(text)
  const isSound = yaml.faults.length === 0
  const foreign = foreignFile(wanted.format, wanted.name, text, isSound ? yaml.data : undefined)
  const start = { line: 1, col: 1, file: name }
  if (foreign !== undefined) into.unreadable(start, foreign)
  else if (!isSound) {
    for (const { path, message, line, col } of yaml.faults) {
      into.unreadable({ path, line, col, file: name }, message)
    }
  } else if (reportMergeKeys(new Section({ yaml, name }, [], yaml.data), into)) return undefined
  else if (wanted.keys.some(key => key in nodeOf(yaml.data)))
    return new Section({ yaml, name }, [], wanted.nullIsAbsent ? withoutNulls(yaml.data) : yaml.data)
  else into.unreadable(start, `This is not ${wanted.name}: it has none of ${listed(wanted.keys, 'and')}.`)
  return undefined
}

/** The other programs copy what such a key names, which may be a guard. @returns whether there is one */
function reportMergeKeys(section: Section, into: Migration): boolean {
  let isAny = false
  for (const [key, value] of Object.entries(section.node)) {
    if (key === '<<') {
      into.unreadable(
        section.at(key),
        'Merge keys ("<<") are not read. Write out here what this one stands for.',
      )
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
