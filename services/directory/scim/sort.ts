import type { JsonObject, JsonValue } from '../model.js'
import type { AttributePath } from './filter.js'
import { attributeValue, isObject } from './json.js'
import { isExact } from './match.js'

export interface Order {
  readonly path: AttributePath
  readonly descending: boolean
}

/** The value a resource is sorted by; undefined when it has none. */
export type SortKey = string | number | undefined

/** The sort key (RFC 7644, section 3.4.2.3): of several values the primary one, else the first. */
export function sortKey(resource: JsonObject, { path }: Order): SortKey {
  let value: JsonValue | undefined = resource
  for (const name of path) {
    value = preferred(value)
    value = isObject(value) ? attributeValue(value, name) : undefined
  }
  value = preferred(value)
  if (isObject(value)) value = preferred(attributeValue(value, 'value'))
  if (typeof value === 'number') return value
  if (value === undefined || value === null || typeof value === 'object') return undefined
  return isExact(path.at(-1) ?? '') ? String(value) : String(value).toLowerCase()
}

const preferred = (value: JsonValue | undefined): JsonValue | undefined =>
  Array.isArray(value) ? (value.find(item => isObject(item) && item.primary === true) ?? value[0]) : value

/** Compares two keys: missing values come last in ascending, first in descending order. Equal keys keep their order. */
export function compareKeys(a: SortKey, b: SortKey, descending: boolean): number {
  const upward = a === b ? 0 : a === undefined ? 1 : b === undefined ? -1 : isBefore(a, b) ? -1 : 1
  return descending ? -upward : upward
}

const isBefore = (a: string | number, b: string | number): boolean =>
  typeof a === typeof b ? a < b : typeof a === 'number'
