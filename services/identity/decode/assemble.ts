/**
 * Builds the typed document from entries: where each value goes, and which objects and arrays exist (rules 7 to 12).
 */
import { isJsonObject, type JsonObject, JsonTextError, type JsonValue, own, parseJson } from '../../json.js'
import { type FormField, findPath, itemField, MAX_ITEMS, MAX_SEGMENTS } from '../schema/field.js'
import { arrangeRows, type Given, isLeftBlank } from './blank.js'
import type { FormEntry } from './decode.js'
import {
  type FieldError,
  INEXACT,
  MAX_ERRORS,
  TOO_DEEP,
  TOO_LARGE,
  typeMessage,
  validationMessage,
} from './messages.js'
import { typeScalar } from './type.js'

/** What was sent for one place of the table. Created only for names in the table. */
interface Slot extends Given {
  readonly field: FormField
  readonly texts: string[]
  readonly values: JsonValue[]
  file: boolean
  readonly inner: Map<string | number, Slot>
}

/**
 * Builds `traits`, an object of own data properties, and reports every problem on the way. A change of `stored` traits
 * may contain less than they require.
 */
export function assembleTraits(
  root: FormField,
  entries: readonly FormEntry[],
  problems: Problems,
  stored?: JsonObject,
): JsonValue {
  const document = newSlot(root)
  for (const entry of entries) place(document, entry)
  const traits = document.inner.get('traits')
  const field = root.children.get('traits') as FormField
  const value = build(traits ?? newSlot(field), 'traits', true, problems, stored)
  return value === undefined ? {} : value
}

function newSlot(field: FormField): Slot {
  return { field, texts: [], values: [], file: false, inner: new Map() }
}

function place(document: Slot, entry: FormEntry): void {
  const steps = findPath(document.field, entry.name)
  if (!steps) return
  let slot = document
  for (const { key, field } of steps) {
    const next = slot.inner.get(key) ?? newSlot(field)
    slot.inner.set(key, next)
    slot = next
  }
  if ('file' in entry) slot.file = true
  else if ('text' in entry) slot.texts.push(entry.text)
  else slot.values.push(entry.json)
}

/** The slot's value; undefined when it is not supplied. After a problem null takes its place. */
function build(
  slot: Slot,
  path: string,
  required: boolean,
  problems: Problems,
  stored?: JsonValue,
): JsonValue | undefined {
  const fail = (code: string, message: string) => problems.add(path, code, message)
  const { field, values } = slot
  if (slot.file) return fail('file', 'A file cannot be accepted here.')
  const given = slot.texts.filter(text => text !== '')
  const count = given.length + values.length
  if (count > 0 && slot.inner.size > 0) {
    if (field.kind === 'array') return fail('mixed', 'This list was sent with and without positions.')
    return fail('conflict', 'This was sent both as a whole and in parts.')
  }
  if (values.length > 0) {
    if (count > 1) return fail('duplicate', 'This was sent more than once.')
    return keepDeclared(field, values[0] as JsonValue, path, problems)
  }
  if (field.kind === 'object') {
    // An object that is stored already is changed, whether it is required or not.
    return buildObject(slot, given, path, required || isJsonObject(stored), problems, stored)
  }
  if (field.kind === 'array') return buildArray(slot, given, path, required, problems)
  if (slot.texts.length === 0) return undefined
  const typed = typeScalar(field, slot.texts)
  if ('code' in typed) return fail(typed.code, typed.message)
  return 'value' in typed ? typed.value : undefined
}

function buildObject(
  slot: Slot,
  given: readonly string[],
  path: string,
  exists: boolean,
  problems: Problems,
  stored: JsonValue | undefined,
): JsonValue | undefined {
  const { field } = slot
  if (given.length > 1) return problems.add(path, 'duplicate', 'This was sent more than once.')
  if (given[0] !== undefined) return fromJsonText(field, given[0], path, problems)
  if (slot.texts.length > 0 && slot.inner.size === 0 && field.nullable) return null
  if (!exists && isLeftBlank(field, slot)) return undefined
  const object: JsonObject = {}
  for (const [name, child] of field.children) {
    const sent = slot.inner.get(name)
    const required = field.required.has(name)
    const before = isJsonObject(stored) ? own(stored, name) : undefined
    const value = sent
      ? build(sent, `${path}.${name}`, required, problems, before)
      : required
        ? emptyRequired(child)
        : undefined
    if (value !== undefined) object[name] = value
  }
  return object
}

/**
 * An object that is required in one that exists does too, so that missing values are reported at its leaves. One that
 * requires itself ends with the first repetition.
 */
function emptyRequired(field: FormField, around: ReadonlySet<FormField> = new Set()): JsonObject | undefined {
  if (field.kind !== 'object' || field.nullable || around.has(field)) return undefined
  const inside = new Set(around).add(field)
  const object: JsonObject = {}
  for (const [name, child] of field.children) {
    const value = field.required.has(name) ? emptyRequired(child, inside) : undefined
    if (value !== undefined) object[name] = value
  }
  return object
}

function buildArray(
  slot: Slot,
  given: readonly string[],
  path: string,
  required: boolean,
  problems: Problems,
): JsonValue | undefined {
  const { field } = slot
  if (slot.texts.length === 0 && slot.inner.size === 0) return undefined
  if (given.length === 1 && given[0]?.startsWith('[')) return fromJsonText(field, given[0], path, problems)
  // A list may hold itself, so that one text would be a row of a row without end.
  if (path.split('.').length > MAX_SEGMENTS) return problems.add(path, 'too_deep', TOO_DEEP)
  const items = slot.inner.size > 0 ? arrangeRows(field, slot.inner) : repeatedRows(field, given)
  if (items.length > MAX_ITEMS) return problems.add(path, 'too_many_items', `Give at most ${MAX_ITEMS}.`)
  const array: JsonValue[] = []
  for (const item of items) {
    const position = array.length
    const at = `${path}.${position}`
    const below = itemField(field, position)
    const value = below
      ? build(item ?? { ...newSlot(below), texts: [''] }, at, position < field.tuple.length, problems)
      : problems.add(at, 'additionalItems', 'This is one too many.')
    array.push(value === undefined ? problems.add(at, 'required', validationMessage('required', {})) : value)
  }
  // An optional list is left out, rather than refused for being shorter than `minItems`.
  const optional = !required && (field.display.minItems ?? 0) > 0
  return array.length === 0 && optional ? undefined : array
}

function repeatedRows(field: FormField, given: readonly string[]): (Slot | undefined)[] {
  return given.map((text, position) => {
    const item = itemField(field, position)
    return item && { ...newSlot(item), texts: [text] }
  })
}

function fromJsonText(field: FormField, text: string, path: string, problems: Problems): JsonValue {
  let value: JsonValue
  try {
    value = parseJson(text)
  } catch (error) {
    if (!(error instanceof JsonTextError)) throw error
    return problems.add(path, error.code, `This ${error.message}.`)
  }
  const fits = field.kind === 'array' ? Array.isArray(value) : isJsonObject(value)
  if (!fits) return problems.add(path, 'type', typeMessage([field.kind]))
  return keepDeclared(field, value, path, problems)
}

/** Collects problems; null takes the place of a failed value so that no other value moves. */
export class Problems {
  readonly errors: FieldError[] = []

  add(path: string, code: string, message: string): null {
    if (this.errors.length < MAX_ERRORS) this.errors.push({ path, code, message })
    return null
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
