/** The bucket that an operation of an OpenAPI document belongs to: the one it names, or that of its group. */
import type { Path } from '../../config/problem.js'
import { UNSAFE_KEYS } from '../../config/yaml.js'

/** How operations that name no bucket are grouped. */
export const GROUPINGS = ['tag', 'path', 'operation'] as const
export type Grouping = (typeof GROUPINGS)[number]

export type Node = Readonly<Record<string, unknown>>

export interface Operation {
  readonly method: string
  /** As written in the document. */
  readonly path: string
  readonly item: Node
  readonly operation: Node
  /** The places of the path item and of the operation. */
  readonly itemAt: Path
  readonly at: Path
}

/** A bucket's name, and its place if the document names it. */
export interface Named {
  readonly name: unknown
  readonly at: Path | undefined
}

/** Keys that name a bucket, on an operation or on its path; the first that is present counts. */
export const ANNOTATIONS = ['x-sluice-bucket', 'x-ory-ratelimit-bucket'] as const
const LONGEST_NAME = 64

export class Grouper {
  readonly #by: Grouping | undefined
  readonly #taken = new Map<string, string>()

  constructor(by: Grouping | undefined) {
    this.#by = by
  }

  /** The bucket of an operation; undefined if it belongs to none. */
  bucketOf(one: Operation): Named | undefined {
    const { item, operation, itemAt, at } = one
    for (const [node, where] of [[operation, at] as const, [item, itemAt] as const]) {
      const key = ANNOTATIONS.find(name => node[name] !== undefined)
      if (key !== undefined) return { name: node[key], at: [...where, key] }
    }
    const group = this.#groupOf(one)
    return group === undefined ? undefined : { name: this.#nameOf(group), at: undefined }
  }

  #groupOf({ method, path, operation }: Operation): string | undefined {
    const { tags, operationId } = operation
    if (this.#by === 'tag') return Array.isArray(tags) && tags.length > 0 ? String(tags[0]) : undefined
    if (this.#by === 'path') return path
    if (this.#by === undefined) return undefined
    return typeof operationId === 'string' ? operationId : `${method} ${path}`
  }

  /** Tags with the same plain name share a bucket; two paths or operations never do. */
  #nameOf(group: string): string {
    const plain = plainName(group)
    for (let i = 1; ; i++) {
      const name = i === 1 ? plain : `${plain.slice(0, LONGEST_NAME - 5)}-${i}`
      const owner = this.#taken.get(name) ?? group
      if (owner === group || this.#by === 'tag') {
        this.#taken.set(name, owner)
        return name
      }
    }
  }
}

/** `listItems` → `list-items`, `/items/{id}` → `items-id`. */
export function plainName(text: string): string {
  const words = text
    .replace(/([a-z0-9])([A-Z])/g, '$1-$2')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^[^a-z]+|-$/g, '')
  const name = words.slice(0, LONGEST_NAME).replace(/-$/, '') || 'root'
  return UNSAFE_KEYS.has(name) ? `${name}-bucket` : name
}
