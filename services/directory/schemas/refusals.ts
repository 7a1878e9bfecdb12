import { type Static, Type } from 'typebox'
import { component, text, whole } from './parts.js'

export const errorSchema = component(
  'Error',
  Type.Object({
    data: Type.Null(),
    error: Type.Object({ message: text(), code: whole('The HTTP status') }),
  }),
)
/** A refusal of the management API. */
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
