import { isJsonObject } from '../../json.js'
import { limits } from '../limits.js'
import type { JsonObject, JsonValue } from '../model.js'
import { ScimError } from './error.js'

const forbiddenNames = new Set(['__proto__', 'constructor', 'prototype'])

/** Refuses attribute names through which a write could reach an object's prototype. */
export function checkName(name: string): void {
  if (forbiddenNames.has(name.toLowerCase())) {
    throw new ScimError(400, `The attribute name "${name}" is not allowed.`, 'invalidPath')
  }
}

/**
 * A copy of parsed JSON that is safe to store: no forbidden names, no password at any level, no null (RFC 7643,
 * section 2.5: null is the same as absent), bounded depth. `keepNull` is for PATCH values, where null means removal.
 */
export function clean(value: unknown, keepNull = false, depth = 0): JsonValue {
  if (depth > limits.bodyDepth) {
    throw new ScimError(400, `The body is nested deeper than ${limits.bodyDepth}.`, 'invalidSyntax')
  }
  if (Array.isArray(value)) {
    return value.filter(item => item !== null).map(item => clean(item, keepNull, depth + 1))
  }
  if (!isJsonObject(value)) return value as JsonValue
  const copy: JsonObject = {}
  for (const [name, item] of Object.entries(value)) {
    checkName(name)
    if (isPassword(name) || (item === null && !keepNull)) continue
    copy[name] = clean(item, keepNull, depth + 1)
  }
  return copy
}

/** True for `password`, alone or as the end of a dotted or URN name. */
export const isPassword = (name: string): boolean => /(^|[.:])password$/i.test(name.trim())

/** The object's own key that equals `name` apart from letter case. */
export function keyOf(object: JsonObject, name: string): string | undefined {
  if (Object.hasOwn(object, name)) return name
  const folded = name.toLowerCase()
  return Object.keys(object).find(key => key.toLowerCase() === folded)
}

/** The value of an own key, in any letter case. */
export function attributeValue(object: JsonObject, name: string): JsonValue | undefined {
  const key = keyOf(object, name)
  return key === undefined ? undefined : object[key]
}

/**
 * The number of values in a resource or a part of one. Throws 413, or 400 invalidValue, as soon as a limit is
 * exceeded, so that far too large a value costs no more than one just too large.
 */
export function countValues(value: JsonValue): number {
  let count = 0
  let bytes = 0

  function take(text: string): void {
    bytes += Buffer.byteLength(text) + 1
    if (bytes > limits.resourceBytes) {
      throw new ScimError(413, `A user or group may have at most ${limits.resourceBytes} bytes of JSON.`)
    }
  }
  function walk(each: JsonValue): void {
    count++
    if (Array.isArray(each)) {
      if (each.length > limits.valuesPerList) throw tooMany('values in a list', limits.valuesPerList)
      take('[]')
      for (const item of each) walk(item)
    } else if (isJsonObject(each)) {
      const entries = Object.entries(each)
      if (entries.length > limits.attributesPerObject) {
        throw tooMany('attributes in an object', limits.attributesPerObject)
      }
      take('{}')
      for (const [name, item] of entries) {
        take(JSON.stringify(name))
        walk(item)
      }
    } else take(JSON.stringify(each))
  }

  walk(value)
  return count
}

const tooMany = (what: string, limit: number): ScimError =>
  new ScimError(400, `A user or group may have at most ${limit} ${what}.`, 'invalidValue')
