/** What a form shows as already filled in: a tree along the path table, whatever its source. */

import { isJsonObject, type JsonValue, own } from '../../json.js'
import { arrangeRows } from '../decode/blank.js'
import type { FormEntry } from '../decode/decode.js'
import {
  type FormField,
  findPath,
  isFreeObject,
  itemField,
  MAX_ITEMS,
  MAX_SEGMENTS,
} from '../schema/field.js'
import { textOf } from '../schema/fragments.js'

/** The texts under one name, and what was sent below it. Rows are numbered as the parser numbers them. */
export interface Sent {
  readonly texts: string[]
  readonly inner: Map<string | number, Sent>
}

/** From the schema's defaults, for a form that is shown for the first time. */
export function sentDefaults(root: FormField): Sent {
  const visit = (field: FormField, open: ReadonlySet<FormField>): Sent => {
    if (field.display.default !== undefined) return fromValue(field, field.display.default)
    const sent = nothing()
    if (open.has(field) || open.size >= MAX_SEGMENTS) return sent
    const inside = new Set(open).add(field)
    for (const [name, child] of field.children) keep(sent, name, visit(child, inside))
    return sent
  }
  return visit(traitsField(root), new Set())
}

/** From stored traits, for a form that changes them. */
export function sentTraits(root: FormField, traits: JsonValue): Sent {
  return fromValue(traitsField(root), traits)
}

/**
 * From a submission, for a form that is shown again with its errors. `unsent` fills the places for which nothing was
 * sent, not even a blank.
 */
export function sentEntries(root: FormField, entries: readonly FormEntry[], unsent: Sent = nothing()): Sent {
  const document = nothing()
  for (const entry of entries) {
    const steps = 'text' in entry ? findPath(root, entry.name) : undefined
    if (!steps) continue
    let at = document
    for (const { key } of steps) {
      const next = at.inner.get(key) ?? nothing()
      at.inner.set(key, next)
      at = next
    }
    if ('text' in entry) at.texts.push(entry.text)
  }
  const traits = traitsField(root)
  return withoutGaps(traits, completed(traits, document.inner.get('traits') ?? nothing(), unsent))
}

function completed(field: FormField, sent: Sent, unsent: Sent): Sent {
  if (field.kind !== 'object' || sent.texts.some(text => text !== '')) return sent
  const inner = new Map(sent.inner)
  for (const [name, other] of unsent.inner) {
    const child = field.children.get(String(name))
    const given = sent.inner.get(name)
    inner.set(name, child && given ? completed(child, given, other) : (given ?? other))
  }
  return { texts: sent.texts, inner }
}

export function traitsField(root: FormField): FormField {
  return root.children.get('traits') as FormField
}

function nothing(): Sent {
  return { texts: [], inner: new Map() }
}

function keep(sent: Sent, key: string | number, inner: Sent): void {
  if (!isBlank(inner)) sent.inner.set(key, inner)
}

function isBlank(sent: Sent): boolean {
  return sent.texts.every(text => text === '') && [...sent.inner.values()].every(isBlank)
}

function fromValue(field: FormField, value: JsonValue): Sent {
  const sent = nothing()
  if (field.kind === 'scalar' || isFreeObject(field)) sent.texts.push(scalarText(value))
  else if (isJsonObject(value)) {
    for (const [name, child] of field.children) {
      const inner = own(value, name)
      if (inner !== undefined) keep(sent, name, fromValue(child, inner))
    }
  } else if (Array.isArray(value)) {
    let position = 0
    for (const item of value) {
      const inner = itemField(field, position)
      if (inner) keep(sent, position, fromValue(inner, item))
      if (sent.inner.has(position) || position < field.tuple.length) position++
    }
  }
  return sent
}

/** Arranges rows as the parser does, because its errors refer to those row numbers. */
function withoutGaps(field: FormField, sent: Sent): Sent {
  const closed = { texts: field.kind === 'array' ? [] : sent.texts, inner: new Map<string | number, Sent>() }
  if (field.kind === 'array') {
    const repeats = sent.texts.filter(text => text !== '').map(text => ({ texts: [text], inner: new Map() }))
    const rows = [...repeats, ...arrangeRows(field, sent.inner)].slice(0, MAX_ITEMS)
    for (const [position, row] of rows.entries()) {
      const item = itemField(field, position)
      if (item && row) keep(closed, position, withoutGaps(item, row))
    }
    return closed
  }
  for (const [name, child] of field.children) {
    const inner = sent.inner.get(name)
    if (inner) keep(closed, name, withoutGaps(child, inner))
  }
  return closed
}

/** Whole numbers beyond 2^53 are only accepted with an exponent. */
function scalarText(value: JsonValue): string {
  const large = typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value)
  return large ? value.toExponential() : textOf(value)
}
