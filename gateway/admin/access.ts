/** `/access`: who is denied or exempt, by the files and by entries set on this port. */
import type { FastifyPluginAsync } from 'fastify'
import { ACCESS_ACTIONS, type AccessAction, MODES, type Mode } from '../../config/words/words.js'
import { SMALL_NAME } from './input.js'
import { BY, LONGEST_PROJECT, type OverrideReason, UNTIL, WHY } from './override-reason.js'
import { answerRefusals } from './problem.js'

/** An entry as sent; its id is in the path. */
export interface AccessBody extends OverrideReason {
  readonly networks?: readonly string[]
  readonly projects?: readonly string[]
  readonly action: AccessAction
  readonly mode?: Mode
  /** A day or a moment. */
  readonly until?: string
  readonly why: string
}

export interface AccessOverrides {
  list(): Promise<object>
  /** `address` is named as the author unless the body names one. */
  put(
    id: string,
    body: AccessBody,
    address: string,
  ): Promise<{ readonly created: boolean; readonly entry: object }>
  remove(id: string, said: OverrideReason, address: string): Promise<object>
}

/** Enough for a hundred networks and the reason. */
const MAX_BODY_BYTES = 16 * 1024
const places = (description: string) =>
  ({
    type: 'array',
    minItems: 1,
    maxItems: 100,
    items: { type: 'string', minLength: 1, maxLength: LONGEST_PROJECT },
    description,
  }) as const
const ID = {
  type: 'object',
  required: ['id'],
  properties: {
    id: {
      type: 'string',
      pattern: SMALL_NAME,
      description: 'Name of the entry: lowercase letters, digits, ".", "_" and "-".',
    },
  },
} as const
const listSchema = {
  tags: ['Access'],
  summary: 'Who is denied or exempt: entries of the files and those set here',
}
const putSchema = {
  tags: ['Access'],
  summary: 'Deny or exempt networks or projects from now on; this is logged',
  description:
    'With Redis, all gateways on it follow within about a second. Without, it holds in this process until that ends.',
  params: ID,
  body: {
    type: 'object',
    required: ['action', 'why'],
    additionalProperties: false,
    properties: {
      networks: places('Client addresses and networks.'),
      projects: places('Ids of projects; host:NAME for unknown callers of that host.'),
      action: { type: 'string', enum: ACCESS_ACTIONS },
      mode: { type: 'string', enum: MODES, description: 'Default: enforce.' },
      until: UNTIL,
      why: WHY,
      by: BY,
    },
  },
}
const removeSchema = {
  tags: ['Access'],
  summary: 'Remove an entry that was set here; this is logged',
  params: ID,
  querystring: { type: 'object', additionalProperties: false, properties: { why: WHY, by: BY } },
}

/**
 * 200 or 201; 404 for an unknown entry, 409 for a name that is taken or one entry too many, 422 for invalid entries,
 * 503 while Redis is away.
 */
export function accessRoutes(access: AccessOverrides): FastifyPluginAsync {
  return async app => {
    answerRefusals(app)
    app.get('/access', { schema: listSchema }, async () => access.list())
    app.put<{ Params: { id: string }; Body: AccessBody }>(
      '/access/:id',
      { schema: putSchema, bodyLimit: MAX_BODY_BYTES },
      async ({ params, body, ip }, reply) => {
        const { created, entry } = await access.put(params.id, body, ip)
        return reply.code(created ? 201 : 200).send(entry)
      },
    )
    app.delete<{ Params: { id: string }; Querystring: OverrideReason }>(
      '/access/:id',
      { schema: removeSchema },
      async ({ params, query, ip }) => access.remove(params.id, query, ip),
    )
  }
}
