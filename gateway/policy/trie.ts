/**
 * Finds patterns by walking a request's path one segment at a time. At each node it looks at no more than a literal, a
 * parameter and a `*`, however many patterns there are; if several of them lead on, the less specific ones are tried
 * only when the more specific find nothing.
 */
import type { Facts } from '../types.js'
import { foldPattern, type Pattern, type Segment } from './pattern.js'

export interface Found<T> {
  readonly value: T
  /** The pattern's text, the bounded `route` of logs. */
  readonly route: string
  /** In a tree of folded patterns: another pattern that differs only in letter case. */
  twin?: Found<T>
}

/** The patterns of one path: one per method, and one for any method. */
class Leaf<T> {
  methods: Map<string, Found<T>> | undefined
  anyMethod: Found<T> | undefined

  /** Method beats no method; HEAD counts as GET unless it is listed. */
  find(method: string): Found<T> | undefined {
    if (this.methods !== undefined) {
      const exact = this.methods.get(method)
      if (exact !== undefined) return exact
      if (method === 'HEAD') {
        const get = this.methods.get('GET')
        if (get !== undefined) return get
      }
    }
    return this.anyMethod
  }
}

/** Maps are created on demand: most nodes have only one child. */
class Node<T> {
  literals: Map<string, Node<T>> | undefined
  parameter: Node<T> | undefined
  any: Node<T> | undefined
  /** Patterns that end here. */
  end: Leaf<T> | undefined
  /** Patterns that end in `**` here. */
  rest: Leaf<T> | undefined
}

export class PathTrie<T> {
  readonly #root = new Node<T>()
  readonly #added: { readonly pattern: Pattern; readonly value: T }[] = []
  /** The same patterns in lowercase, made when a request first needs them. */
  #folded: PathTrie<T> | undefined

  /** Adds a pattern; returns the one already there when the two are equally specific (a tie), and then adds nothing. */
  add(pattern: Pattern, value: T): Found<T> | undefined {
    const { method, text: route } = pattern
    const leaf = this.#leafOf(pattern)
    const present = method === undefined ? leaf.anyMethod : leaf.methods?.get(method)
    if (present !== undefined) return present
    const found = { value, route }
    if (method === undefined) leaf.anyMethod = found
    else {
      leaf.methods ??= new Map()
      leaf.methods.set(method, found)
    }
    this.#added.push({ pattern, value })
    this.#folded = undefined
    return undefined
  }

  #leafOf(pattern: Pattern): Leaf<T> {
    let node = this.#root
    for (const segment of pattern.segments) {
      if (segment.kind === 'rest') {
        node.rest ??= new Leaf<T>()
        return node.rest
      }
      node = childFor(node, segment)
    }
    node.end ??= new Leaf<T>()
    return node.end
  }

  /** The most specific pattern: literal beats parameter beats `*` beats `**`, compared from the left. */
  find(method: string, path: string): Found<T> | undefined {
    if (this.#added.length === 0) return undefined
    return search(this.#root, segmentsOf(path), 0, method)
  }

  /** Every pattern that matches, with and without a method, most specific first; for HEAD also those of GET. */
  findAll(method: string, path: string): Found<T>[] {
    const found: Found<T>[] = []
    if (this.#added.length > 0) search(this.#root, segmentsOf(path), 0, method, found)
    return found
  }

  /** As `find`, by the request's folded path if it has one; then the letter case of patterns does not count, either. */
  findFor({ method, path, foldedPath }: Asked): Found<T> | undefined {
    return foldedPath === undefined ? this.find(method, path) : this.folded().find(method, foldedPath)
  }

  /** As `findAll`, by the folded path like `findFor`. */
  findAllFor({ method, path, foldedPath }: Asked): Found<T>[] {
    return foldedPath === undefined ? this.findAll(method, path) : this.folded().findAll(method, foldedPath)
  }

  /** The tree of the same patterns in lowercase. Of patterns that become equal, the first added is found. */
  folded(): PathTrie<T> {
    if (this.#folded !== undefined) return this.#folded
    const folded = new PathTrie<T>()
    for (const { pattern, value } of this.#added) {
      let tie = folded.add(foldPattern(pattern), value)
      while (tie?.twin !== undefined) tie = tie.twin
      if (tie !== undefined) tie.twin = { value, route: pattern.text }
    }
    this.#folded = folded
    return folded
  }
}

type Asked = Pick<Facts, 'method' | 'path' | 'foldedPath'>

/** The last path and its segments: several trees are searched for the same path. */
let lastPath = ''
let lastSegments: readonly string[] = []

/** The segments of a normal path; a trailing slash is ignored. */
export function segmentsOf(path: string): readonly string[] {
  if (path !== lastPath) {
    lastPath = path
    lastSegments = split(path)
  }
  return lastSegments
}

function split(path: string): string[] {
  const end = path.length > 1 && path.endsWith('/') ? path.length - 1 : path.length
  return end <= 1 ? [] : path.slice(1, end).split('/')
}

function childFor<T>(node: Node<T>, segment: Exclude<Segment, { kind: 'rest' }>): Node<T> {
  if (segment.kind === 'parameter') {
    node.parameter ??= new Node<T>()
    return node.parameter
  }
  if (segment.kind === 'any') {
    node.any ??= new Node<T>()
    return node.any
  }
  node.literals ??= new Map()
  let child = node.literals.get(segment.text)
  if (child === undefined) {
    child = new Node<T>()
    node.literals.set(segment.text, child)
  }
  return child
}

/** Depth first in order of specificity; with `all` it gathers every match instead of stopping at the first. */
function search<T>(
  node: Node<T>,
  segments: readonly string[],
  at: number,
  method: string,
  all?: Found<T>[],
): Found<T> | undefined {
  if (at === segments.length) {
    return settle(node.end, method, all) ?? settle(node.rest, method, all)
  }
  const literal = node.literals?.get(segments[at] as string)
  return (
    (literal && search(literal, segments, at + 1, method, all)) ??
    (node.parameter && search(node.parameter, segments, at + 1, method, all)) ??
    (node.any && search(node.any, segments, at + 1, method, all)) ??
    settle(node.rest, method, all)
  )
}

function settle<T>(leaf: Leaf<T> | undefined, method: string, all?: Found<T>[]): Found<T> | undefined {
  if (leaf === undefined) return undefined
  if (all === undefined) return leaf.find(method)
  pushAll(all, leaf.methods?.get(method))
  if (method === 'HEAD') pushAll(all, leaf.methods?.get('GET'))
  pushAll(all, leaf.anyMethod)
  return undefined
}

function pushAll<T>(all: Found<T>[], first: Found<T> | undefined): void {
  for (let found = first; found !== undefined; found = found.twin) all.push(found)
}
