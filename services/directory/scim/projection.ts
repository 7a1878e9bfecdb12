import { isJsonObject } from '../../json.js'
import type { JsonObject, JsonValue } from '../model.js'
import { ScimError } from './error.js'
import { parseAttributePath } from './filter.js'

const maxNames = 200

/** Which attributes a response has (RFC 7644, section 3.9). */
export interface Projection {
  /** Whether the attribute or a part of it is returned, provided that it is returned by default. */
  shows(name: string): boolean
  /** Whether the attribute is requested by name. */
  asksFor(name: string): boolean
  apply(resource: JsonObject): JsonObject
}

/** Names in lowercase, from the resource inwards; `true` stands for everything below. */
interface Tree extends Map<string, Tree | true> {}

/** Returned in any case: RFC 7643, section 7 (`returned: always`). */
const always = new Set(['id', 'schemas'])

/** Reads both lists of names; a name in both is left out. Throws 400 invalidPath. */
export function readProjection(
  attributes: readonly string[] | undefined,
  excludedAttributes: readonly string[] | undefined,
): Projection {
  const chosen = attributes && attributes.length > 0 ? treeOf(attributes) : undefined
  const excluded = treeOf(excludedAttributes ?? [])
  const asksFor = (name: string): boolean => chosen?.has(name.toLowerCase()) ?? false
  return {
    asksFor,
    shows: name => excluded.get(name.toLowerCase()) !== true && (chosen === undefined || asksFor(name)),
    apply(resource) {
      const left = excluded.size > 0 ? without(resource, excluded, always) : resource
      return chosen ? only(left as JsonObject, chosen, always) : left
    },
  }
}

function treeOf(names: readonly string[]): Tree {
  if (names.length > maxNames)
    throw new ScimError(400, `More than ${maxNames} attributes are named.`, 'invalidPath')
  const tree: Tree = new Map()
  for (const name of names) {
    add(tree, parseAttributePath(name))
    // The URN of an unknown extension looks like that of an attribute, so it is treated as both.
    if (name.includes(':')) add(tree, [name])
  }
  return tree
}

function add(tree: Tree, path: readonly string[]): void {
  const [name = '', ...rest] = path.map(part => part.toLowerCase())
  const known = tree.get(name)
  if (known === true) return
  if (rest.length === 0) {
    tree.set(name, true)
    return
  }
  const below: Tree = known ?? new Map()
  tree.set(name, below)
  add(below, rest)
}

function only(object: JsonObject, tree: Tree, always: ReadonlySet<string> = none): JsonObject {
  const entries = Object.entries(object).flatMap(([name, value]): [string, JsonValue][] => {
    const below = always.has(name) ? true : tree.get(name.toLowerCase())
    if (below === undefined) return []
    return [[name, below === true ? value : inside(value, item => only(item, below))]]
  })
  return Object.fromEntries(entries)
}

function without(object: JsonObject, tree: Tree, always: ReadonlySet<string> = none): JsonObject {
  const entries = Object.entries(object).flatMap(([name, value]): [string, JsonValue][] => {
    const below = always.has(name) ? undefined : tree.get(name.toLowerCase())
    if (below === true) return []
    return [[name, below ? inside(value, item => without(item, below)) : value]]
  })
  return Object.fromEntries(entries)
}

const none: ReadonlySet<string> = new Set()

/** Applies `change` to an object, or to each object in a list; simple values stay as they are. */
function inside(value: JsonValue, change: (object: JsonObject) => JsonObject): JsonValue {
  if (Array.isArray(value)) return value.map(item => inside(item, change))
  return isJsonObject(value) ? change(value) : value
}
