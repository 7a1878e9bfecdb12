/** Collects the attributes that a rendered input shows. */
import type { Display } from './field.js'
import { type JsonValue, own } from './json.js'
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
