/**
 * What operators change on this port: `/access`, who is denied or exempt; `/rules/{id}/mode`, modes of rules set for
 * now; and `/overrides`, the list of it all.
 */
import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import { ACCESS_ACTIONS, type AccessAction, MODES, type Mode } from '../../config/words/words.js'
import { answerRefusals, NOT_BLANK, SMALL_NAME } from './problem.js'

/** Who performs an override, and why. */
export interface OverrideReason {
  readonly why?: string
  /** A name. Default: the address of the request. */
  readonly by?: string
}

/** An access entry as sent; its id is in the path. */
export interface AccessBody extends OverrideReason {
  readonly networks?: readonly string[]
  readonly projects?: readonly string[]
  readonly action: AccessAction
  readonly mode?: Mode
  /** A day or a moment. */
  readonly until?: string
  readonly why: string
}

/** A mode as sent; the rule's id is in the path. */
export interface ModeBody extends OverrideReason {
  readonly mode: Mode
  /** A day or a moment. */
  readonly until?: string
  readonly why: string
}

/** What can be set here by an id, and removed again. */
export interface Settable<Body> {
  /** `address` is named as the author unless the body names one. */
  put(id: string, body: Body, address: string): Promise<{ readonly created: boolean; readonly entry: object }>
  remove(id: string, said: OverrideReason, address: string): Promise<object>
}

export interface Overrides {
  readonly access: Settable<AccessBody> & { list(): Promise<object> }
  readonly modes: Settable<ModeBody>
  /** What was done on this port, the newest first. */
  overrides(): Promise<readonly object[]>
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

const UNTIL = {
  type: 'string',
  maxLength: 64,
  description: 'A day (to its end, UTC) or a moment as in RFC 3339. Then it is ignored.',
} as const
const places = (description: string) =>
  ({
    type: 'array',
    minItems: 1,
    maxItems: 100,
    items: { type: 'string', minLength: 1, maxLength: LONGEST_PROJECT },
    description,
  }) as const
const idParam = (id: object) => ({ type: 'object', required: ['id'], properties: { id } })
const REASON = { type: 'object', additionalProperties: false, properties: { why: WHY, by: BY } }

const accessListSchema = {
  tags: ['Access'],
  summary: 'Who is denied or exempt: entries of the files and those set here',
}
const overridesSchema = {
  tags: ['Overrides'],
  summary: 'What was done on this port: modes, access entries and resets, the newest first',
  description: 'The newest 200, of all gateways on one Redis. Without Redis those of this process.',
}

interface SettableRoute {
  readonly tags: readonly string[]
  readonly params: object
  readonly put: object
  readonly remove: object
  readonly bodyLimit: number
}

const ACCESS: SettableRoute = {
  tags: ['Access'],
  params: idParam({
    type: 'string',
    pattern: SMALL_NAME,
    description: 'Name of the entry: lowercase letters, digits, ".", "_" and "-".',
  }),
  put: {
    summary: 'Deny or exempt networks or projects from now on; this is logged',
    description:
      'With Redis, all gateways on it follow within about a second. Without, it holds in this process until that ends.',
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
  },
  remove: { summary: 'Remove an entry that was set here; this is logged' },
  // Enough for a hundred networks and the reason.
  bodyLimit: 16 * 1024,
}

const MODE: SettableRoute = {
  tags: ['Overrides'],
  params: idParam({
    type: 'string',
    minLength: 1,
    maxLength: 64,
    description: 'Name of a bucket, rule or access entry.',
  }),
  put: {
    summary: 'Make a rule report-only or enforced from now on; this is logged',
    description:
      'Holds until it is undone or its time is over, even after a reload. With Redis, all gateways on it follow within about a second. Without, it holds in this process until that ends.',
    body: {
      type: 'object',
      required: ['mode', 'why'],
      additionalProperties: false,
      properties: { mode: { type: 'string', enum: MODES }, until: UNTIL, why: WHY, by: BY },
    },
  },
  remove: { summary: 'Return a rule to the mode of its file; this is logged' },
  bodyLimit: 8 * 1024,
}

/**
 * 200 or 201; 404 for an unknown entry, 409 for a name that is taken or one entry too many, 422 for invalid entries,
 * 503 while Redis is away.
 */
export function accessRoutes(access: Overrides['access']): FastifyPluginAsync {
  return async app => {
    answerRefusals(app)
    app.get('/access', { schema: accessListSchema }, async () => access.list())
    addSettable(app, '/access/:id', access, ACCESS)
  }
}

/**
 * 200 or 201; 404 for an unknown rule, 409 for one mode too many, 422 for an impossible one, 503 while Redis is away.
 */
export function overrideRoutes({ overrides, modes }: Omit<Overrides, 'access'>): FastifyPluginAsync {
  return async app => {
    answerRefusals(app)
    app.get('/overrides', { schema: overridesSchema }, async () => ({ overrides: await overrides() }))
    addSettable(app, '/rules/:id/mode', modes, MODE)
  }
}

function addSettable<Body>(
  app: FastifyInstance,
  path: string,
  settable: Settable<Body>,
  { tags, params, put, remove, bodyLimit }: SettableRoute,
): void {
  const putSchema = { tags, params, ...put }
  app.put<{ Params: { id: string }; Body: Body }>(
    path,
    { schema: putSchema, bodyLimit },
    async (request, reply) => {
      const { created, entry } = await settable.put(request.params.id, request.body as Body, request.ip)
      return reply.code(created ? 201 : 200).send(entry)
    },
  )
  const removeSchema = { tags, params, querystring: REASON, ...remove }
  app.delete<{ Params: { id: string }; Querystring: OverrideReason }>(
    path,
    { schema: removeSchema },
    async ({ params, query, ip }) => settable.remove(params.id, query, ip),
  )
}
