/** `/overrides` and `/rules/{id}/mode`: what was done on this port, and modes of rules set for now. */
import type { FastifyPluginAsync } from 'fastify'
import { MODES, type Mode } from '../../config/words/words.js'
import { BY, type OverrideReason, UNTIL, WHY } from './override-reason.js'
import { answerRefusals } from './problem.js'

/** A mode as sent; the rule's id is in the path. */
export interface ModeBody extends OverrideReason {
  readonly mode: Mode
  /** A day or a moment. */
  readonly until?: string
  readonly why: string
}

export interface ModeOverrides {
  /** `address` is named as the author unless the body names one. */
  put(
    id: string,
    body: ModeBody,
    address: string,
  ): Promise<{ readonly created: boolean; readonly mode: object }>
  remove(id: string, said: OverrideReason, address: string): Promise<object>
}

const ID = {
  type: 'object',
  required: ['id'],
  properties: {
    id: {
      type: 'string',
      minLength: 1,
      maxLength: 64,
      description: 'Name of a bucket, rule or access entry.',
    },
  },
} as const
const overridesSchema = {
  tags: ['Overrides'],
  summary: 'What was done on this port: modes, access entries and resets, the newest first',
  description: 'The newest 200, of all gateways on one Redis. Without Redis those of this process.',
}
const putSchema = {
  tags: ['Overrides'],
  summary: 'Make a rule report-only or enforced from now on; this is logged',
  description:
    'Holds until it is undone or its time is over, even after a reload. With Redis, all gateways on it follow within about a second. Without, it holds in this process until that ends.',
  params: ID,
  body: {
    type: 'object',
    required: ['mode', 'why'],
    additionalProperties: false,
    properties: { mode: { type: 'string', enum: MODES }, until: UNTIL, why: WHY, by: BY },
  },
}
const removeSchema = {
  tags: ['Overrides'],
  summary: 'Return a rule to the mode of its file; this is logged',
  params: ID,
  querystring: { type: 'object', additionalProperties: false, properties: { why: WHY, by: BY } },
}

/**
 * 200 or 201; 404 for an unknown rule, 409 for one mode too many, 422 for an impossible one, 503 while Redis is away.
 */
export function overrideRoutes(
  overrides: () => Promise<readonly object[]>,
  modes: ModeOverrides,
): FastifyPluginAsync {
  return async app => {
    answerRefusals(app)
    app.get('/overrides', { schema: overridesSchema }, async () => ({ overrides: await overrides() }))
    app.put<{ Params: { id: string }; Body: ModeBody }>(
      '/rules/:id/mode',
      { schema: putSchema, bodyLimit: 8 * 1024 },
      async ({ params, body, ip }, reply) => {
        const { created, mode } = await modes.put(params.id, body, ip)
        return reply.code(created ? 201 : 200).send(mode)
      },
    )
    app.delete<{ Params: { id: string }; Querystring: OverrideReason }>(
      '/rules/:id/mode',
      { schema: removeSchema },
      async ({ params, query, ip }) => modes.remove(params.id, query, ip),
    )
  }
}
