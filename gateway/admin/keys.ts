/** `GET /keys`: the API keys of projects, without the keys. `sluice keys` makes and changes them. */
import type { FastifyPluginAsync } from 'fastify'
import type { KeyList } from './key-list.js'
import { LONGEST_PROJECT } from './settable.js'

const schema = {
  tags: ['Keys'],
  summary: 'The API keys of projects: who has which, and when each was last used',
  description:
    'At most 1000 keys, those that work first. "sluice keys" makes, rotates and revokes them. A key itself is never shown.',
  querystring: {
    type: 'object',
    additionalProperties: false,
    properties: {
      project: {
        type: 'string',
        minLength: 1,
        maxLength: LONGEST_PROJECT,
        description: 'Only the keys of this project.',
      },
    },
  },
}

export function keyRoutes(keys: (project?: string) => Promise<KeyList>): FastifyPluginAsync {
  return async app => {
    app.get<{ Querystring: { project?: string } }>('/keys', { schema }, async ({ query }) =>
      keys(query.project),
    )
  }
}
