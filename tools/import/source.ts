/** A YAML file of another gateway, read together with the place of every value. */
import type { Path } from '../../config/problem.js'
import { parseYaml, type YamlFile } from '../../config/yaml.js'
import type { Migration } from './migration.js'
import type { Origin } from './parts.js'
import { nodeOf } from './servers.js'

/** A map in the file, and its place. */
export class Section {
  readonly node: Readonly<Record<string, unknown>>
  readonly #path: Path
  readonly #file: YamlFile

  constructor(file: YamlFile, path: Path, value: unknown) {
    this.#file = file
    this.#path = path
    this.node = nodeOf(value)
  }

  /** The place of a member's key, or of the map itself. */
  at(key?: string): Origin {
    const path = key === undefined ? this.#path : [...this.#path, key]
    return { ...this.#file.locate(path, key !== undefined), path }
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

  /** The members that are maps themselves, by name. */
  members(): [string, Section][] {
    return Object.keys(this.node).map(key => [key, this.section(key)])
  }

  text(key: string): string | undefined {
    const value = this.node[key]
    return typeof value === 'string' || typeof value === 'number' ? String(value) : undefined
  }

  number(key: string): number | undefined {
    const value = this.node[key]
    return typeof value === 'number' ? value : undefined
  }

  /** The texts in the list at `key`. */
  texts(key: string): string[] {
    const value = this.node[key]
    return Array.isArray(value) ? value.map(String) : []
  }

  /** Reports every member that is not `known`. */
  others(known: readonly string[], into: Migration, reason: string): void {
    for (const key of Object.keys(this.node)) {
      if (!known.includes(key)) into.leftOut(this.at(key), `"${key}". ${reason}`)
    }
  }
}

/** The whole file; undefined, after reporting why, when it is not a YAML map. */
export function readYaml(text: string, into: Migration): Section | undefined {
  // References to environment variables have no meaning here.
  const parsed = parseYaml(text, scalar => ({ value: scalar }))
  for (const { path, message, line, col } of parsed.faults) into.unreadable({ path, line, col }, message)
  if (parsed.faults.length > 0) return undefined
  if (typeof parsed.data === 'object' && parsed.data !== null && !Array.isArray(parsed.data)) {
    return new Section(parsed, [], parsed.data)
  }
  into.unreadable({ line: 1, col: 1 }, 'The file is not a map.')
  return undefined
}
