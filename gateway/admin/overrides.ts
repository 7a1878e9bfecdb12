/**
 * What operators change on this port: `/access`, who is denied or exempt; `/rules/{id}/mode`, modes of rules set for
 * now; `/projects/{id}/overrides/{bucket}`, negotiated limits; and `/overrides`, the list of it all.
 */
import type { FastifyPluginAsync } from 'fastify'
import { ACCESS_ACTIONS, type AccessAction, MODES, type Mode } from '../../config/words/words.js'
import { answerRefusals, SMALL_NAME } from './problem.js'
import { addQuotas, type Quotas } from './quotas.js'
import {
  addSettable,
  BY,
  idOf,
  idParam,
  LONGEST_PROJECT,
  type OverrideReason,
  type Settable,
  type SettableRoute,
  UNTIL,
  WHY,
} from './settable.js'

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

export interface Overrides {
  readonly access: Settable<AccessBody> & { list(): Promise<object> }
  readonly modes: Settable<ModeBody>
  readonly quotas: Quotas
  /** What was done on this port, the newest first. */
  overrides(): Promise<readonly object[]>
}

const places = (description: string) =>
  ({
    type: 'array',
    minItems: 1,
    maxItems: 100,
    items: { type: 'string', minLength: 1, maxLength: LONGEST_PROJECT },
    description,
  }) as const
const accessListSchema = {
  tags: ['Access'],
  summary: 'Who is denied or exempt: entries of the files and those set here',
}
const overridesSchema = {
  tags: ['Overrides'],
  summary:
    'What was done on this port: modes, access entries, negotiated limits and resets, the newest first',
  description: 'The newest 200, of all gateways on one Redis. Without Redis those of this process.',
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
    addSettable(app, '/access/:id', access, ACCESS, idOf)
  }
}

/**
 * 200 or 201; 404 for an unknown rule or what is not set, 409 for one mode or limit too many, 422 for an impossible one,
 * 503 while Redis is away.
 */
export function overrideRoutes({ overrides, modes, quotas }: Omit<Overrides, 'access'>): FastifyPluginAsync {
  return async app => {
    answerRefusals(app)
    app.get('/overrides', { schema: overridesSchema }, async () => ({ overrides: await overrides() }))
    addSettable(app, '/rules/:id/mode', modes, MODE, idOf)
    addQuotas(app, quotas)
  }
}
