/** JSON values as own data properties only, with bounds on depth (docs/forms.md). */

export type JsonValue = string | number | boolean | null | JsonValue[] | JsonObject
export interface JsonObject {
  [key: string]: JsonValue
}

export type JsonType = 'string' | 'number' | 'boolean' | 'null' | 'object' | 'array'

/** Deepest nesting accepted in any JSON text. */
export const MAX_JSON_DEPTH = 64

/** Why a JSON text was refused; the text itself is never part of the message. */
export class JsonTextError extends Error {
  readonly code: 'malformed' | 'too_deep'
  constructor(code: 'malformed' | 'too_deep') {
    super(code === 'malformed' ? 'is not well-formed JSON' : `is nested deeper than ${MAX_JSON_DEPTH} levels`)
    this.code = code
  }
}

/** The JSON type of a value; numbers are not split into integers. */
export function jsonType(value: JsonValue): JsonType {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  return typeof value as JsonType
}

/** True for a JSON object, false for arrays and null. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A property only if it is the object's own: `constructor` and the like are never inherited. */
export function own(object: JsonObject, key: string): JsonValue | undefined {
  return Object.hasOwn(object, key) ? object[key] : undefined
}

/** Reads JSON text; keys called `__proto__` are dropped. Throws JsonTextError. */
export function parseJson(text: string): JsonValue {
  let value: JsonValue
  try {
    value = JSON.parse(text) as JsonValue
  } catch {
    throw new JsonTextError('malformed')
  }
  clean(value, 1)
  return value
}

/** In place: a copy of a large document would cost more than reading it. */
function clean(value: JsonValue, depth: number): void {
  if (typeof value !== 'object' || value === null) return
  if (depth > MAX_JSON_DEPTH) throw new JsonTextError('too_deep')
  if (Array.isArray(value)) {
    for (const item of value) clean(item, depth + 1)
    return
  }
  // JSON.parse makes it an own property; deleting it leaves the normal prototype.
  if (Object.hasOwn(value, '__proto__')) Reflect.deleteProperty(value, '__proto__')
  for (const key of Object.keys(value)) clean(value[key] as JsonValue, depth + 1)
}
