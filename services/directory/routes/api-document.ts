import swagger from '@fastify/swagger'
import { API_PAGE_HEADERS, apiPage } from '../../http/api-page.js'
import { components } from '../schemas/index.js'
import { operationId, withGatewayAnswers } from './api-operation.js'
import { type RouteHandler, resource, type Server } from './http.js'

/** Paths of the document and of the page that shows it. */
export const apiDocumentPath = '/api/v1/openapi.json'
export const apiPagePath = '/api/v1/docs'

const description = `Directory connections, their users and groups, and the events of their changes.

Identity providers write through SCIM 2.0 with a directory's own secret; integrators read and manage through the
management API with an API key.`

/**
 * Adds the OpenAPI document, made from the schemas beside the routes, and a page to browse it. Neither needs a key:
 * they contain no tenant's data. `baseUrl` is the service's own address if it is known; `alias` is a path whose routes
 * repeat others and stay out of the document. To be called before the routes are added.
 */
export function addApiDocument(server: Server, alias: string, baseUrl: string | undefined): void {
  server.register(swagger, {
    hideUntagged: true,
    openapi: {
      openapi: '3.1.0',
      servers: [{ url: baseUrl ?? '/' }],
      info: { title: 'Sluice directory service', description, version: 'v1' },
      tags: [
        { name: 'Directories', description: 'Connections to identity providers' },
        { name: 'Users and groups', description: 'What identity providers have sent, read by integrators' },
        { name: 'Webhooks', description: 'Where the events of a directory go' },
        { name: 'Events', description: 'Webhook events: batches, log, replay and feed' },
        { name: 'External provider', description: 'Directories that are pulled' },
        { name: 'SCIM', description: 'The intake that identity providers call (RFC 7644)' },
      ],
      components: {
        securitySchemes: {
          managementKey: {
            type: 'apiKey',
            in: 'header',
            name: 'Authorization',
            description: '`Api-Key <key>`, one of `API_KEYS`',
          },
          scimSecret: { type: 'http', scheme: 'bearer', description: "The directory's `scim.secret`" },
        },
      },
    },
    transform: ({ schema, url, route }) => {
      if (!schema?.tags || `${url}/`.startsWith(`${alias}/`))
        return { schema: { ...schema, hide: true }, url }
      const id = operationId(String(route.method), url)
      return { schema: { ...schema, operationId: id, response: withGatewayAnswers(schema) }, url }
    },
    refResolver: { buildLocalReference: (json, _baseUri, _fragment, index) => String(json.$id ?? index) },
  })
  for (const schema of components) server.addSchema(schema)
  server.register(async scope => {
    const get = (path: string, handler: RouteHandler): void => resource(scope, path, { GET: handler })
    get(apiDocumentPath, async () => scope.swagger())
    get(apiPagePath, async (_request, reply) =>
      reply.headers(API_PAGE_HEADERS).serializer(String).send(apiPage(scope.swagger(), apiDocumentPath)),
    )
  })
}
