/** Collects the attributes that a rendered input shows. */

import { type JsonValue, own } from '../../json.js'
import { SchemaError } from './document.js'
import type { Display } from './field.js'
import { type FormField, MAX_SEGMENTS } from './field.js'
import type { Fragment } from './kinds.js'

const DISPLAY: Record<keyof Display, 'string' | 'number' | 'any'> = {
  title: 'string',
  description: 'string',
  default: 'any',
  format: 'string',
  pattern: 'string',
  minimum: 'number',
  maximum: 'number',
  exclusiveMinimum: 'number',
  exclusiveMaximum: 'number',
  minLength: 'number',
  maxLength: 'number',
  minItems: 'number',
  maxItems: 'number',
  'x-autocomplete': 'string',
}

/**
 * The display attributes of the fragments of one path. The first statement wins: a fragment's own come before those it
 * refers to.
 */
export function displayOf(parts: readonly Fragment[]): Display {
  const display: Record<string, JsonValue> = {}
  for (const { schema } of parts.filter(({ role }) => role === 'always')) {
    for (const [key, type] of Object.entries(DISPLAY)) {
      const value = own(schema, key)
      if (value === undefined || Object.hasOwn(display, key)) continue
      if (type === 'any' || typeof value === type) display[key] = value
    }
  }
  return display as Display
}

/** Paths below `traits` whose values are unique within a project. Throws SchemaError. */
export function findIdentifiers(traits: FormField): string[][] {
  const found: string[][] = []
  const walk = (field: FormField, path: string[], open: ReadonlySet<FormField>): void => {
    if (open.has(field) || open.size >= MAX_SEGMENTS) return
    if (field.identifier) {
      if (!field.scalars.has('string'))
        throw new SchemaError(`${path.join('.')}: x-identifier must stand on a string`)
      found.push(path)
    }
    for (const item of [...field.tuple, field.items]) {
      if (item?.identifier)
        throw new SchemaError(`${path.join('.')}: x-identifier cannot stand inside an array`)
    }
    for (const [name, child] of field.children) walk(child, [...path, name], new Set(open).add(field))
  }
  walk(traits, [], new Set())
  return found
}
