/** `/projects/{id}/credit`: what is added to the lifetime windows of a project, and what was added before. */
import type { FastifyPluginAsync } from 'fastify'
import { answerRefusals } from './problem.js'
import { BY, idParam, LONGEST_PROJECT, WHY } from './settable.js'

/** Credit as sent; the project is in the path. */
export interface CreditBody {
  readonly bucket: string
  readonly window: string
  readonly amount: number
  readonly why: string
  /** A name. Default: the address of the request. */
  readonly by?: string
}

/** Who sends it, and by which id it is added only once. */
export interface CreditSender {
  readonly from: string
  readonly id?: string | undefined
}

export interface Credits {
  /** `repeated`: its id had added it before. */
  add(project: string, body: CreditBody, sender: CreditSender): Promise<{ readonly repeated: boolean }>
  list(project: string): Promise<object>
}

const project = idParam({
  type: 'string',
  minLength: 1,
  maxLength: LONGEST_PROJECT,
  description: 'Id of a project that projects.yaml lists, or that credentials name.',
})
const name = (description: string) => ({ type: 'string', minLength: 1, maxLength: 64, description }) as const

const addSchema = {
  tags: ['Credit'],
  summary: 'Add to a lifetime window of a project; this is logged',
  description:
    'All gateways on one Redis admit by it from then on; one that remembers a refusal does after a second at most. An Idempotency-Key makes it safe to send the same credit again: within a week it is added once, and the answer is 200 instead of 201.',
  params: project,
  headers: {
    type: 'object',
    properties: {
      'idempotency-key': {
        type: 'string',
        minLength: 1,
        maxLength: 255,
        description: 'A text of your own for this credit, such as the number of the payment.',
      },
    },
  },
  body: {
    type: 'object',
    required: ['bucket', 'window', 'amount', 'why'],
    additionalProperties: false,
    properties: {
      bucket: name('Name of the bucket.'),
      window: name('Name of its lifetime window.'),
      amount: {
        type: 'integer',
        minimum: -Number.MAX_SAFE_INTEGER,
        maximum: Number.MAX_SAFE_INTEGER,
        description: 'How much is added. A negative number takes credit back, at most all of it.',
      },
      why: WHY,
      by: BY,
    },
  },
}
const listSchema = {
  tags: ['Credit'],
  summary: 'The lifetime windows of a project, and the newest hundred credits added to them',
  params: project,
}

/** 201, or 200 for what was added before; 404 and 422 for unknown names and impossible amounts, 503 while Redis is away. */
export function creditRoutes(credits: Credits): FastifyPluginAsync {
  return async app => {
    answerRefusals(app)
    app.get<{ Params: { id: string } }>('/projects/:id/credit', { schema: listSchema }, async ({ params }) =>
      credits.list(params.id),
    )
    app.post<{ Params: { id: string }; Body: CreditBody; Headers: { 'idempotency-key'?: string } }>(
      '/projects/:id/credit',
      { schema: addSchema, bodyLimit: 8 * 1024 },
      async ({ params, body, headers, ip }, reply) => {
        const sender = { from: ip, id: headers['idempotency-key'] }
        const added = await credits.add(params.id, body, sender)
        return reply.code(added.repeated ? 200 : 201).send(added)
      },
    )
  }
}
