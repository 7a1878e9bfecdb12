/** Where each value of a document stands in its text: a tree like the document itself, so that a look-up costs its depth. */
import type { Path } from './problem.js'

export class Mark {
  /** Offset of the value's key, or of the list that holds it. */
  readonly key: number
  /** Offset of the value; of an alias, of what it stands for. */
  value: number
  readonly depth: number
  /** Variables of the environment that the value came from. */
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

  /** From the root. */
  get path(): Path {
    const path: (string | number)[] = []
    for (let mark: Mark = this; mark.#parent !== undefined; mark = mark.#parent) path.push(mark.#name)
    return path.reverse()
  }

  /** The mark at `path` below this one, or of the nearest parent that is written down. */
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
