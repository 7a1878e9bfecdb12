/** Validation of `{traits}` by ajv, with errors as dot paths and stable codes (design section 10, rule 13). */
import { Ajv, type ErrorObject } from 'ajv'
import formats from 'ajv-formats'
import type { FieldError } from './errors.js'
import type { JsonObject } from './json.js'
import { validationMessage } from './messages.js'
import type { LinearPattern } from './pattern.js'
import { SchemaError } from './schema-document.js'

/** All problems of a document; empty when it is valid. */
export type Validate = (document: JsonObject) => FieldError[]

/** A telephone number as people write it: digits with an optional plus and the usual separators. */
const TELEPHONE = /^\+?(?:[ ()./-]{0,2}[0-9]){3,20}$/
const MAX_ERRORS = 200

/** Keywords that only say that some part failed; silent when that part speaks for itself. */
const COMPOSITE = new Set(['if', 'anyOf', 'oneOf'])
const HIDDEN_CAUSE = new Set(['not', 'propertyNames'])

/** Builds the validator. Throws SchemaError when the schema breaks the draft-07 meta-schema. */
export function compileValidator(root: JsonObject, patterns: ReadonlyMap<string, LinearPattern>): Validate {
  const ajv = new Ajv({
    allErrors: true,
    strict: false,
    // Inherited names such as `constructor` are not data.
    ownProperties: true,
    messages: false,
    logger: false,
    code: { regExp: Object.assign((source: string) => linear(patterns, source), { code: 'LinearPattern' }) },
  })
  formats.default(ajv, ['email', 'date', 'time', 'date-time', 'uri'])
  ajv.addFormat('tel', TELEPHONE)
  try {
    const validate = ajv.compile(root)
    return document => (validate(document) ? [] : fieldErrors(validate.errors ?? []))
  } catch (error) {
    throw new SchemaError(`the schema is not valid draft-07: ${(error as Error).message}`)
  }
}

function linear(patterns: ReadonlyMap<string, LinearPattern>, source: string): LinearPattern {
  const pattern = patterns.get(source)
  if (!pattern) throw new SchemaError('a pattern stands where no schema is read')
  return pattern
}

function fieldErrors(found: readonly ErrorObject[]): FieldError[] {
  const located = found.map(error => ({ error, path: pathOf(error) }))
  const explained = ({ error, path }: (typeof located)[number]) =>
    located.some(
      other => !COMPOSITE.has(other.error.keyword) && isWithin(other.path, path) && other.error !== error,
    )
  const errors = new Map<string, FieldError>()
  for (const entry of located) {
    const { error, path } = entry
    // Two branches of a oneOf that both fit leave no other trace.
    const ambiguous = error.keyword === 'oneOf' && error.params.passingSchemas !== null
    if (COMPOSITE.has(error.keyword) && !ambiguous && explained(entry)) continue
    const code = HIDDEN_CAUSE.has(error.keyword) ? 'not_allowed' : error.keyword
    const key = `${path} ${code}`
    if (!errors.has(key))
      errors.set(key, { path, code, message: validationMessage(error.keyword, error.params) })
    if (errors.size >= MAX_ERRORS) break
  }
  return [...errors.values()]
}

function pathOf(error: ErrorObject): string {
  const segments = error.instancePath
    .split('/')
    .slice(1)
    .map(segment => segment.replaceAll('~1', '/').replaceAll('~0', '~'))
  const missing: unknown = error.params.missingProperty
  if (typeof missing === 'string') segments.push(missing)
  return segments.join('.')
}

/** True when `path` is `ancestor` or lies below it. */
export function isWithin(path: string, ancestor: string): boolean {
  return path === ancestor || ancestor === '' || path.startsWith(`${ancestor}.`)
}
