/** Validation of `{traits}` by ajv, with errors as dot paths and stable codes (docs/forms.md). */
import { _, Ajv, type ErrorObject } from 'ajv'
import formats from 'ajv-formats'
import type { JsonObject } from '../../json.js'
import { type SchemaDocument, SchemaError } from '../schema/document.js'
import type { LinearPattern } from '../schema/pattern.js'
import { TooMuchEffort } from '../schema/pattern.js'
import { allowedBy, type FieldError, MAX_ERRORS, validationMessage } from './messages.js'

/** All problems of a document; empty when it is valid. */
export type Validate = (document: JsonObject) => FieldError[]

/** A telephone number as people write it: digits with an optional plus and the usual separators. */
const TELEPHONE = /^\+?(?:[ ()./-]{0,2}[0-9]){3,20}$/

/** Most failed keywords examined to find the errors worth reporting. */
const MAX_CONSIDERED = 20 * MAX_ERRORS

/** Most invalid places of a schema reported at once. */
const MAX_TOLD = 5

/** For texts so long that the work of the schema's patterns was cut short. */
const TOO_LONG: FieldError = {
  path: 'traits',
  code: 'too_long',
  message: 'Texts here are too long to be checked. Shorten them.',
}

/** Keywords that only say that some part failed; not reported when that part has an error of its own. */
const COMPOSITE = new Set(['if', 'anyOf', 'oneOf'])
/** Codes for keywords that neither a client nor a form needs to distinguish. */
const CODES: Readonly<Record<string, string>> = {
  not: 'not_allowed',
  propertyNames: 'not_allowed',
  'false schema': 'not_allowed',
  const: 'enum',
}

/** Builds the validator. Throws SchemaError when the schema violates the draft-07 meta-schema. */
export function compileValidator({ root, patterns, effort }: SchemaDocument): Validate {
  const ajv = new Ajv({
    allErrors: true,
    strict: false,
    discriminator: true,
    // Inherited names such as `constructor` are not data.
    ownProperties: true,
    messages: false,
    logger: false,
    code: { regExp: Object.assign((source: string) => linear(patterns, source), { code: 'LinearPattern' }) },
  })
  addMultipleOf(ajv)
  formats.default(ajv, ['email', 'date', 'time', 'date-time', 'uri'])
  ajv.addFormat('tel', TELEPHONE)
  if (ajv.validateSchema(root) !== true) {
    throw new SchemaError(`the schema is not valid draft-07: ${brokenRules(ajv.errors ?? [])}`)
  }
  try {
    const validate = ajv.compile(root)
    return document => {
      effort.renew()
      try {
        return validate(document) ? [] : fieldErrors(validate.errors ?? [])
      } catch (error) {
        if (error instanceof TooMuchEffort) return [TOO_LONG]
        throw error
      }
    }
  } catch (error) {
    throw new SchemaError(`the schema is not valid draft-07: ${(error as Error).message}`)
  }
}

/** The validator's own rule divides doubles, for which 19.99 is not a multiple of 0.01. */
function addMultipleOf(ajv: Ajv): void {
  ajv.removeKeyword('multipleOf').addKeyword({
    keyword: 'multipleOf',
    type: 'number',
    schemaType: 'number',
    validate: (divisor: number, value: number) => isMultiple(value, divisor),
    error: { message: '', params: ({ schemaCode }) => _`{multipleOf: ${schemaCode}}` },
  })
}

/** Where a schema violates the meta-schema, and what is allowed there. */
function brokenRules(found: readonly ErrorObject[]): string {
  const allowed = new Map<string, Set<string>>()
  for (const { instancePath, keyword, params } of found) {
    if (COMPOSITE.has(keyword)) continue
    const place = allowed.get(instancePath) ?? new Set()
    allowed.set(instancePath, place.add(allowedBy(keyword, params)))
  }
  return [...allowed]
    .slice(0, MAX_TOLD)
    .map(([place, what]) => `#${place} has to be ${[...what].join(' or ')}`)
    .join('; ')
}

function linear(patterns: ReadonlyMap<string, LinearPattern>, source: string): LinearPattern {
  const pattern = patterns.get(source)
  if (!pattern) throw new SchemaError('a pattern stands where no schema is read')
  return pattern
}

function fieldErrors(found: readonly ErrorObject[]): FieldError[] {
  const considered = found.slice(0, MAX_CONSIDERED)
  const lists = new Set(
    considered.filter(({ keyword }) => keyword === 'contains').map(({ schemaPath }) => `${schemaPath}/`),
  )
  // For items that do not match `contains`, and for refused names, the error of the whole is enough.
  const isAttempt = ({ propertyName, schemaPath }: ErrorObject) =>
    propertyName !== undefined || [...lists].some(list => schemaPath.startsWith(list))
  const located = considered.filter(error => !isAttempt(error)).map(error => ({ error, path: pathOf(error) }))
  const explained = new Set(
    located.filter(({ error }) => !COMPOSITE.has(error.keyword)).flatMap(({ path }) => upwards(path)),
  )
  const errors = new Map<string, FieldError>()
  for (const { error, path } of located) {
    // Two matching branches of a oneOf leave no other error.
    const ambiguous = error.keyword === 'oneOf' && error.params.passingSchemas !== null
    if (COMPOSITE.has(error.keyword) && !ambiguous && explained.has(path)) continue
    const keyword = keywordOf(error)
    const code = CODES[keyword] ?? keyword
    const key = `${path} ${code}`
    // A second `const` at the same place: there is a choice.
    const shown = errors.has(key) && keyword === 'const' ? 'enum' : keyword
    if (!errors.has(key) || shown !== keyword)
      errors.set(key, { path, code, message: validationMessage(shown, error.params) })
    if (errors.size >= MAX_ERRORS) break
  }
  return [...errors.values()]
}

/** The discriminator is missing, or its value leads to no branch. */
function keywordOf({ keyword, params }: ErrorObject): string {
  if (keyword !== 'discriminator') return keyword
  return params.tagValue === undefined ? 'required' : 'enum'
}

function pathOf(error: ErrorObject): string {
  const segments = error.instancePath
    .split('/')
    .slice(1)
    .map(segment => segment.replaceAll('~1', '/').replaceAll('~0', '~'))
  const missing: unknown = error.params.missingProperty ?? error.params.tag
  if (typeof missing === 'string') segments.push(missing)
  return segments.join('.')
}

/** A path and every path above it. */
function upwards(path: string): string[] {
  const found = [path]
  for (let dot = path.lastIndexOf('.'); dot > 0; dot = path.lastIndexOf('.', dot - 1))
    found.push(path.slice(0, dot))
  return [...found, '']
}

/** True when `path` is `ancestor` or lies below it. */
export function isWithin(path: string, ancestor: string): boolean {
  return path === ancestor || ancestor === '' || path.startsWith(`${ancestor}.`)
}

/** Whether `value` is a multiple of `divisor` (draft-07, 6.2.1), both taken by their shortest decimal text. */
function isMultiple(value: number, divisor: number): boolean {
  if (Number.isSafeInteger(value) && Number.isSafeInteger(divisor)) return value % divisor === 0
  const [a, b] = [decimal(value), decimal(divisor)]
  const exponent = Math.min(a.exponent, b.exponent)
  return scaled(a, exponent) % scaled(b, exponent) === 0n
}

interface Decimal {
  readonly digits: string
  /** The power of ten the digits are multiplied by. */
  readonly exponent: number
}

function decimal(number: number): Decimal {
  const [digits = '', exponent] = number.toExponential().split('e')
  const [whole, fraction = ''] = digits.split('.')
  return { digits: `${whole}${fraction}`, exponent: Number(exponent) - fraction.length }
}

function scaled({ digits, exponent }: Decimal, to: number): bigint {
  return BigInt(digits) * 10n ** BigInt(exponent - to)
}
