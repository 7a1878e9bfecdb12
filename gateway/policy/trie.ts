/**
 * Finds patterns by walking a request's path one segment at a time.
 * At each node it looks at no more than a literal, a parameter and a `*`, however many patterns there are; where several of
 * them lead on, the less specific ones are tried only when the more specific find nothing.
 */
import type { Pattern, Segment } from './pattern.js'

export interface Found<T> {
  readonly value: T
  /** The pattern's text, the bounded `route` of logs. */
  readonly route: string
}

/** What stands at one path: an answer per method, and one for any method. */
class Leaf<T> {
  readonly methods = new Map<string, Found<T>>()
  anyMethod: Found<T> | undefined

  /** Method beats no method; HEAD counts as GET unless it is listed. */
  find(method: string): Found<T> | undefined {
    if (this.methods.size > 0) {
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

class Node<T> {
  readonly literals = new Map<string, Node<T>>()
  parameter: Node<T> | undefined
  any: Node<T> | undefined
  /** Patterns that end here. */
  end: Leaf<T> | undefined
  /** Patterns that end in `**` here. */
  rest: Leaf<T> | undefined
}

export class PathTrie<T> {
  readonly #root = new Node<T>()

  /** Adds a pattern; returns the one already there when the two are equally specific (a tie), and then adds nothing. */
  add(pattern: Pattern, value: T): Found<T> | undefined {
    let node = this.#root
    let leaf: Leaf<T> | undefined
    for (const segment of pattern.segments) {
      if (segment.kind === 'rest') {
        node.rest ??= new Leaf<T>()
        leaf = node.rest
      } else {
        node = childFor(node, segment)
      }
    }
    if (leaf === undefined) {
      node.end ??= new Leaf<T>()
      leaf = node.end
    }
    const present = pattern.method === undefined ? leaf.anyMethod : leaf.methods.get(pattern.method)
    if (present !== undefined) return present
    const found = { value, route: pattern.text }
    if (pattern.method === undefined) leaf.anyMethod = found
    else leaf.methods.set(pattern.method, found)
    return undefined
  }

  /** The most specific pattern: literal beats parameter beats `*` beats `**`, compared from the left. */
  find(method: string, path: string): Found<T> | undefined {
    return search(this.#root, segmentsOf(path), 0, method)
  }

  /** Every pattern that matches, with and without a method, most specific first. */
  findAll(method: string, path: string): Found<T>[] {
    const found: Found<T>[] = []
    search(this.#root, segmentsOf(path), 0, method, found)
    return found
  }
}

/** The segments of a normal path; a trailing slash is ignored. */
export function segmentsOf(path: string): string[] {
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
  const literal = node.literals.get(segments[at] as string)
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
  const byMethod = leaf.methods.get(method)
  if (byMethod !== undefined) all.push(byMethod)
  if (leaf.anyMethod !== undefined) all.push(leaf.anyMethod)
  return undefined
}
