/**
 * Builds the typed document from entries: where each value goes, and which objects and arrays exist (rules 7 to 12).
 */

import { isJsonObject, type JsonObject, type JsonValue, own } from '../../json.js'
import { type FormField, findPath, itemField, MAX_ITEMS, MAX_SEGMENTS } from '../schema/field.js'
import { arrangeRows, type Given, isLeftBlank } from './blank.js'
import { decodeProblem, keepDeclared, type Problems } from './declared.js'
import type { FormEntry } from './decode.js'
import { typeMessage, validationMessage } from './messages.js'
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

/** An object that is required in one that exists does too, so that missing values are reported at its leaves. */
function emptyRequired(field: FormField, depth = 0): JsonObject | undefined {
  if (field.kind !== 'object' || field.nullable || depth > MAX_SEGMENTS) return undefined
  const object: JsonObject = {}
  for (const [name, child] of field.children) {
    const value = field.required.has(name) ? emptyRequired(child, depth + 1) : undefined
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
  const value = decodeProblem(text, path, problems)
  if (value === undefined) return null
  const fits = field.kind === 'array' ? Array.isArray(value) : isJsonObject(value)
  if (!fits) return problems.add(path, 'type', typeMessage([field.kind]))
  return keepDeclared(field, value, path, problems)
}
