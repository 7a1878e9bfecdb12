/** Bodies of the management API are checked against the schemas that document them; faults become sentences here. */
import { Ajv, type ErrorObject } from 'ajv'
import { maxHeaderLength, maxHeaders, maxNameLength } from '../limits.js'
import { eventNames } from '../model.js'
import { components } from '../schemas/index.js'
import { HttpError, type Server } from './http.js'

/** What the schema of a body says, as far as the sentences need it. */
interface BodySchema {
  readonly $ref?: string
  readonly properties?: Readonly<Record<string, unknown>>
  readonly required?: readonly string[]
  readonly minProperties?: number
  readonly minimum?: number
  readonly maximum?: number
}

/** Fields that only responses have, and where they come from. */
const shownOnly: Readonly<Record<string, string>> = {
  id: 'is assigned by the service',
  scim: 'is made by the service: POST /{id}/scim-secret makes a new secret',
  external_access_token: 'comes from a consent: POST /{id}/consent-link starts one',
  external_refresh_token: 'comes from a consent: POST /{id}/consent-link starts one',
  external_sync: 'is reported by the service',
  old_secret_valid_until: 'is reported by the service',
  header_names: 'is reported by the service: send headers',
}
/** Fields of a change that change nothing by themselves. */
const unchanging = ['id', 'tenant', 'product', 'type', 'overlap_seconds']

const ajv = new Ajv({
  ...{ strict: false, verbose: true, formats: { 'date-time': true } },
  schemas: [...components],
})

/** Checks the bodies of a server's routes; query parameters are read where they are used. */
export function checkBodies(server: Server): void {
  server.setValidatorCompiler<BodySchema>(({ schema, httpPart }) =>
    httpPart === 'body' ? bodyCheck(schema) : () => true,
  )
}

/** The check of a body in the form that Fastify expects. */
export function bodyCheck(schema: BodySchema): (body: unknown) => { value: unknown } | { error: HttpError } {
  const check = ajv.compile(schema)
  return value => {
    if (check(value)) return { value }
    const [fault] = check.errors ?? []
    return { error: new HttpError(400, sentence(fault as Fault)) }
  }
}

/** Whether a request without a body counts as one with an empty object, which the schema then accepts. */
export function mayBeAbsent(schema: BodySchema): boolean {
  const named = components.find(({ $id }) => schema.$ref === `${$id}#`)
  const { required = [], minProperties = 0 }: BodySchema = named ?? schema
  return required.length + minProperties === 0
}

type Fault = ErrorObject<string, Record<string, unknown>> & { readonly parentSchema: BodySchema }

/** The sentence about a fault that Ajv has found. */
function sentence(fault: Fault): string {
  const { keyword, params, parentSchema, data, schema } = fault
  const path = fault.instancePath.split('/').slice(1)
  const name = path.join('.')
  if (path[0] === 'headers') return headersSentence(path[1], keyword)
  if (path[0] === 'events') return `events must be a list of ${eventNames.join(', ')}, or null for all.`
  switch (keyword) {
    case 'type':
      return typeSentence(fault, name)
    case 'required': {
      // A misspelt name says more than the one that is missing.
      const unknown = Object.keys(data as object).find(
        key => !Object.hasOwn(parentSchema.properties ?? {}, key),
      )
      return unknown === undefined
        ? `${params.missingProperty} is required.`
        : unknownField(unknown, parentSchema, name)
    }
    case 'additionalProperties':
      return unknownField(String(params.additionalProperty), parentSchema, name)
    case 'minProperties':
      return nothingToChange(Object.keys(parentSchema.properties ?? {}))
    case 'minLength':
      return `${name} is required.`
    case 'maxLength':
      return `${name} is longer than ${params.limit} characters.`
    case 'enum':
      return `${name} must be one of ${(schema as unknown[]).filter(Boolean).join(', ')}.`
    case 'minimum':
    case 'maximum':
      return rangeSentence(parentSchema, name)
    case 'pattern':
      return String(data).includes(':') ? `${name} must not contain the character ":".` : notPrintable(name)
    default:
      return `${name} ${fault.message}.`
  }
}

function typeSentence({ schema, parentSchema, data }: Fault, name: string): string {
  const types = [schema].flat()
  if (types.includes('object')) return `${name === '' ? 'The body' : name} must be a JSON object.`
  if (types.includes('boolean')) return `${name} must be true or false.`
  if (types.includes('integer')) return rangeSentence(parentSchema, name)
  return data === null ? `${name} is required.` : `${name} must be a string.`
}

const rangeSentence = ({ minimum, maximum }: BodySchema, name: string): string =>
  `${name} must be a whole number from ${minimum} to ${maximum}.`

function headersSentence(header: string | undefined, keyword: string): string {
  if (header !== undefined) return wrongHeaderValue(header.replaceAll('~1', '/').replaceAll('~0', '~'))
  return keyword === 'maxProperties' ? tooManyHeaders : 'headers must be an object of names and strings.'
}

export const tooManyHeaders = `headers must name at most ${maxHeaders} headers, each once.`

export const wrongHeaderValue = (name: string): string =>
  `headers: ${name} must be a string of 1 to ${maxHeaderLength} visible ASCII characters.`

const notPrintable = (name: string): string => `${name} must not be blank or hold control characters.`

/** For a change whose body names nothing that can be changed. */
export function nothingToChange(fields: readonly string[]): string {
  const changeable = fields.filter(name => !unchanging.includes(name))
  return `The body has none of the fields that can be changed: ${changeable.join(', ')}.`
}

function unknownField(name: string, { properties = {} }: BodySchema, place: string): string {
  if (place === '' && Object.hasOwn(shownOnly, name)) return `${name} ${shownOnly[name]}.`
  return unknownName('field', name, Object.keys(properties), place === '' ? '' : ` in ${place}`)
}

/** A tenant's or product's name. Throws 400. */
export function identifier(value: string | undefined, name: string): string {
  const text = line(value, name)
  if (text === undefined) throw new HttpError(400, `${name} is required.`)
  if (text.length > maxNameLength)
    throw new HttpError(400, `${name} is longer than ${maxNameLength} characters.`)
  if (text.includes(':')) throw new HttpError(400, `${name} must not contain the character ":".`)
  return text
}

/** A text without line breaks; undefined when it is absent, null or empty. Throws 400. */
export function line(text: string | null | undefined, name: string): string | undefined {
  if (text === undefined || text === null || text === '') return undefined
  if (/\p{Cc}/u.test(text) || text.trim() === '') throw new HttpError(400, notPrintable(name))
  if (/\p{Surrogate}/u.test(text)) {
    throw new HttpError(400, `${name} holds half a character (a lone surrogate).`)
  }
  return text
}

const longestQuoted = 60

/** The sentence about an unknown name. */
export function unknownName(what: string, name: string, known: readonly string[], where = ''): string {
  const meant = nearest(name, known)
  const all = known.length === 0 ? 'None is known here.' : `Known here: ${known.join(', ')}.`
  const help = meant === undefined ? all : `Did you mean "${meant}"?`
  return `Unknown ${what} "${quoted(name)}"${where}. ${help}`
}

function quoted(name: string): string {
  const clean = name.replace(/[\p{Cc}\p{Surrogate}]/gu, '?')
  return clean.length > longestQuoted ? `${clean.slice(0, longestQuoted)}…` : clean
}

/** The candidate that was most likely meant, or undefined when none is close. */
function nearest(word: string, candidates: readonly string[]): string | undefined {
  let best: string | undefined
  let least = Math.max(1, Math.floor(word.length / 3)) + 1
  for (const candidate of candidates) {
    // This also bounds the work: words much longer than any candidate are not compared.
    if (Math.abs(candidate.length - word.length) >= least) continue
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase())
    if (distance < least) [best, least] = [candidate, distance]
  }
  return best
}

/** Single letters to insert, delete or substitute on the way from one word to the other (Levenshtein). */
function editDistance(a: string, b: string): number {
  let last = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const exchanged = at(last, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1)
      row.push(Math.min(at(last, j) + 1, at(row, j - 1) + 1, exchanged))
    }
    last = row
  }
  return at(last, b.length)
}

const at = (row: readonly number[], index: number): number => row[index] ?? 0
