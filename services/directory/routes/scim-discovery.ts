import { discover } from '../scim/discovery.js'
import { ScimError } from '../scim/error.js'
import { methods, param, query, type Request, type RouteHandler, resource, type Server } from './http.js'
import { scimEndpoint } from './scim-describe.js'

/** The discovery endpoints (RFC 7644, section 4); `baseOf` returns the URL of the request's directory. */
export function addDiscovery(server: Server, baseOf: (request: Request) => string): void {
  const answering =
    (path: string): RouteHandler =>
    async request =>
      discover(
        path.toLowerCase(),
        param(request, 'id') || undefined,
        baseOf(request),
        query(request, 'filter'),
      )

  const config = 'ServiceProviderConfig'
  resource(server, `/:directoryId/${config}`, {
    GET: scimEndpoint('What the intake can do', answering(config), { discovery: true }),
  })
  for (const path of ['ResourceTypes', 'Schemas']) {
    resource(server, `/:directoryId/${path}`, {
      GET: scimEndpoint(`List ${path}`, answering(path), { list: true, discovery: true }),
    })
    resource(server, `/:directoryId/${path}/:id`, {
      GET: scimEndpoint(`Read one of ${path}`, answering(path), { path: ['id'], discovery: true }),
    })
  }

  const refuseMe = async (): Promise<never> => {
    throw new ScimError(501, "A directory's secret belongs to no user, so there is no /Me.")
  }
  resource(server, '/:directoryId/Me', Object.fromEntries(methods.map(method => [method, refuseMe])))
}
