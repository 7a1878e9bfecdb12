import { isJsonObject } from '../../json.js'
import { foldLoginName } from '../../login-names.js'
import type { JsonObject, JsonValue } from '../model.js'
import { type AttributePath, comparesTime, type Filter, type FilterLiteral, type Operator } from './filter.js'
import { attributeValue } from './json.js'

/** Attribute names whose values RFC 7643 compares case-sensitively; all others ignore letter case. */
const exactNames = new Set(['id', 'externalid', '$ref', 'location', 'version', 'resourcetype', 'schemas'])
/** Whether values of the attribute with this last name are compared case-sensitively. */
export const isExact = (name: string): boolean => exactNames.has(name.toLowerCase())
/** The form in which two values of an attribute are equal. */
export function folded(name: string, value: string): string {
  if (isExact(name)) return value
  return name.toLowerCase() === 'username' ? foldLoginName(value) : value.toLowerCase()
}

/** Called with the number of values that were looked at; it may throw to end the comparison. */
export type Looked = (values: number) => void

/** Characters that cost about as much to compare as one more value does. */
const longText = 256

/** True when the resource, or one value of a multi-valued attribute, matches the filter. */
export function matches(resource: JsonValue, filter: Filter, looked: Looked = () => undefined): boolean {
  switch (filter.kind) {
    case 'and':
      return filter.filters.every(part => matches(resource, part, looked))
    case 'or':
      return filter.filters.some(part => matches(resource, part, looked))
    case 'not':
      return !matches(resource, filter.filter, looked)
    case 'present':
      return valuesAt(resource, filter.path, looked).some(isPresent)
    case 'some':
      return valuesAt(resource, filter.path, looked).some(value => matches(value, filter.filter, looked))
    case 'compare': {
      const { path, operator, literal } = filter
      const name = path.at(-1)?.toLowerCase() ?? ''
      const values = valuesAt(resource, path, looked).map(simple)
      if (literal === null) return values.some(isPresent) === (operator === 'ne')
      if (operator === 'ne') return !values.some(value => compare(value, 'eq', literal, name))
      return values.some(value => compare(value, operator, literal, name))
    }
  }
}

/** All values at a path; a multi-valued attribute counts with each of its values. */
function valuesAt(value: JsonValue, path: AttributePath, looked: Looked): JsonValue[] {
  looked(typeof value === 'string' ? 1 + Math.floor(value.length / longText) : 1)
  if (Array.isArray(value)) return value.flatMap(item => valuesAt(item, path, looked))
  const [name, ...rest] = path
  if (name === undefined) return [value]
  if (!isJsonObject(value)) return name.toLowerCase() === 'value' && rest.length === 0 ? [value] : []
  const child = attributeValue(value, name)
  return child === undefined ? [] : valuesAt(child, rest, looked)
}

/** A complex value is compared by its `value` (RFC 7644, section 3.4.2.2). */
const simple = (value: JsonValue): JsonValue =>
  isJsonObject(value) ? (attributeValue(value as JsonObject, 'value') ?? null) : value

const isPresent = (value: JsonValue): boolean =>
  value !== null && value !== '' && !(isJsonObject(value) && Object.keys(value).length === 0)

function compare(value: JsonValue, operator: Operator, literal: FilterLiteral, name: string): boolean {
  if (typeof value === 'number' && typeof literal === 'number') return ordered(value, operator, literal)
  if (typeof literal === 'number' || value === null || typeof value === 'object') return false
  if (comparesTime(name, operator)) {
    return ordered(Date.parse(String(value)), operator, Date.parse(String(literal)))
  }
  const fold = (text: string): string => {
    // As for uniqueness: whoever has the name is found.
    if (operator === 'eq') return folded(name, text)
    return isExact(name) ? text : text.toLowerCase()
  }
  const [left, right] = [fold(String(value)), fold(String(literal))]
  switch (operator) {
    case 'co':
      return left.includes(right)
    case 'sw':
      return left.startsWith(right)
    case 'ew':
      return left.endsWith(right)
    default:
      return ordered(left, operator, right)
  }
}

function ordered<T extends string | number>(left: T, operator: Operator, right: T): boolean {
  switch (operator) {
    case 'eq':
      return left === right
    case 'gt':
      return left > right
    case 'ge':
      return left >= right
    case 'lt':
      return left < right
    case 'le':
      return left <= right
    default:
      return false
  }
}
