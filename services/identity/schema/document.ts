/** Loads an identity schema: the checks that need no knowledge of forms (docs/forms.md). */

import { isJsonObject, type JsonObject, type JsonValue, own, parseJson } from '../../json.js'
import { markDiscriminator } from './discriminators.js'
import { Effort, LinearPattern } from './pattern.js'

/** A schema that cannot be used. The message says where the problem is and what to do. */
export class SchemaError extends Error {}

const MAX_SCHEMA_BYTES = 1024 * 1024
/** Longest chain of schemas that apply to the same value. */
const MAX_CHAIN = 100
const DRAFT_07 = /^https?:\/\/json-schema\.org\/draft-07\/schema#?$/

const LISTS = ['allOf', 'anyOf', 'oneOf'] as const
const MAPS = ['properties', 'patternProperties', 'definitions', '$defs', 'dependencies'] as const
const SINGLES = ['additionalItems', 'additionalProperties', 'contains', 'propertyNames'] as const
/**
 * Keywords with one schema that applies to the same value; those of LISTS, `$ref` and `dependencies` have such schemas
 * too.
 */
const IN_PLACE = ['if', 'then', 'else', 'not'] as const

/** A checked schema: every reference resolves inside it and every pattern runs in linear time. */
export interface SchemaDocument {
  readonly root: JsonObject
  readonly patterns: ReadonlyMap<string, LinearPattern>
  /** Limits the work of all patterns together for one document. */
  readonly effort: Effort
  /** The schema that a `$ref` refers to. */
  resolve(reference: string): JsonValue
}

/** Loads a draft-07 schema. Throws SchemaError. */
export function loadDocument(schema: unknown): SchemaDocument {
  const root = ownSchema(schema)
  const dialect = own(root, '$schema')
  if (dialect !== undefined && (typeof dialect !== 'string' || !DRAFT_07.test(dialect))) {
    throw new SchemaError(
      '$schema: only draft-07 is understood; write "http://json-schema.org/draft-07/schema#"',
    )
  }
  // The validator knows the dialect by one spelling only, and assumes it when none is named.
  delete root.$schema
  // Not a draft-07 keyword, but it makes the validator answer with a promise, which counts as valid.
  delete root.$async
  const anchors = new Map<string, JsonObject>()
  const patterns = new Map<string, LinearPattern>()
  const effort = new Effort()
  const resolve = (reference: string) => resolveReference(root, anchors, reference)
  const seen = new Set<JsonObject>()

  function visit(value: JsonValue | undefined, where: string): void {
    if (!isJsonObject(value) || seen.has(value)) return
    seen.add(value)
    collectAnchor(value, where)
    checkPatterns(value, where)
    for (const [child, place] of subschemas(value)) visit(child, `${where}/${place}`)
  }

  function collectAnchor(schema: JsonObject, where: string): void {
    const id = own(schema, '$id')
    if (id === undefined || schema === root) return
    if (typeof id !== 'string' || !id.startsWith('#')) {
      throw new SchemaError(`${where}: $id inside a schema must be a plain name such as "#name"`)
    }
    anchors.set(id, schema)
  }

  function checkPatterns(schema: JsonObject, where: string): void {
    const keyed = own(schema, 'patternProperties')
    const single = own(schema, 'pattern')
    const sources = [
      ...(single === undefined ? [] : [single]),
      ...(isJsonObject(keyed) ? Object.keys(keyed) : []),
    ]
    for (const source of sources) {
      if (typeof source !== 'string') throw new SchemaError(`${where}: pattern must be a string`)
      try {
        if (!patterns.has(source)) patterns.set(source, new LinearPattern(source, effort))
      } catch (error) {
        throw new SchemaError(`${where}: the pattern ${(error as Error).message}; write it without that`)
      }
    }
  }

  visit(root, '#')
  for (const schema of seen) {
    const reference = own(schema, '$ref')
    if (reference === undefined) continue
    if (typeof reference !== 'string' || !reference.startsWith('#')) {
      throw new SchemaError(
        `$ref ${JSON.stringify(reference)} must start with "#": only this document is read`,
      )
    }
    visit(resolve(reference), reference)
  }
  refuseEndlessReferences(seen, resolve)
  for (const schema of seen) markDiscriminator(schema, resolve)
  return { root, patterns, effort, resolve }
}

/** A deep copy with own properties only, so that the caller cannot change a compiled schema. */
function ownSchema(schema: unknown): JsonObject {
  let text: string
  try {
    text = JSON.stringify(schema) ?? ''
  } catch {
    throw new SchemaError('the schema is not a JSON document')
  }
  if (Buffer.byteLength(text) > MAX_SCHEMA_BYTES) throw new SchemaError('the schema is larger than 1 MiB')
  if (text.includes('"__proto__":')) {
    throw new SchemaError('a property cannot be called "__proto__"; rename it')
  }
  let root: JsonValue
  try {
    root = parseJson(text)
  } catch (error) {
    throw new SchemaError(`the schema ${(error as Error).message}`)
  }
  if (!isJsonObject(root)) throw new SchemaError('the schema must be a JSON object')
  return root
}

/** Every schema directly inside `schema`, with its place. Data such as enum, const and default is not a schema. */
function subschemas(schema: JsonObject): [JsonValue, string][] {
  const found: [JsonValue, string][] = []
  for (const key of LISTS) {
    const list = own(schema, key)
    if (Array.isArray(list)) for (const [index, item] of list.entries()) found.push([item, `${key}/${index}`])
  }
  for (const key of MAPS) {
    const map = own(schema, key)
    if (isJsonObject(map))
      for (const name of Object.keys(map)) found.push([map[name] as JsonValue, `${key}/${name}`])
  }
  for (const key of [...SINGLES, ...IN_PLACE]) {
    const single = own(schema, key)
    if (single !== undefined) found.push([single, key])
  }
  const items = own(schema, 'items')
  if (Array.isArray(items)) for (const [index, item] of items.entries()) found.push([item, `items/${index}`])
  else if (items !== undefined) found.push([items, 'items'])
  return found
}

function resolveReference(root: JsonObject, anchors: Map<string, JsonObject>, reference: string): JsonValue {
  const unresolved = new SchemaError(`$ref ${JSON.stringify(reference)} points to nothing in this document`)
  if (reference === '#') return root
  const anchored = anchors.get(reference)
  if (anchored) return anchored
  if (!reference.startsWith('#/')) throw unresolved
  let value: JsonValue = root
  for (const segment of reference.slice(2).split('/')) {
    let key: string
    try {
      key = decodeURIComponent(segment).replaceAll('~1', '/').replaceAll('~0', '~')
    } catch {
      throw unresolved
    }
    const next: JsonValue | undefined = Array.isArray(value)
      ? value[Number(/^\d+$/.test(key) ? key : -1)]
      : isJsonObject(value)
        ? own(value, key)
        : undefined
    if (next === undefined) throw unresolved
    value = next
  }
  if (!isJsonObject(value) && typeof value !== 'boolean') throw unresolved
  return value
}

/** Every schema that applies to the same value as `schema` does. */
export function inPlace(schema: JsonObject, resolve: SchemaDocument['resolve']): JsonValue[] {
  const reference = own(schema, '$ref')
  const dependencies = own(schema, 'dependencies')
  const lists = LISTS.map(key => own(schema, key)).filter(list => Array.isArray(list))
  return [
    ...(typeof reference === 'string' ? [resolve(reference)] : []),
    ...lists.flat(),
    ...IN_PLACE.map(key => own(schema, key) ?? true),
    ...(isJsonObject(dependencies) ? Object.values(dependencies) : []),
  ]
}

/** Refuses references that come back to themselves without going one property deeper: they would never end. */
function refuseEndlessReferences(schemas: Set<JsonObject>, resolve: SchemaDocument['resolve']): void {
  const heights = new Map<JsonObject, number>()
  const open = new Set<JsonObject>()
  /** Length of the longest chain of schemas from here. */
  function follow(schema: JsonObject): number {
    const known = heights.get(schema)
    if (open.has(schema)) throw new SchemaError('a chain of $ref leads back to itself; break the cycle')
    if (open.size + (known ?? 1) > MAX_CHAIN)
      throw new SchemaError(`a chain of $ref is longer than ${MAX_CHAIN} steps; shorten it`)
    if (known !== undefined) return known
    open.add(schema)
    const height = 1 + Math.max(0, ...inPlace(schema, resolve).filter(isJsonObject).map(follow))
    open.delete(schema)
    heights.set(schema, height)
    return height
  }
  for (const schema of schemas) follow(schema)
}
