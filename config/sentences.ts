/** The validator's findings as sentences for an operator: what is wrong, what is allowed, what was probably meant. */
import type { ErrorObject } from 'ajv'
import { hostMeantBy } from './checks/listen-host.js'
import { originMeantBy } from './formats.js'
import { listed, nearest, type Path, type UnplacedProblem } from './problem.js'
import { type DurationBounds, describeDuration } from './schema/duration.js'
import { describePercent, type PercentBounds } from './schema/percent.js'

const MAX_QUOTED = 40

/** The schema keywords that sentences are built from. */
interface Described {
  readonly type?: string | readonly string[]
  readonly enum?: readonly (string | number)[]
  readonly format?: string
  readonly const?: unknown
  readonly minimum?: number
  readonly maximum?: number
  readonly properties?: Readonly<Record<string, unknown>>
  readonly duration?: DurationBounds
  readonly percent?: PercentBounds
  readonly expected?: string
  readonly secret?: boolean
  readonly whyRequired?: string
}

/** The environment variables that the value at a path came from: such a value must not be quoted. */
export type VariablesOf = (path: Path) => readonly string[]

/** The fault for one of ajv's errors; undefined for errors that only repeat others. */
export function faultOf(error: ErrorObject, variablesOf: VariablesOf): UnplacedProblem | undefined {
  const path = pathOf(error)
  const schema = (error.parentSchema ?? {}) as Described
  const params = error.params as Readonly<Record<string, unknown>>
  switch (error.keyword) {
    case 'if':
      return undefined
    case 'additionalProperties': {
      const key = String(params.additionalProperty)
      return {
        path: [...path, key],
        atKey: true,
        message: unknownKey(key, Object.keys(schema.properties ?? {})),
      }
    }
    case 'required': {
      const missing = String(params.missingProperty)
      if (isMisspelt(missing, error.data, schema)) return undefined
      return { path, message: schema.whyRequired ?? `The key "${missing}" is missing.` }
    }
    case 'propertyNames': {
      const names = schema as { readonly propertyNames?: Described }
      const key = String(params.propertyName)
      const message = `"${quoted(key)}" cannot be a name here. Must be ${expectedOf(names.propertyNames ?? {})}.`
      return { path: [...path, key], atKey: true, message }
    }
    case 'uniqueItems':
      return { path: [...path, Number(params.j)], message: 'This item is written twice.' }
    case 'minItems':
      return { path, message: `Needs at least ${params.limit} item${params.limit === 1 ? '' : 's'}.` }
    case 'maxItems':
      if (schema.expected !== undefined) return { path, message: `Must be ${schema.expected}.` }
      return { path, message: `Takes at most ${params.limit} items.` }
    case 'minLength':
      return { path, message: 'Must not be empty.' }
    case 'maxLength':
      // The inner error about a key's name: `propertyNames` reports it as a whole.
      return error.propertyName === undefined
        ? { path, message: `Must have at most ${params.limit} characters.` }
        : undefined
    default:
      if (error.propertyName !== undefined) return undefined
      return { path, message: wrongValue(error.data, schema, variablesOf(path)) }
  }
}

function pathOf(error: ErrorObject): Path {
  return error.instancePath
    .split('/')
    .slice(1)
    .map(part => (/^[0-9]+$/.test(part) ? Number(part) : part.replaceAll('~1', '/').replaceAll('~0', '~')))
}

/** True if an unknown key of `data` is already reported with this one as the suggestion. */
function isMisspelt(missing: string, data: unknown, { properties = {} }: Described): boolean {
  const known = Object.keys(properties)
  return Object.keys(data as object).some(key => !known.includes(key) && nearest(key, known) === missing)
}

function unknownKey(key: string, known: readonly string[]): string {
  const meant = nearest(key, known)
  const help = meant === undefined ? `Known here: ${known.join(', ')}.` : `Did you mean "${meant}"?`
  return `Unknown key "${quoted(key)}". ${help}`
}

/**
 * Sentence about a value that its schema rejects. Values that may be secret, such as environment variables, are
 * not quoted.
 */
export function wrongValue(data: unknown, schema: Described, variables: readonly string[]): string {
  if (variables.length > 0) {
    const holds = data === '' ? 'is empty' : 'holds something else'
    return `Must be ${expectedOf(schema)}. The environment variable ${listed(variables, 'and')} ${holds}.`
  }
  const what = describe(data, schema.secret === true)
  const but = what === undefined ? '' : `, but it is ${what}`
  return `Must be ${expectedOf(schema)}${but}.${helpFor(data, schema)}`
}

/** What to write instead, if known: a sentence with a leading space, or ''. */
function helpFor(data: unknown, { type, const: only, format, secret, enum: words = [] }: Described): string {
  if (typeof data !== 'string') return ''
  const isNumber = type === 'integer' || type === 'number' || words.includes(Number(data))
  const unquoted = isNumber ? Number(data) : only
  if (data !== '' && String(unquoted) === data) return ' Write it without quotes.'
  const [, variable] = /^\$([A-Za-z_][A-Za-z0-9_]*)$/.exec(data) ?? []
  if (variable !== undefined) return ` Did you mean "\${${variable}}"?`
  if (type === 'array' && secret !== true) return ` Did you mean [${JSON.stringify(quoted(data))}]?`
  const meant = MEANT_BY[format ?? '']?.(data) ?? nearest(data, words.map(String))
  return meant === undefined ? '' : ` Did you mean "${meant}"?`
}

const MEANT_BY: Readonly<Record<string, (text: string) => string | undefined>> = {
  'http-origin': originMeantBy,
  'listen-host': hostMeantBy,
}

/** What the schema accepts, as the end of "Must be …". */
export function expectedOf(schema: Described): string {
  if (schema.expected !== undefined) return schema.expected
  if (schema.duration !== undefined) return describeDuration(schema.duration)
  if (schema.percent !== undefined) return describePercent(schema.percent)
  if (schema.enum !== undefined) return listed(schema.enum.map(String))
  if (schema.const !== undefined) return String(schema.const)
  if (schema.type === 'integer') return `a whole number${range(schema)}`
  if (schema.type === 'number') return `a number${range(schema)}`
  return KINDS[String(schema.type)] ?? 'of another form'
}

const KINDS: Readonly<Record<string, string>> = {
  string: 'text',
  boolean: 'true or false',
  array: 'a list',
  object: 'a map of keys and values',
}

function range({ minimum, maximum }: Described): string {
  if (minimum !== undefined && maximum !== undefined) return ` from ${minimum} to ${maximum}`
  if (minimum !== undefined) return ` of at least ${minimum}`
  return maximum === undefined ? '' : ` of at most ${maximum}`
}

function describe(data: unknown, secret: boolean): string | undefined {
  if (data === null || data === undefined) return 'empty'
  if (Array.isArray(data)) return data.length === 0 ? 'an empty list' : 'a list'
  if (typeof data === 'object') return Object.keys(data).length === 0 ? 'an empty map' : 'a map'
  if (data === '') return 'an empty text'
  if (secret) return typeof data === 'string' ? undefined : `a ${typeof data}`
  return typeof data === 'string' ? `"${quoted(data)}"` : String(data)
}

/** Shortened and without control characters, since it is printed to a terminal. */
export function quoted(text: string): string {
  const clean = text.replace(/\p{Cc}/gu, '?')
  return clean.length > MAX_QUOTED ? `${clean.slice(0, MAX_QUOTED)}…` : clean
}
