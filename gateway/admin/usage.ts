/** `/usage`: what projects have used, hour by hour. */
import { Readable } from 'node:stream'
import type { FastifyPluginAsync } from 'fastify'
import { answerRefusals } from './problem.js'
import { LONGEST_PROJECT } from './settable.js'

export interface UsageQuery {
  readonly from?: string
  readonly to?: string
  readonly project?: string
}

/** Rows as plain data. Rejects before the first if there are none to be had. */
export type ReadUsage = (asked: UsageQuery) => AsyncGenerator<object>

const time = (description: string) => ({ type: 'string', minLength: 1, maxLength: 64, description }) as const

const usageSchema = {
  tags: ['Live'],
  summary:
    'Requests by hour, project and bucket, a JSON object in each line; 404 without "usage" in gateway.yaml',
  description:
    'Each line has hour, project, plan, environment, bucket, requests, admitted, refused and cost. With Redis it is the usage of all gateways, up to ten seconds old for others than this one.',
  produces: ['application/x-ndjson'],
  querystring: {
    type: 'object',
    additionalProperties: false,
    properties: {
      from: time('A day (its beginning, UTC) or a moment; its whole hour counts. Default: 24 hours ago.'),
      to: time('A day or a moment, not contained. Default: now.'),
      project: {
        type: 'string',
        minLength: 1,
        maxLength: LONGEST_PROJECT,
        description: 'Only of this project.',
      },
    },
  },
}

export function usageRoutes(read: ReadUsage): FastifyPluginAsync {
  return async app => {
    answerRefusals(app)
    app.get<{ Querystring: UsageQuery }>('/usage', { schema: usageSchema }, async ({ query }, reply) => {
      const rows = read(query)
      // What is wrong shows here, while there can still be another status.
      const first = await rows.next()
      return reply.type('application/x-ndjson').send(Readable.from(linesOf(first, rows)))
    })
  }
}

async function* linesOf(first: IteratorResult<object>, rest: AsyncGenerator<object>) {
  if (first.done) return
  yield lineOf(first.value)
  for await (const row of rest) yield lineOf(row)
}

const lineOf = (row: object): string => `${JSON.stringify(row)}\n`
