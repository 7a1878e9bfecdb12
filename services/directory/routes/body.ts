import { HttpError } from './http.js'
import { nearest } from './nearest.js'

/** Readers of JSON bodies of the management API. All throw HttpError 400 with a sentence that names the field. */

export type BodyFields = ReadonlyMap<string, unknown>

const longestQuoted = 60

/**
 * The body's fields. Unknown ones are refused, as a misspelt name would otherwise be ignored silently; `told` has
 * messages for names that are known elsewhere. `place` is the name of an object within the body.
 */
export function fieldsOf(
  body: unknown,
  known: readonly string[],
  told: Readonly<Record<string, string>> = {},
  place = '',
): BodyFields {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw new HttpError(400, `${place === '' ? 'The body' : place} must be a JSON object.`)
  }
  const fields = new Map(Object.entries(body))
  for (const name of fields.keys()) {
    if (known.includes(name)) continue
    if (Object.hasOwn(told, name)) throw new HttpError(400, `${name} ${told[name]}.`)
    throw unknownName('field', name, known, place === '' ? '' : ` in ${place}`)
  }
  return fields
}

/** The error for an unknown name. */
export function unknownName(what: string, name: string, known: readonly string[], where = ''): HttpError {
  const meant = nearest(name, known)
  const all = known.length === 0 ? 'None is known here.' : `Known here: ${known.join(', ')}.`
  const help = meant === undefined ? all : `Did you mean "${meant}"?`
  return new HttpError(400, `Unknown ${what} "${quoted(name)}"${where}. ${help}`)
}

function quoted(name: string): string {
  const clean = name.replace(/[\p{Cc}\p{Surrogate}]/gu, '?')
  return clean.length > longestQuoted ? `${clean.slice(0, longestQuoted)}…` : clean
}

/** A whole number; `unset` when the field is absent. */
export function wholeNumber(
  fields: BodyFields,
  name: string,
  unset: number,
  least: number,
  most: number,
): number {
  const given = fields.get(name)
  const value = given === undefined ? unset : given
  if (typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most) return value
  throw new HttpError(400, `${name} must be a whole number from ${least} to ${most}.`)
}

/** A boolean; undefined when the field is absent. */
export function flag(fields: BodyFields, name: string): boolean | undefined {
  const value = fields.get(name)
  if (value === undefined || typeof value === 'boolean') return value
  throw new HttpError(400, `${name} must be true or false.`)
}

/** A string of at most `maxLength` characters; undefined when it is absent, null or empty. */
export function optional(value: unknown, name: string, maxLength: number): string | undefined {
  if (value === undefined || value === null || value === '') return undefined
  if (typeof value !== 'string') throw new HttpError(400, `${name} must be a string.`)
  if (value.length > maxLength) throw new HttpError(400, `${name} is longer than ${maxLength} characters.`)
  if (/\p{Cc}/u.test(value) || value.trim() === '') {
    throw new HttpError(400, `${name} must not be blank or hold control characters.`)
  }
  if (/\p{Surrogate}/u.test(value)) {
    throw new HttpError(400, `${name} holds half a character (a lone surrogate).`)
  }
  return value
}
