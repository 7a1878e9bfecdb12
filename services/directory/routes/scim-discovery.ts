import type { JsonObject } from '../model.js'
import { resourceTypes, schemas, serviceProviderConfig } from '../scim/discovery.js'
import { ScimError } from '../scim/error.js'
import { methods, param, query, type Request, resource, type Server } from './http.js'
import { scimEndpoint } from './scim-describe.js'

/** What the intake tells of itself (RFC 7644, section 4); `baseOf` gives the address of the request's directory. */
export function addDiscovery(server: Server, baseOf: (request: Request) => string): void {
  resource(server, '/:directoryId/ServiceProviderConfig', {
    GET: scimEndpoint(
      'What the intake can do',
      async request => {
        refuseFilter(request)
        return serviceProviderConfig(baseOf(request))
      },
      { discovery: true },
    ),
  })
  addDocuments(server, baseOf, 'ResourceTypes', resourceTypes)
  addDocuments(server, baseOf, 'Schemas', schemas)

  const refuseMe = async (): Promise<never> => {
    throw new ScimError(501, "A directory's secret belongs to no user, so there is no /Me.")
  }
  resource(server, '/:directoryId/Me', Object.fromEntries(methods.map(method => [method, refuseMe])))
}

function addDocuments(
  server: Server,
  baseOf: (request: Request) => string,
  path: string,
  documents: (base: string) => Map<string, JsonObject>,
): void {
  resource(server, `/:directoryId/${path}`, {
    GET: scimEndpoint(
      `List ${path}`,
      async request => {
        refuseFilter(request)
        const Resources = [...documents(baseOf(request)).values()]
        return {
          schemas: ['urn:ietf:params:scim:api:messages:2.0:ListResponse'],
          totalResults: Resources.length,
          startIndex: 1,
          itemsPerPage: Resources.length,
          Resources,
        }
      },
      { list: true, discovery: true },
    ),
  })
  resource(server, `/:directoryId/${path}/:id`, {
    GET: scimEndpoint(
      `Read one of ${path}`,
      async request => {
        const document = documents(baseOf(request)).get(param(request, 'id'))
        if (!document) throw new ScimError(404, `There is nothing of this name in ${path}.`)
        return document
      },
      { path: ['id'], discovery: true },
    ),
  })
}

/** RFC 7644, section 4: what a filter asks of these would be wrong to ignore. */
function refuseFilter(request: Request): void {
  if (query(request, 'filter')) throw new ScimError(403, 'This list cannot be filtered.')
}
