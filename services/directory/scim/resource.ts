import { limits } from '../limits.js'
import type { JsonObject } from '../model.js'
import type { Attribute } from './attributes.js'
import { ScimError } from './error.js'
import { clean, isObject } from './json.js'
import { conform } from './schema.js'

/**
 * The checks that POST, PUT and a finished PATCH share for users and groups. Throws 400 invalidSyntax or invalidValue.
 */
export function readResource(body: unknown, urn: string, attributes: readonly Attribute[]): JsonObject {
  if (!isObject(body)) throw new ScimError(400, 'The body must be a JSON object.', 'invalidSyntax')
  const raw = conform(clean(body) as JsonObject, attributes)
  return { schemas: [urn], ...raw }
}

/** Throws 400 invalidValue unless the attribute is a well-formed string, neither blank nor too long. */
export function requireText(raw: JsonObject, name: string): void {
  const value = raw[name]
  if (typeof value !== 'string' || value.trim() === '') {
    throw new ScimError(400, `${name} is required and must not be blank.`, 'invalidValue')
  }
  if (value.length > limits.nameLength) {
    throw new ScimError(400, `${name} is longer than ${limits.nameLength} characters.`, 'invalidValue')
  }
  if (/\p{Surrogate}/u.test(value)) {
    throw new ScimError(400, `${name} holds half a character (a lone surrogate).`, 'invalidValue')
  }
}
