import { limits } from '../limits.js'
import type { JsonValue } from '../model.js'
import { ScimError } from './error.js'
import { isObject } from './json.js'

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
    } else if (isObject(each)) {
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
