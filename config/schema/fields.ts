/** Fields that several files share: names, quotas, one of a list of words. */
import { type Static, type TSchema, type TSchemaOptions, type TUnsafe, Type } from 'typebox'
import { ON_STORE_ERROR } from '../words/words.js'

/** Names of buckets, rules and upstreams: they become metric labels and appear in responses. */
const NAME = { pattern: '^[a-z][a-z0-9._-]{0,63}$', maxLength: 64 }
const NAME_EXPECTED =
  'a name of at most 64 characters: a lowercase letter, then lowercase letters, digits, ".", "_" or "-"'
const MAX_QUOTA = 1_000_000_000

/** An object that accepts no other keys. */
export function Strict<P extends Record<string, TSchema>>(properties: P, options: TSchemaOptions = {}) {
  return Type.Object(properties, { ...options, additionalProperties: false })
}

/** One of a few words. */
export function Word<const W extends string>(words: readonly W[], options: TSchemaOptions): TUnsafe<W> {
  return Type.Unsafe<W>({ type: 'string', enum: [...words], ...options })
}

export function Name(description: string) {
  return Type.String({ ...NAME, expected: NAME_EXPECTED, description })
}

export const DECLARED_WORD = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/

/** A plan or an environment: a word that projects.yaml declares, so no schema can list them. */
export function DeclaredWord(options: TSchemaOptions) {
  return Type.String({
    pattern: DECLARED_WORD.source,
    expected: 'a word of at most 64 characters: a letter or digit, then letters, digits, ".", "_" or "-"',
    ...options,
  })
}

/** A map from names to values of one shape. */
export function NamedMap<S extends TSchema>(value: S, options: TSchemaOptions) {
  return Type.Unsafe<Record<string, Static<S>>>({
    type: 'object',
    propertyNames: { ...NAME, expected: NAME_EXPECTED },
    additionalProperties: value,
    ...options,
  })
}

/** How many requests one window admits. */
export function Requests(description: string, options: TSchemaOptions = {}) {
  return Type.Integer({ minimum: 1, maximum: MAX_QUOTA, description, ...options })
}

export function Version() {
  return Type.Literal(1, { description: 'Version of this file format.' })
}

/** A day of the calendar. */
export function Day(description: string) {
  return Type.String({
    pattern: '^[0-9]{4}-[0-9]{2}-[0-9]{2}$',
    format: 'day',
    expected: 'a day such as 2026-01-31',
    description,
  })
}

/** An address or a network of them. */
export const Network = Type.String({
  format: 'cidr',
  maxLength: 64,
  expected: 'an address or CIDR such as 10.0.0.0/8',
})

export const OnStoreError = (options: TSchemaOptions) => Word(ON_STORE_ERROR, options)

export const ON_STORE_ERROR_HELP =
  'What happens while Redis is away: local (count in this process), open (let requests pass), closed (answer 503).'

/** JSON Schema's if/then/else as a fragment. */
export function when(condition: object, then: object, otherwise: object) {
  return { if: condition, then, else: otherwise }
}
