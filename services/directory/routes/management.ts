import type { Log } from '../log.js'
import type { Member, Resource, ResourceType } from '../model.js'
import { viewGroup, viewMembers } from '../scim/group.js'
import { viewUser } from '../scim/user.js'
import type { SecretBox } from '../secrets.js'
import { everybody, type Store } from '../store/contract.js'
import { credential, isKeyOf } from './auth.js'
import { baseUrlOf } from './base-url.js'
import { readDirectory, readPage, readScope, readTenantProduct, viewDirectory } from './directories.js'
import {
  acceptJson,
  explain,
  HttpError,
  logFault,
  param,
  type Request,
  resource,
  retryAfter,
  type Server,
} from './http.js'

export interface ManagementParts {
  readonly store: Store
  readonly box: SecretBox
  readonly keyHashes: readonly Buffer[]
  readonly baseUrl: string | undefined
  readonly allowPrivateWebhooks: boolean
  readonly log: Log
}

/** Paths of the management API; the second is an alias. */
export const managementPaths = ['/api/v1/directory-sync', '/api/v1/dsync'] as const

const success = (data: unknown): object => ({ data, error: null })

/** The spec's endpoints 1 to 8. Everything under the path needs the key; answers are `{data, error}`. */
export function addManagement(server: Server, parts: ManagementParts): void {
  const { store, box, keyHashes, baseUrl, allowPrivateWebhooks } = parts
  acceptJson(server, ['application/json'])
  answerErrors(server, parts.log)
  server.addHook('onRequest', async request => {
    if (isKeyOf(credential(request, ['api-key', 'bearer']), keyHashes)) return
    throw new HttpError(401, 'The header "Authorization: Api-Key <key>" is missing or its key is wrong.')
  })

  const list = async (request: Request, type: ResourceType): Promise<Resource[]> =>
    store.resources(await readScope(request, store), type, readPage(request))
  const single = async (request: Request, type: ResourceType): Promise<Resource> => {
    const found = await store.resource(await readScope(request, store), type, param(request, 'id'))
    if (!found) throw new HttpError(404, `There is no ${type} with this id.`)
    return found
  }

  resource(server, '/', {
    POST: async (request, reply) => {
      const directory = readDirectory(request.body, box, allowPrivateWebhooks)
      await store.createDirectory(directory)
      reply.code(201)
      return success(viewDirectory(directory, box, baseUrlOf(request, baseUrl)))
    },
    GET: async request => {
      const directories = await store.directories(readTenantProduct(request), readPage(request))
      return success(directories.map(each => viewDirectory(each, box, baseUrlOf(request, baseUrl))))
    },
  })
  resource(server, '/:id', {
    GET: async request => {
      const directory = await store.directory(param(request, 'id'))
      if (!directory) throw new HttpError(404, 'There is no directory with this id.')
      return success(viewDirectory(directory, box, baseUrlOf(request, baseUrl)))
    },
  })
  resource(server, '/users', {
    GET: async request => success((await list(request, 'user')).map(viewUser)),
  })
  resource(server, '/users/:id', {
    GET: async request => success(viewUser(await single(request, 'user'))),
  })
  resource(server, '/groups', {
    GET: async request => success((await list(request, 'group')).map(viewGroup)),
  })
  resource(server, '/groups/:id', {
    GET: async request => {
      const group = await single(request, 'group')
      return success(viewGroupWithMembers(group, await store.members(group.id, everybody)))
    },
  })
  resource(server, '/groups/:id/members', {
    GET: async request => {
      const group = await single(request, 'group')
      const members = await store.members(group.id, readPage(request))
      return { data: members.map(({ userId }) => ({ user_id: userId })) }
    },
  })
}

function viewGroupWithMembers(group: Resource, members: Member[]): object {
  const view = viewGroup(group)
  const raw = { ...view.raw, members: viewMembers(members) }
  const pairs = members.map(({ userId }) => ({ group_id: group.id, user_id: userId }))
  return { ...view, raw, members: pairs }
}

/** Errors as `{data: null, error: {message, code}}` (design section 11), for known and unknown paths alike. */
export function answerErrors(server: Server, log: Log): void {
  server.setErrorHandler((error, request, reply) => {
    const { status, message } = explain(error)
    if (status >= 500) logFault(log, request, error)
    if (status === 503) reply.header('retry-after', retryAfter)
    reply.code(status).send({ data: null, error: { message, code: status } })
  })
  server.setNotFoundHandler((_request, reply) => {
    reply.code(404).send({ data: null, error: { message: 'There is nothing at this path.', code: 404 } })
  })
}
