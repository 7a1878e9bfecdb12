import swagger from '@fastify/swagger'
import { API_PAGE_HEADERS, apiPage } from '../../http/api-page.js'
import type { Schema } from '../../http/server.js'
import { components } from '../schemas/index.js'
import { problemSchema, refTo } from '../schemas/parts.js'
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

const areas = [
  { prefix: /^\/api\/v1\/directory-sync/, name: '' },
  { prefix: /^\/api\/scim\/v2\.0\/:directoryId/, name: 'Scim' },
  { prefix: /^\/api\/scim\/oauth/, name: 'Consent' },
]

/** A name for generated clients, made of method and path: `getGroupsByIdMembers`, `patchScimUsersById`. */
function operationId(method: string, url: string): string {
  const area = areas.find(({ prefix }) => prefix.test(url))
  const path = area ? url.replace(area.prefix, '') : url
  const words = path
    .split('/')
    .map(part => part.replace(/^:directoryId$/, 'directory').replace(/^:/, 'by-'))
    .flatMap(part => part.split(/[^A-Za-z]+/))
    .filter(word => word !== '')
  const named = words.length === 0 && area?.name === '' ? ['directories'] : words
  return [method.toLowerCase(), area?.name ?? '', ...named.map(capital)].join('')
}

const capital = (word: string): string => `${word.charAt(0).toUpperCase()}${word.slice(1)}`

type Answers = Readonly<Record<string, unknown>>

/** The responses of a route; errors also in the form of the gateway's own errors. */
function withGatewayAnswers(schema: Schema): Answers {
  const own = schema.response as Answers
  const [mediaType = 'application/json'] = (schema as { produces?: string[] }).produces ?? []
  const problem = { 'application/problem+json': { schema: refTo(problemSchema) } }
  const failed = (status: '4xx' | '5xx', description: string) => ({
    [status]: { description, content: { [mediaType]: { schema: own[status] }, ...problem } },
  })
  return {
    ...own,
    ...failed('4xx', 'What was wrong with the request; as problem+json when the gateway refused it'),
    ...failed('5xx', 'The request was not at fault; as problem+json when the gateway answers'),
    429: {
      description: 'A limit of the gateway in front, or too many wrong keys; try again after Retry-After',
      headers: { 'Retry-After': { type: 'integer', description: 'Seconds' } },
      content: { ...problem, [mediaType]: { schema: own['4xx'] } },
    },
  }
}
