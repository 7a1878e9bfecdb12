/** Converts one field's texts to its typed value (docs/forms.md). */

import type { JsonValue } from '../../json.js'
import type { FormField, Scalar } from '../schema/field.js'
import { textOf } from '../schema/fragments.js'
import { INEXACT, TOO_LARGE, typeMessage } from './messages.js'

/** A typed value, none (blank), or an error. */
export type Typed =
  | { readonly value: JsonValue }
  | { readonly absent: true }
  | { readonly code: string; readonly message: string }

const ABSENT: Typed = { absent: true }
const ORDER: readonly Scalar[] = ['boolean', 'integer', 'number', 'string']

/** Types all texts sent under one scalar's name. */
export function typeScalar(field: FormField, texts: readonly string[]): Typed {
  const given = texts.filter(text => text !== '')
  if (given.length === 0) return typeBlank(field)
  if (field.scalars.has('boolean')) {
    const value = checkboxValue(given)
    if (value !== undefined) return { value }
  }
  const [text, ...more] = given as [string, ...string[]]
  if (more.length > 0) return { code: 'duplicate', message: 'This was sent more than once.' }
  return typeText(field, text)
}

function typeText(field: FormField, text: string): Typed {
  const chosen = field.choices?.find(choice => textOf(choice.value) === text && fits(field, choice.value))
  if (chosen) return { value: chosen.value }
  for (const scalar of ORDER) {
    if (!field.scalars.has(scalar)) continue
    const value = convert(scalar, field.localTime?.toStored(text) ?? text)
    if (value !== undefined) return { value }
  }
  if (field.scalars.size === 0) return { code: 'enum', message: 'Choose one of the offered values.' }
  return { code: 'type', message: tooLarge(field, text) ?? typeMessage([...field.scalars]) }
}

/** Blank means "not supplied", unless the schema allows the empty text or null as a value. */
function typeBlank(field: FormField): Typed {
  if (field.choices?.some(({ value }) => value === '')) return { value: '' }
  return field.nullable ? { value: null } : ABSENT
}

function fits(field: FormField, value: JsonValue): boolean {
  if (field.scalars.size === 0) return true
  const type = typeof value as Scalar
  return field.scalars.has(type) || (Number.isInteger(value) && field.scalars.has('integer'))
}

function convert(scalar: Scalar, text: string): JsonValue | undefined {
  switch (scalar) {
    case 'boolean':
      return checkboxValue([text])
    case 'integer':
      return toNumber(text, true)
    case 'number':
      return toNumber(text, false)
    case 'string':
      return text
  }
}

/** A hidden `false` beside a checkbox `true`, in any order: true if any is true. Undefined when a text is neither. */
function checkboxValue(texts: readonly string[]): boolean | undefined {
  let value = false
  for (const text of texts) {
    const word = stripBlanks(text)
    if (word === 'true' || word === 'on') value = true
    else if (word !== 'false') return undefined
  }
  return value
}

/** The message for a number that is well formed but too large to be stored, or to be stored exactly. */
function tooLarge(field: FormField, text: string): string | undefined {
  const found = NUMBER.exec(stripBlanks(text))
  if (!found || !(field.scalars.has('integer') || field.scalars.has('number'))) return undefined
  if (!Number.isFinite(Number(found[0]))) return TOO_LARGE
  const fraction = found[2] ?? found[3] ?? ''
  const isWhole = isWholeNumber(found[1] ?? '', fraction, Number(found[4] ?? 0))
  return isWhole && found[4] === undefined && !Number.isSafeInteger(Number(found[0])) ? INEXACT : undefined
}

const NUMBER = /^[+-]?(?:(\d+)(?:\.(\d+))?|\.(\d+))(?:[eE]([+-]?\d+))?$/

/**
 * A decimal number exactly as written; undefined when it is not a number, overflows, or cannot be stored without
 * rounding.
 */
function toNumber(text: string, whole: boolean): number | undefined {
  const found = NUMBER.exec(stripBlanks(text))
  if (!found) return undefined
  const value = Number(found[0])
  if (!Number.isFinite(value)) return undefined
  const isWhole = isWholeNumber(found[1] ?? '', found[2] ?? found[3] ?? '', Number(found[4] ?? 0))
  if (whole && !isWhole) return undefined
  if (isWhole && found[4] === undefined && !Number.isSafeInteger(value)) return undefined
  return value === 0 ? 0 : value
}

/** Decided by the digits: as a double, 9007199254740991.4 would be whole. */
function isWholeNumber(integer: string, fraction: string, exponent: number): boolean {
  const digits = integer + fraction
  let end = digits.length
  while (end > 0 && digits[end - 1] === '0') end--
  return end === 0 || end <= integer.length + exponent
}

/** Without ASCII white space at both ends (Infra standard). */
function stripBlanks(text: string): string {
  const blank = (at: number) => '\t\n\f\r '.includes(text.charAt(at))
  let start = 0
  let end = text.length
  while (start < end && blank(start)) start++
  while (end > start && blank(end - 1)) end--
  return text.slice(start, end)
}
