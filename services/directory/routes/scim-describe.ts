import { Type } from 'typebox'
import type { JsonObject } from '../model.js'
import { refTo, text } from '../schemas/parts.js'
import {
  scimBulkSchema,
  scimErrorSchema,
  scimListSchema,
  type scimPatchSchema,
  scimResourceSchema,
  scimSearchSchema,
} from '../schemas/scim.js'
import { listed, resourceTypes, schemas, serviceProviderConfig } from '../scim/discovery.js'
import { ScimError } from '../scim/error.js'
import { parameters } from './describe.js'
import {
  type Endpoint,
  methods,
  param,
  query,
  type Request,
  type RouteHandler,
  resource,
  type Server,
} from './http.js'

type ScimBody =
  | typeof scimResourceSchema
  | typeof scimPatchSchema
  | typeof scimSearchSchema
  | typeof scimBulkSchema

/** The description of a SCIM endpoint in the API document. */
export interface ScimAbout {
  /** Path parameters besides the directory's id. */
  readonly path?: readonly string[]
  readonly body?: ScimBody
  readonly status?: 200 | 201 | 204
  readonly list?: boolean
  /** A discovery endpoint: it ignores all query parameters except a filter, which it refuses. */
  readonly discovery?: boolean
}

/** In any letter case; a schema's pattern has no flag for that. */
export const sortOrderPattern = `^(${['ascending', 'descending'].map(anyCase).join('|')})?$`
const listQuery = {
  filter: Type.Optional(text('RFC 7644, section 3.4.2.2')),
  startIndex: Type.Optional(Type.Integer({ default: 1, description: 'Values below 1 count as 1' })),
  count: Type.Optional(
    Type.Integer({ default: 100, description: 'Values below 0 count as 0, above 200 as 200' }),
  ),
  sortBy: Type.Optional(text()),
  sortOrder: Type.Optional(
    Type.String({
      pattern: sortOrderPattern,
      description: '`ascending` (the default) or `descending`',
    }),
  ),
}
const shownQuery = {
  attributes: Type.Optional(text('Names, separated by commas')),
  excludedAttributes: Type.Optional(text('Names, separated by commas')),
}

function anyCase(word: string): string {
  return word.replace(/[a-z]/g, letter => `[${letter.toUpperCase()}${letter}]`)
}

export function scimEndpoint(summary: string, handler: RouteHandler, about: ScimAbout = {}): Endpoint {
  const { path = [], body, status = 200, list, discovery } = about
  const asksInBody = body === scimSearchSchema || body === scimBulkSchema
  const querystring = Type.Object({ ...(list ? listQuery : {}), ...shownQuery })
  const answer = status === 204 ? Type.Null() : list ? refTo(scimListSchema) : refTo(scimResourceSchema)
  const schema = {
    tags: ['SCIM'],
    summary,
    security: [{ scimSecret: [] }],
    consumes: ['application/scim+json', 'application/json'],
    produces: ['application/scim+json'],
    params: parameters(['directoryId', ...path]),
    ...(asksInBody || discovery || status === 204 ? {} : { querystring }),
    ...(body ? { body: refTo(body) } : {}),
    response: {
      [status]: { description: 'Success', ...answer },
      '4xx': refTo(scimErrorSchema),
      '5xx': refTo(scimErrorSchema),
    },
  }
  return { schema, handler }
}

/** The discovery endpoints (RFC 7644, section 4); `baseOf` returns the URL of the request's directory. */
export function addDiscovery(server: Server, baseOf: (request: Request) => string): void {
  const discovery = (
    summary: string,
    documentOf: (request: Request) => JsonObject,
    about: ScimAbout = {},
  ) => ({
    GET: scimEndpoint(summary, async request => documentOf(request), { ...about, discovery: true }),
  })
  // It would be wrong to ignore a filter.
  const refuseFilter = (request: Request): void => {
    if (query(request, 'filter')) throw new ScimError(403, 'This list cannot be filtered.')
  }
  resource(
    server,
    '/:directoryId/ServiceProviderConfig',
    discovery('What the intake can do', request => {
      refuseFilter(request)
      return serviceProviderConfig(baseOf(request))
    }),
  )
  for (const [path, documentsOf] of Object.entries({ ResourceTypes: resourceTypes, Schemas: schemas })) {
    const list = (request: Request): JsonObject => {
      refuseFilter(request)
      return listed(documentsOf(baseOf(request)), undefined)
    }
    const one = (request: Request) => listed(documentsOf(baseOf(request)), param(request, 'id') || undefined)
    resource(server, `/:directoryId/${path}`, discovery(`List ${path}`, list, { list: true }))
    resource(server, `/:directoryId/${path}/:id`, discovery(`Read one of ${path}`, one, { path: ['id'] }))
  }

  const refuseMe = async (): Promise<never> => {
    throw new ScimError(501, "A directory's secret belongs to no user, so there is no /Me.")
  }
  resource(server, '/:directoryId/Me', Object.fromEntries(methods.map(method => [method, refuseMe])))
}
