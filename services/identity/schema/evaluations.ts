/**
 * Limits the work that a schema causes for one value. Two references to one definition double it, and in a recursive
 * schema they double it again on every level, so that a small document would keep the validator busy for years.
 */
import { isJsonObject, type JsonObject, type JsonValue, MAX_JSON_DEPTH, own } from '../../json.js'
import { inPlace, type SchemaDocument, SchemaError } from './document.js'
import { list } from './fragments.js'

/** Most parts of a schema that may apply to one value, each counted as often as it applies. */
const MAX_PARTS = 1000
/** Most places that differ in the parts that apply to them. */
const MAX_PLACES = 5000
/** Stands for every name that a schema does not declare. */
const OTHER_NAMES = '.*'

/** Schemas, and how often each applies to the same value. */
type Parts = ReadonlyMap<JsonObject, number>
type Counted = readonly (readonly [JsonObject, number])[]

/** Refuses a schema that would check one value too often, at any depth a document may have. Throws SchemaError. */
export function refuseCostly(document: SchemaDocument): void {
  const withInner = new Map<JsonObject, Parts>()
  const numbers = new Map<JsonObject, number>()
  const seen = new Set<string>()

  /** Everything that applies to a value to which `schemas` apply. */
  function together(schemas: Counted, place: string): Parts {
    const parts = new Map<JsonObject, number>()
    let total = 0
    for (const [schema, times] of schemas) {
      for (const [part, each] of expanded(schema, place)) {
        total += times * each
        if (total > MAX_PARTS) {
          throw new SchemaError(
            `${place}: more than ${MAX_PARTS} parts of the schema apply to one value; refer to each definition once`,
          )
        }
        parts.set(part, (parts.get(part) ?? 0) + times * each)
      }
    }
    return parts
  }

  function expanded(schema: JsonObject, place: string): Parts {
    const known = withInner.get(schema)
    if (known) return known
    const inner = inPlace(schema, document.resolve).filter(isJsonObject)
    const parts = new Map(
      together(
        inner.map(part => [part, 1]),
        place,
      ),
    ).set(schema, 1)
    withInner.set(schema, parts)
    return parts
  }

  function isNew(parts: Parts): boolean {
    const key = [...parts]
      .map(([schema, times]) => {
        const number = numbers.get(schema) ?? numbers.size
        numbers.set(schema, number)
        return `${number}x${times}`
      })
      .sort()
      .join()
    if (seen.has(key)) return false
    seen.add(key)
    if (seen.size > MAX_PLACES) {
      throw new SchemaError(`the schema describes more than ${MAX_PLACES} different places; make it smaller`)
    }
    return true
  }

  let level = [{ place: '#', parts: together([[document.root, 1]], '#') }]
  for (let depth = 0; depth < MAX_JSON_DEPTH && level.length > 0; depth++) {
    level = level
      .flatMap(({ place, parts }) => [...inside(parts, document)].map(step => ({ place, step })))
      .map(({ place, step: [name, schemas] }) => ({
        place: place + name,
        parts: together(schemas, place + name),
      }))
      .filter(({ parts }) => isNew(parts))
  }
}

/** The schemas that apply one level further down, by property or position. */
function inside(parts: Parts, document: SchemaDocument): ReadonlyMap<string, Counted> {
  const found = new Map<string, [JsonObject, number][]>()
  const add = (step: string, schema: JsonValue | undefined, times: number) => {
    if (!isJsonObject(schema)) return
    const there = found.get(step)
    if (there) there.push([schema, times])
    else found.set(step, [[schema, times]])
  }
  const names = new Set([...parts.keys()].flatMap(schema => Object.keys(objectAt(schema, 'properties'))))
  const positions = Math.max(0, ...[...parts.keys()].map(schema => list(schema, 'items').length))
  for (const [schema, times] of parts) {
    const properties = objectAt(schema, 'properties')
    const patterns = Object.entries(objectAt(schema, 'patternProperties'))
    const additional = own(schema, 'additionalProperties')
    const more = patterns.length > 0 || isJsonObject(additional)
    for (const name of more ? names : Object.keys(properties)) {
      const matching = patterns.filter(([source]) => document.patterns.get(source)?.test(name))
      for (const [, inner] of matching) add(`.${name}`, inner, times)
      if (Object.hasOwn(properties, name)) add(`.${name}`, properties[name], times)
      else if (matching.length === 0) add(`.${name}`, additional, times)
    }
    for (const [, inner] of patterns) add(OTHER_NAMES, inner, times)
    add(OTHER_NAMES, additional, times)
    const items = own(schema, 'items')
    for (let at = 0; at <= positions; at++) {
      const item = Array.isArray(items) ? (items[at] ?? own(schema, 'additionalItems')) : items
      add(`[${at}]`, item, times)
      add(`[${at}]`, own(schema, 'contains'), times)
    }
    add('', own(schema, 'propertyNames'), times)
  }
  return found
}

function objectAt(schema: JsonObject, key: string): JsonObject {
  const value = own(schema, key)
  return isJsonObject(value) ? value : {}
}
