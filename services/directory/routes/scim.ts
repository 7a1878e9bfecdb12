import { answerErrors } from '../../http/errors.js'
import { sourceOf } from '../../http/server.js'
import { refuseWrongKeys } from '../../http/wrong-keys.js'
import { isJsonObject } from '../../json.js'
import { hashKey, isOneOf } from '../../keys.js'
import type { ServiceLog } from '../../log.js'
import type { Directory, JsonObject, JsonValue, ResourceType } from '../model.js'
import { scimBulkSchema, scimPatchSchema, scimResourceSchema, scimSearchSchema } from '../schemas/scim.js'
import { namings } from '../scim/attributes.js'
import { errorBody, ScimError } from '../scim/error.js'
import { attributeValue } from '../scim/json.js'
import type { ListParameters } from '../scim/question.js'
import { goodOnes, type SecretBox } from '../secrets.js'
import type { Store } from '../store/contract.js'
import { runBulk } from '../sync/bulk.js'
import type { ScimAnswer, ScimIntake, ScimRequest } from '../sync/intake.js'
import {
  acceptJson,
  baseUrlOf,
  bearer,
  clientLeaves,
  errorAnswers,
  type Method,
  param,
  query,
  queryInteger,
  type Reply,
  type Request,
  type RouteHandler,
  type RouteParts,
  resource,
  type Server,
} from './http.js'
import { addDiscovery, scimEndpoint } from './scim-describe.js'

export const scimPath = '/api/scim/v2.0'
const mediaType = 'application/scim+json'

/** The SCIM intake of each directory (RFC 7644), guarded by the directory's own secret. */
export function addScim(server: Server, parts: RouteParts, intake: ScimIntake): void {
  const { store, box, baseUrl, metrics, wrongKey } = parts
  acceptJson(server, [mediaType, 'application/json'])
  answerScimErrors(server, parts.log)

  const directories = new WeakMap<Request, Directory>()
  server.addHook('onRequest', async request => {
    if (request.is404) return
    const id = param(request, 'directoryId')
    try {
      directories.set(request, await admit(store, box, id, bearer(request)))
    } catch (error) {
      if (error instanceof ScimError && error.status === 401) {
        const { authorization } = request.headers
        await refuseWrongKeys(wrongKey, 'scim', { owner: id, source: sourceOf(request), authorization })
      }
      throw error
    }
  })
  server.addHook('onSend', async (_request, reply) => {
    if (reply.statusCode !== 204 && reply.statusCode !== 304) reply.type(`${mediaType}; charset=utf-8`)
  })
  server.addHook('onResponse', async (request, reply) =>
    metrics.scimAnswered(request.method, reply.statusCode),
  )
  const directoryOf = (request: Request): Directory => {
    const directory = directories.get(request)
    if (!directory) throw new ScimError(404, 'There is no directory with this id.')
    return directory
  }
  const baseOf = (request: Request): string =>
    `${baseUrlOf(request, baseUrl)}${scimPath}/${directoryOf(request).id}`

  const handle =
    (type: ResourceType): RouteHandler =>
    async (request, reply) => {
      const { 'if-match': ifMatch, 'if-none-match': ifNoneMatch } = request.headers
      const asked: ScimRequest = {
        method: (request.method === 'HEAD' ? 'GET' : request.method) as Method,
        type,
        id: param(request, 'id') || undefined,
        body: request.body,
        base: baseOf(request),
        asked: readAsked(request),
        conditions: { ifMatch, ifNoneMatch },
        signal: clientLeaves(reply),
      }
      return send(reply, await intake.handle(directoryOf(request), asked))
    }

  const search =
    (...types: ResourceType[]): RouteHandler =>
    async (request, reply) => {
      const asked = request.method === 'POST' ? readSearch(request.body) : readAsked(request)
      return intake.search(directoryOf(request), types, asked, baseOf(request), clientLeaves(reply))
    }

  for (const { type, path, name } of Object.values(namings)) {
    resource(server, `/:directoryId/${path}`, {
      POST: scimEndpoint(`Create a ${name}`, handle(type), { status: 201, body: scimResourceSchema }),
      GET: scimEndpoint(`List or find ${path}`, handle(type), { list: true }),
    })
    resource(server, `/:directoryId/${path}/:id`, {
      GET: scimEndpoint(`Read a ${name}`, handle(type), { path: ['id'] }),
      PUT: scimEndpoint(`Replace a ${name}`, handle(type), { path: ['id'], body: scimResourceSchema }),
      PATCH: scimEndpoint(`Change a ${name}`, handle(type), { path: ['id'], body: scimPatchSchema }),
      DELETE: scimEndpoint(`Delete a ${name}`, handle(type), { path: ['id'], status: 204 }),
    })
    resource(server, `/:directoryId/${path}/.search`, {
      POST: scimEndpoint(`Search ${path}`, search(type), { body: scimSearchSchema, list: true }),
    })
  }
  resource(server, '/:directoryId', {
    GET: scimEndpoint('List or find Users and Groups', search('user', 'group'), { list: true }),
  })
  resource(server, '/:directoryId/.search', {
    POST: scimEndpoint('Search Users and Groups', search('user', 'group'), {
      body: scimSearchSchema,
      list: true,
    }),
  })
  resource(server, '/:directoryId/Bulk', {
    POST: scimEndpoint(
      'Several changes in one request',
      async request => runBulk(intake, directoryOf(request), request.body, baseOf(request)),
      { body: scimBulkSchema },
    ),
  })
  addDiscovery(server, baseOf)
}

function send(reply: Reply, { status, body, location, version }: ScimAnswer): unknown {
  reply.code(status)
  if (location && status !== 204) reply.header('location', location)
  if (version) reply.header('etag', version)
  return body
}

/** Errors as in RFC 7644, section 3.12. */
function answerScimErrors(server: Server, log: ServiceLog): void {
  answerErrors(server, {
    ...errorAnswers(log),
    challenge: 'Bearer',
    send(refused, _request, reply) {
      const { status, message } = refused
      const typeOf400 = status === 400 ? 'invalidSyntax' : undefined
      const scimType = refused instanceof ScimError ? refused.scimType : typeOf400
      return reply.type(mediaType).send(errorBody(status, message, scimType))
    },
  })
}

/** The list parameters in the query of a GET (RFC 7644, section 3.4.2). Throws HttpError 400. */
function readAsked(request: Request): ListParameters {
  return {
    filter: query(request, 'filter'),
    sortBy: query(request, 'sortBy'),
    sortOrder: query(request, 'sortOrder'),
    startIndex: queryInteger(request, 'startIndex'),
    count: queryInteger(request, 'count'),
    attributes: namesOf(query(request, 'attributes')),
    excludedAttributes: namesOf(query(request, 'excludedAttributes')),
  }
}

/** The list parameters in the body of a `.search` (RFC 7644, section 3.4.3). Throws ScimError 400. */
function readSearch(body: unknown): ListParameters {
  if (!isJsonObject(body)) throw new ScimError(400, 'The body must be a JSON object.', 'invalidSyntax')
  return {
    filter: textOf(body, 'filter'),
    sortBy: textOf(body, 'sortBy'),
    sortOrder: textOf(body, 'sortOrder'),
    startIndex: integerOf(body, 'startIndex'),
    count: integerOf(body, 'count'),
    attributes: nameListOf(body, 'attributes'),
    excludedAttributes: nameListOf(body, 'excludedAttributes'),
  }
}

/** Names separated by commas. */
const namesOf = (text: string | undefined): string[] | undefined =>
  text
    ?.split(',')
    .map(name => name.trim())
    .filter(name => name !== '')

const read = <T extends JsonValue>(
  body: JsonObject,
  name: string,
  what: string,
  fits: (value: JsonValue) => value is T,
): T | undefined => {
  const value = attributeValue(body, name)
  if (value === undefined || value === null) return undefined
  if (!fits(value)) throw new ScimError(400, `${name} must be ${what}.`, 'invalidValue')
  return value
}
const isText = (value: JsonValue): value is string => typeof value === 'string'
const isInteger = (value: JsonValue): value is number => Number.isSafeInteger(value)
const isNames = (value: JsonValue): value is string[] => Array.isArray(value) && value.every(isText)

const textOf = (body: JsonObject, name: string) => read(body, name, 'a string', isText)
const integerOf = (body: JsonObject, name: string) => read(body, name, 'a whole number', isInteger)
const nameListOf = (body: JsonObject, name: string) => read(body, name, 'a list of attribute names', isNames)

/**
 * The directory that a SCIM secret opens. Checked in this order: the directory exists (404), the secret is its current
 * one or an old one that is still valid after a rotation (401), the directory is active (403). Throws ScimError.
 */
async function admit(
  store: Store,
  box: SecretBox,
  directoryId: string,
  secret: string | undefined,
): Promise<Directory> {
  const directory = await store.directory(directoryId)
  if (!directory) throw new ScimError(404, 'There is no directory with this id.')
  const { id, scimSecret, oldScimSecrets } = directory
  const sealed = [scimSecret, ...goodOnes(oldScimSecrets).map(old => old.secret)]
  const hashes = sealed.map(each => hashKey(box.open(each, id, 'scim')))
  if (secret === undefined || !isOneOf(secret, hashes)) {
    throw new ScimError(401, 'The header "Authorization: Bearer <secret>" is missing or its secret is wrong.')
  }
  if (directory.deactivated) throw new ScimError(403, 'This directory is deactivated.')
  return directory
}
