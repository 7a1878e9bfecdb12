/**
 * What is in force and what is counted, for operators: effective policy, counters of a project, slots, and resetting a
 * counter.
 */
import type { FastifyPluginAsync } from 'fastify'
import { answerRefusals, sendProblem } from './problem.js'
import { BY, LONGEST_PROJECT, type OverrideReason, WHY } from './settable.js'

/** Whose policy: a project's, or a plan's in an environment. */
export type PolicyOf = { readonly project: string } | { readonly plan: string; readonly environment: string }

/** Names one counter: a rule, and the properties of a request that make up the parts of its key. */
export interface CounterName {
  readonly rule: string
  readonly project?: string
  readonly method?: string
  readonly path?: string
  readonly ip?: string
  /** Each as `name: value`. */
  readonly header?: readonly string[]
  readonly ja3?: string
  readonly ja4?: string
  readonly auth?: 'authenticated' | 'anonymous'
  readonly email?: string
  readonly flow?: string
  /** Method of JSON-RPC, or method and tool, as `explain` shows it. */
  readonly call?: string
}

export interface Inspected {
  policy(of: PolicyOf): object
  /** Rules that count by more than the project are shown only for the key that `parts` names. */
  counters(project: string, parts: Omit<CounterName, 'rule' | 'project'>): Promise<object>
  /** How many slots requests hold, and the oldest of them. */
  slots(): object | Promise<object>
  /** Resets the counter, on behalf of the address `from`. */
  reset(counter: CounterName, reason: OverrideReason & { readonly from: string }): Promise<object>
}

const text = (description: string, maxLength = 256) =>
  ({ type: 'string', minLength: 1, maxLength, description }) as const
/** May be empty: then such a request has none. */
const optional = (description: string, maxLength = 256) =>
  ({ type: 'string', maxLength, description: `${description} Empty: it has none.` }) as const
const PROJECT = text(
  'Id of a project; client:ADDRESS for an unknown caller, or host:NAME or unknown:all where unknownProject counts so.',
  LONGEST_PROJECT,
)
/** Parts of a key, as properties of a request that is counted by it. */
const PARTS = {
  method: text('Method of such a request.', 32),
  path: text('Path of such a request.', 8192),
  ip: text('Client address of such a request.', 64),
  header: {
    type: 'array',
    maxItems: 20,
    items: text('Name and value.', 8192),
    description: 'A header of such a request, as name: value. Without a value: it does not have it.',
  },
  ja3: optional('JA3 fingerprint of its TLS.'),
  ja4: optional('JA4 fingerprint of its TLS.'),
  auth: {
    type: 'string',
    enum: ['authenticated', 'anonymous'],
    description: 'Whether it carries credentials.',
  },
  email: optional('E-mail address that it names.', 1024),
  flow: optional('Flow id that it names.', 1024),
  call: text(
    'JSON-RPC method that it calls, with the tool of tools/call: tools/call:search. (batch) and (unreadable) are what batches of several methods, and bodies that cannot be read, share.',
    600,
  ),
} as const

const policySchema = {
  tags: ['Policy'],
  summary: 'The limits that count in the end, of a plan and environment or of a project',
  description: 'The query names a project, or a plan and an environment.',
  querystring: {
    type: 'object',
    additionalProperties: false,
    properties: {
      plan: text('A plan that projects.yaml declares.', 64),
      environment: text('An environment that projects.yaml declares.', 64),
      project: PROJECT,
    },
  },
}
const countersSchema = {
  tags: ['Counters'],
  summary: 'What a project has used of its limits; nothing is charged',
  description:
    'Rules that count by more than the project are shown when the query gives the other parts of their key.',
  params: { type: 'object', required: ['id'], properties: { id: PROJECT } },
  querystring: { type: 'object', additionalProperties: false, properties: PARTS },
}
const slotsSchema = {
  tags: ['Counters'],
  summary: 'In-flight slots that requests of this gateway hold, the oldest first',
}
const resetSchema = {
  tags: ['Counters'],
  summary: 'Reset one counter; this is logged',
  description:
    'The query gives the parts of the rule’s key: the project, the path and so on of a request that it would count. Other gateways may keep refusing from memory for as long as Redis told them to.',
  params: { type: 'object', required: ['rule'], properties: { rule: text('Name of a bucket or rule.', 64) } },
  querystring: {
    type: 'object',
    additionalProperties: false,
    properties: { project: PROJECT, ...PARTS, why: WHY, by: BY },
  },
}

/** 200; 404 for an unknown name, 422 when the query does not identify a counter, 503 while Redis is away. */
export function inspectRoutes(inspected: Inspected): FastifyPluginAsync {
  return async app => {
    answerRefusals(app)
    // One header in a query is a list, too.
    app.addHook<{ Querystring: { header?: unknown } }>('preValidation', async ({ query }) => {
      if (typeof query.header === 'string') query.header = [query.header]
    })
    app.get<{ Querystring: PolicyQuery }>('/policy', { schema: policySchema }, async ({ query }, reply) => {
      const of = policyAsked(query)
      if (of === undefined) return sendProblem(reply, 400, 'Name a project, or a plan and an environment.')
      return inspected.policy(of)
    })
    app.get<{ Params: { id: string }; Querystring: Omit<CounterName, 'rule' | 'project'> }>(
      '/projects/:id/counters',
      { schema: countersSchema },
      async ({ params, query }) => inspected.counters(params.id, query),
    )
    app.get('/slots', { schema: slotsSchema }, async () => inspected.slots())
    app.delete<{ Params: { rule: string }; Querystring: Omit<CounterName, 'rule'> & OverrideReason }>(
      '/counters/:rule',
      { schema: resetSchema },
      async ({ params, query: { why, by, ...parts }, ip }) =>
        inspected.reset(
          { ...parts, rule: params.rule },
          { ...(why && { why }), ...(by && { by }), from: ip },
        ),
    )
  }
}

interface PolicyQuery {
  readonly project?: string
  readonly plan?: string
  readonly environment?: string
}

/** Undefined if the query names neither or both. */
function policyAsked({ project, plan, environment }: PolicyQuery): PolicyOf | undefined {
  if (project !== undefined) return plan === undefined && environment === undefined ? { project } : undefined
  return plan !== undefined && environment !== undefined ? { plan, environment } : undefined
}
