/** What can be set on this port by PUT and removed again by DELETE, each with a reason. */
import type { FastifyInstance } from 'fastify'
import { NOT_BLANK } from './problem.js'

/** Who performs an override, and why. */
export interface OverrideReason {
  readonly why?: string
  /** A name. Default: the address of the request. */
  readonly by?: string
}

/** What can be set here by an id, and removed again. */
export interface Settable<Body, Id = string> {
  /** `address` is named as the author unless the body names one. */
  put(id: Id, body: Body, address: string): Promise<{ readonly created: boolean; readonly entry: object }>
  remove(id: Id, said: OverrideReason, address: string): Promise<object>
}

export const WHY = {
  type: 'string',
  minLength: 1,
  pattern: NOT_BLANK,
  maxLength: 1000,
  description: 'The reason, shown in the log and in the list.',
} as const
export const BY = {
  type: 'string',
  minLength: 1,
  pattern: NOT_BLANK,
  maxLength: 256,
  description: 'Who asks for it. Default: the address of the request.',
} as const
/** `host:` and the longest name of a host; ids of configured projects are shorter. */
export const LONGEST_PROJECT = 258

export const UNTIL = {
  type: 'string',
  maxLength: 64,
  description: 'A day (to its end, UTC) or a moment as in RFC 3339. Then it is ignored.',
} as const

export const idParam = (id: object) => ({ type: 'object', required: ['id'], properties: { id } })
const REASON = { type: 'object', additionalProperties: false, properties: { why: WHY, by: BY } }

export interface SettableRoute {
  readonly tags: readonly string[]
  readonly params: object
  readonly put: object
  readonly remove: object
  readonly bodyLimit: number
}

/** The parameters of the paths above. */
export interface Named {
  readonly id: string
  readonly bucket: string
}

export const idOf = ({ id }: Named): string => id

/** @param named what the path names */
export function addSettable<Body, Id>(
  app: FastifyInstance,
  path: string,
  settable: Settable<Body, Id>,
  { tags, params, put, remove, bodyLimit }: SettableRoute,
  named: (params: Named) => Id,
): void {
  const putSchema = { tags, params, ...put }
  app.put<{ Params: Named; Body: Body }>(path, { schema: putSchema, bodyLimit }, async (request, reply) => {
    const { created, entry } = await settable.put(named(request.params), request.body as Body, request.ip)
    return reply.code(created ? 201 : 200).send(entry)
  })
  const removeSchema = { tags, params, querystring: REASON, ...remove }
  app.delete<{ Params: Named; Querystring: OverrideReason }>(
    path,
    { schema: removeSchema },
    async ({ params, query, ip }) => settable.remove(named(params), query, ip),
  )
}
