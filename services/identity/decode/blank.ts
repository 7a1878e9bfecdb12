/**
 * Finds the places of a form that were left blank. The parser leaves their rows out, and the form that is shown again
 * numbers its rows in the same way, so that an error appears in the row it refers to (docs/forms.md).
 */

import type { JsonValue } from '../../json.js'
import { type FormField, itemField } from '../schema/field.js'

/** What was sent for one place of the table, and below it. */
export interface Given {
  readonly texts: readonly string[]
  readonly inner: ReadonlyMap<string | number, Given>
  /** Typed values, and whether a file was sent: neither is ever blank. */
  readonly values?: readonly JsonValue[]
  readonly file?: boolean
}

/**
 * True when this place was not filled in. Unticked checkboxes send `false`, which must not create an object that would
 * then lack required values.
 */
export function isLeftBlank(field: FormField | undefined, given: Given): boolean {
  if (given.file || given.values?.length || given.texts.some(text => text !== '')) return false
  const filled = new Map(
    [...given.inner].filter(([key, inner]) => !isLeftBlank(field && fieldBelow(field, key), inner)),
  )
  if (filled.size === 0) return true
  if (!field || !requiredKeys(field).some(key => isLacking(field, key, given, filled))) return false
  return [...filled].every(([key, inner]) => isUnticked(fieldBelow(field, key), inner))
}

/**
 * The rows of an array in order of position. Blank rows are left out, but in a tuple every position up to the last
 * filled one, or up to `minItems`, has its own meaning and keeps its place; undefined where nothing was sent for it.
 */
export function arrangeRows<Row extends Given>(
  array: FormField,
  rows: ReadonlyMap<string | number, Row>,
): (Row | undefined)[] {
  if (isLeftBlank(array, { texts: [], inner: rows })) return []
  const filled = [...rows]
    .map(([position, row]) => ({ position: Number(position), row }))
    .filter(({ position, row }) => !isLeftBlank(itemField(array, position), row))
    .sort((a, b) => a.position - b.position)
  const last = filled.at(-1)?.position ?? -1
  const fixed = Math.min(Math.max(last + 1, array.display.minItems ?? 0), array.tuple.length)
  return [
    ...Array.from({ length: fixed }, (_, position) => rows.get(position)),
    ...filled.filter(({ position }) => position >= fixed).map(({ row }) => row),
  ]
}

function fieldBelow(field: FormField, key: string | number): FormField | undefined {
  return typeof key === 'number' ? itemField(field, key) : field.children.get(key)
}

function requiredKeys(field: FormField): (string | number)[] {
  return field.kind === 'array' ? [...field.tuple.keys()] : [...field.required]
}

/** True when `key` has no value: it was not sent, or it is blank and blank means no value there. */
function isLacking(
  field: FormField,
  key: string | number,
  given: Given,
  filled: ReadonlyMap<string | number, Given>,
): boolean {
  if (filled.has(key)) return false
  const below = fieldBelow(field, key)
  const takesBlank =
    below?.nullable || below?.kind === 'array' || below?.choices?.some(({ value }) => value === '')
  return !(takesBlank && given.inner.has(key))
}

function isUnticked(field: FormField | undefined, given: Given): boolean {
  const isBoolean = field?.scalars.has('boolean') || field?.choices?.some(({ value }) => value === false)
  return (
    isBoolean === true && !given.values?.length && given.texts.every(text => text === '' || text === 'false')
  )
}
