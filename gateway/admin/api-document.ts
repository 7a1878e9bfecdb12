/** The OpenAPI document of the admin port, made from the schemas beside the routes, and a page to browse it. */
import swagger from '@fastify/swagger'
import type { FastifyInstance } from 'fastify'
import { API_PAGE_HEADERS, apiPage } from '../../services/http/api-page.js'

/** Paths of the document and its page; neither needs a key, because they tell nothing about this gateway. */
export const DOCUMENT_PATH = '/openapi.json'
export const PAGE_PATH = '/docs'

/** Responses of every route; what a route's own errors mean is in its description. */
const ANSWERS = {
  200: { description: 'What was asked for' },
  default: {
    description: 'Problem details (RFC 9457)',
    content: {
      'application/problem+json': {
        schema: {
          type: 'object',
          required: ['type', 'title', 'status', 'detail'],
          properties: {
            type: { type: 'string' },
            title: { type: 'string' },
            status: { type: 'integer' },
            detail: { type: 'string', description: 'What was wrong, and what to do' },
          },
        },
      },
    },
  },
}

/** Must be awaited before routes are added. */
export async function addApiDocument(app: FastifyInstance): Promise<void> {
  await app.register(swagger, {
    hideUntagged: true,
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Sluice admin port',
        description:
          'State, policy and counters of a gateway that runs. When admin.key is set, everything but health asks for it. Documents of the services behind the gateway: see GET /.',
        version: 'v1',
      },
      tags: [
        { name: 'Health', description: 'For orchestrators and monitoring' },
        { name: 'Live', description: 'What happens now' },
        { name: 'Policy', description: 'What is in force, and why' },
        { name: 'Counters', description: 'What is counted now' },
        { name: 'Access', description: 'Who is denied or exempt' },
        { name: 'Overrides', description: 'What was changed here without the files' },
      ],
      components: { securitySchemes: { adminKey: { type: 'http', scheme: 'bearer' } } },
    },
    transform: ({ schema, url, route }) => ({
      schema: { ...schema, response: ANSWERS, ...(!route.config?.open && { security: [{ adminKey: [] }] }) },
      url,
    }),
  })
  await app.register(async scope => {
    scope.addHook('onRoute', route => {
      route.config = { ...route.config, open: true }
    })
    scope.get(PAGE_PATH, async (_request, reply) =>
      reply.headers(API_PAGE_HEADERS).send(apiPage(app.swagger(), DOCUMENT_PATH)),
    )
    scope.get(DOCUMENT_PATH, async () => app.swagger())
  })
}
