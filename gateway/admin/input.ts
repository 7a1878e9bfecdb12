/** Validation errors of the admin port as sentences. */
import type { FastifySchemaValidationError } from 'fastify'

const PLACES: Readonly<Record<string, string>> = {
  body: 'the body',
  querystring: 'the query',
  params: 'the path',
}
const LONGEST_NAME = 64

/** Patterns for which `WANTED` has a sentence. */
export const NOT_BLANK = '\\S'
export const SMALL_NAME = '^[a-z][a-z0-9._-]{0,63}$'
const WANTED: Readonly<Record<string, string>> = {
  [NOT_BLANK]: 'may not be blank',
  [SMALL_NAME]:
    'must begin with a lowercase letter and go on with at most 63 lowercase letters, digits, ".", "_" and "-"',
}

/** Fastify's `schemaErrorFormatter`. */
export function inputFault([fault]: readonly FastifySchemaValidationError[], part: string): Error {
  return new Error(`${fault === undefined ? 'It is wrong' : sentenceOf(fault, PLACES[part] ?? part)}.`)
}

function sentenceOf(fault: FastifySchemaValidationError, place: string): string {
  const { keyword, instancePath, params, message = 'is wrong' } = fault
  if (keyword === 'additionalProperties') return `${named(params.additionalProperty)} is unknown in ${place}`
  if (keyword === 'required') return `${named(params.missingProperty)} is missing in ${place}`
  if (instancePath === '') return `${place.replace('the', 'The')} must be a JSON object`
  const value = named(instancePath.slice(1).replaceAll('/', '.'))
  const { allowedValues, limit } = params
  if (keyword === 'minLength' && limit === 1) return `${value} in ${place} may not be empty`
  if (keyword === 'pattern') return `${value} in ${place} ${WANTED[String(params.pattern)] ?? message}`
  if (keyword === 'minItems') return `${value} in ${place} needs at least ${limit}`
  if (keyword === 'maxItems') return `${value} in ${place} may have at most ${limit}`
  if (keyword === 'maxLength') return `${value} in ${place} may have at most ${limit} characters`
  if (Array.isArray(allowedValues)) return `${value} in ${place} must be one of ${allowedValues.join(', ')}`
  return `${value} in ${place} ${message}`
}

function named(name: unknown): string {
  return `"${String(name).slice(0, LONGEST_NAME)}"`
}
