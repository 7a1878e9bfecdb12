/**
 * Building blocks of the schemas in this folder. Each schema is the one source of its TypeScript type and of the API
 * document.
 */
import { type Static, type TProperties, type TSchema, type TSchemaOptions, type TUnsafe, Type } from 'typebox'
import type { JsonObject } from '../model.js'

export const text = (about?: string) => Type.String(described(about))
export const flag = (about?: string) => Type.Boolean(described(about))
export const whole = (about?: string) => Type.Integer(described(about))
/** ISO 8601, UTC. */
export const moment = (about?: string) => Type.String({ ...described(about), format: 'date-time' })

/** One of a few fixed strings. */
export const word = <const Word extends string>(words: readonly Word[], options: TSchemaOptions = {}) =>
  Type.Unsafe<Word>({ type: 'string', enum: [...words], ...options })

/** The schema or null, as a list of types, which generated clients handle best. */
export const orNull = <Schema extends TSchema>(schema: Schema): TUnsafe<Static<Schema> | null> =>
  Type.Unsafe({ ...schema, type: [(schema as { type?: string }).type, 'null'] })

/** An object in a request body: fields not listed are refused. */
export const closed = <Fields extends TProperties>(fields: Fields, options: TSchemaOptions = {}) =>
  Type.Object(fields, { ...options, additionalProperties: false })

export const anyObject = (about: string) => Type.Unsafe<JsonObject>({ type: 'object', description: about })

/** A schema with a name in the API document. */
export type Component<Schema extends TSchema> = Schema & { readonly $id: string }
export const component = <Schema extends TSchema>($id: string, schema: Schema): Component<Schema> =>
  ({ $id, ...schema }) as Component<Schema>

/** A reference to a schema that the API document names. */
export const refTo = <Schema extends TSchema>({ $id }: Component<Schema>): TUnsafe<Static<Schema>> =>
  Type.Unsafe({ $ref: `${$id}#` })

function described(about: string | undefined): TSchemaOptions {
  return about === undefined ? {} : { description: about }
}
/** A list of a schema that the API document names. */
export const listOf = <Schema extends TSchema>(schema: Component<Schema>) => Type.Array(refTo(schema))

export const errorSchema = component(
  'Error',
  Type.Object({
    data: Type.Null(),
    error: Type.Object({ message: text(), code: whole('The HTTP status') }),
  }),
)
export type Refusal = Static<typeof errorSchema>

export const problemSchema = component(
  'Problem',
  Type.Object(
    {
      type: text(),
      title: text(),
      status: whole(),
      detail: text('What to do'),
      code: text('For programs'),
      instance: Type.Optional(text("The request's id")),
    },
    { description: 'An answer of the gateway in front (RFC 9457)' },
  ),
)
