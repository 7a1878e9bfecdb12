import { isJsonObject } from '../../json.js'
import type { JsonObject, JsonValue, ResourceType } from '../model.js'
import { ScimError } from './error.js'
import type { AttributePath } from './filter.js'
import { type Filter, parseAttributePath, parseFilter } from './filter.js'
import { attributeValue } from './json.js'
import { isExact } from './match.js'

/** The parameters of a list (RFC 7644, section 3.4.2), from the query of a GET or the body of a search. */
export interface ListParameters {
  readonly filter?: string | undefined
  readonly sortBy?: string | undefined
  readonly sortOrder?: string | undefined
  readonly startIndex?: number | undefined
  readonly count?: number | undefined
  readonly attributes?: readonly string[] | undefined
  readonly excludedAttributes?: readonly string[] | undefined
}

/** A parsed list query with the window of the results that is wanted: `start` counts from 1. */
export interface SearchQuery {
  readonly filter: Filter | undefined
  readonly order: Order | undefined
  readonly start: number
  readonly count: number
}

const defaultCount = 100
/** Most resources in one response; a larger `count` gets this many. */
export const maxCount = 200

/** Parses a list query for resources of a type. Throws 400. */
export function readQuestion(asked: ListParameters, type: ResourceType): SearchQuery {
  const { filter: text = '', startIndex = 1, count = defaultCount } = asked
  const filter = text.trim() === '' ? undefined : parseFilter(text)
  if (filter && type === 'user' && asksForGroups(filter)) {
    const detail = 'Users cannot be searched by group: read the group, or search /Groups by members.'
    throw new ScimError(400, detail, 'invalidFilter')
  }
  return {
    filter,
    order: readOrder(asked),
    start: Math.max(1, startIndex),
    count: Math.min(maxCount, Math.max(0, count)),
  }
}

function readOrder({ sortBy = '', sortOrder = '' }: ListParameters): Order | undefined {
  if (!/^(ascending|descending)?$/i.test(sortOrder)) {
    throw new ScimError(400, 'sortOrder must be ascending or descending.', 'invalidValue')
  }
  if (sortBy.trim() === '') return undefined
  return { path: parseAttributePath(sortBy.trim()), descending: sortOrder.toLowerCase() === 'descending' }
}

function asksForGroups(filter: Filter): boolean {
  switch (filter.kind) {
    case 'and':
    case 'or':
      return filter.filters.some(asksForGroups)
    case 'not':
      return asksForGroups(filter.filter)
    default:
      return filter.path[0]?.toLowerCase() === 'groups'
  }
}

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
    value = isJsonObject(value) ? attributeValue(value, name) : undefined
  }
  value = preferred(value)
  if (isJsonObject(value)) value = preferred(attributeValue(value, 'value'))
  if (typeof value === 'number') return value
  if (value === undefined || value === null || typeof value === 'object') return undefined
  return isExact(path.at(-1) ?? '') ? String(value) : String(value).toLowerCase()
}

const preferred = (value: JsonValue | undefined): JsonValue | undefined =>
  Array.isArray(value) ? (value.find(item => isJsonObject(item) && item.primary === true) ?? value[0]) : value

/** Compares two keys: missing values come last in ascending, first in descending order. Equal keys keep their order. */
export function compareKeys(a: SortKey, b: SortKey, descending: boolean): number {
  const upward = a === b ? 0 : a === undefined ? 1 : b === undefined ? -1 : isBefore(a, b) ? -1 : 1
  return descending ? -upward : upward
}

const isBefore = (a: string | number, b: string | number): boolean =>
  typeof a === typeof b ? a < b : typeof a === 'number'
