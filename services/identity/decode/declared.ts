/** JSON values with their types: only what the table declares is kept (rules 6, 8, 11). */

import { isJsonObject, type JsonObject, JsonTextError, type JsonValue, parseJson } from '../../json.js'
import { type FormField, itemField, MAX_ITEMS } from '../schema/field.js'
import { type FieldError, INEXACT, MAX_ERRORS, TOO_LARGE } from './messages.js'

/** Collects problems; null takes the place of a failed value so that no other value moves. */
export class Problems {
  readonly errors: FieldError[] = []

  add(path: string, code: string, message: string): null {
    if (this.errors.length < MAX_ERRORS) this.errors.push({ path, code, message })
    return null
  }
}

/** Parses JSON text sent in a field; undefined after reporting why it cannot be read. */
export function decodeProblem(text: string, path: string, problems: Problems): JsonValue | undefined {
  try {
    return parseJson(text)
  } catch (error) {
    if (!(error instanceof JsonTextError)) throw error
    problems.add(path, error.code, `This ${error.message}.`)
    return undefined
  }
}

/**
 * A copy of `value` with the properties that `field` declares, or with all of them where the schema allows further
 * properties.
 */
export function keepDeclared(
  field: FormField | undefined,
  value: JsonValue,
  path: string,
  problems: Problems,
): JsonValue {
  if (Array.isArray(value)) {
    const items = field?.kind === 'array' ? field : undefined
    if (value.length > MAX_ITEMS) return problems.add(path, 'too_many_items', `Give at most ${MAX_ITEMS}.`)
    return value.map((item, index) =>
      keepDeclared(items && itemField(items, index), item, items ? `${path}.${index}` : path, problems),
    )
  }
  if (isJsonObject(value)) {
    // Where no object belongs, nothing is dropped: the validator rejects it or accepts it as a fixed value.
    const declared = field?.kind === 'object' ? field : undefined
    const copy: JsonObject = {}
    for (const [name, inner] of Object.entries(value)) {
      const child = declared?.children.get(name)
      // Problems below an undeclared property name the last declared place, never a name that the client chose.
      if (child) copy[name] = keepDeclared(child, inner, `${path}.${name}`, problems)
      else if (!declared || declared.open) copy[name] = keepDeclared(undefined, inner, path, problems)
    }
    return copy
  }
  // JSON.parse reads 1e400 as Infinity, which JSON cannot represent.
  if (typeof value === 'number' && !Number.isFinite(value)) {
    return problems.add(path, 'type', TOO_LARGE)
  }
  const whole = field?.scalars.has('integer') && !field.scalars.has('number')
  if (whole && Number.isInteger(value) && !Number.isSafeInteger(value)) {
    return problems.add(path, 'type', INEXACT)
  }
  return value
}
