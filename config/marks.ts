/**
 * Positions of a document's values in its text, as a tree of the same shape, so that a look-up costs only its depth.
 */
import type { Path } from './problem.js'

export class Mark {
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
