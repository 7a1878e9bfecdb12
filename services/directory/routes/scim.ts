import type { Log } from '../log.js'
import type { Directory } from '../model.js'
import { ScimError } from '../scim/error.js'
import { isObject } from '../scim/json.js'
import type { SecretBox } from '../secrets.js'
import { hashKey } from '../secrets.js'
import type { Store } from '../store/contract.js'
import type { GroupSync } from '../sync/groups.js'
import type { UserSync } from '../sync/users.js'
import { credential, isKeyOf } from './auth.js'
import { baseUrlOf } from './base-url.js'
import {
  acceptJson,
  explain,
  logFault,
  param,
  type Reply,
  type Request,
  resource,
  retryAfter,
  type Server,
} from './http.js'
import { createScimReader, type Naming } from './scim-read.js'

export interface ScimParts {
  readonly store: Store
  readonly box: SecretBox
  readonly users: UserSync
  readonly groups: GroupSync
  readonly baseUrl: string | undefined
  readonly log: Log
}

export const scimPath = '/api/scim/v2.0'
const mediaType = 'application/scim+json'

/** The SCIM intake: Users and Groups of each directory (RFC 7644), guarded by the directory's own secret. */
export function addScim(server: Server, parts: ScimParts): void {
  const { store, box, baseUrl } = parts
  acceptJson(server, [mediaType, 'application/json'])
  answerScimErrors(server, parts.log)

  const directories = new WeakMap<Request, Directory>()
  server.addHook('onRequest', async request => {
    if (!request.is404) directories.set(request, await admit(request, store, box))
  })
  server.addHook('onSend', async (_request, reply) => {
    if (reply.statusCode !== 204) reply.type(`${mediaType}; charset=utf-8`)
  })
  const directoryOf = (request: Request): Directory => {
    const directory = directories.get(request)
    if (!directory) throw new ScimError(404, 'There is no directory with this id.')
    return directory
  }

  const routes = (type: Naming, sync: UserSync | GroupSync): void => {
    const read = createScimReader(store, type)
    const base = (request: Request): string => {
      const directory = directoryOf(request)
      return `${baseUrlOf(request, baseUrl)}${scimPath}/${directory.id}/${type.path}`
    }
    resource(server, `/:directoryId/${type.path}`, {
      POST: async (request, reply) => {
        const created = await sync.create(directoryOf(request), bodyOf(request))
        const view = await read.view(created, base(request), request)
        reply.code(201).header('location', `${base(request)}/${created.id}`)
        return view
      },
      GET: async request => read.list(directoryOf(request), base(request), request),
    })
    resource(server, `/:directoryId/${type.path}/:id`, {
      GET: async (request, reply) => {
        reply.header('location', `${base(request)}/${param(request, 'id')}`)
        return read.one(directoryOf(request), param(request, 'id'), base(request), request)
      },
      PUT: async request => {
        const replaced = await sync.replace(directoryOf(request), param(request, 'id'), bodyOf(request))
        return read.view(replaced, base(request), request)
      },
      PATCH: async (request, reply) => {
        const patched = await sync.patch(directoryOf(request), param(request, 'id'), bodyOf(request))
        // RFC 7644, section 3.5.2 allows 204: the cost stays that of the change, not of the group.
        if (await read.isLarge(patched, request)) return nothing(reply)
        return read.view(patched, base(request), request)
      },
      DELETE: async (request, reply) => {
        await sync.remove(directoryOf(request), param(request, 'id'))
        return nothing(reply)
      },
    })
  }
  routes({ type: 'user', path: 'Users', name: 'User' }, parts.users)
  routes({ type: 'group', path: 'Groups', name: 'Group' }, parts.groups)
}

function nothing(reply: Reply): undefined {
  reply.code(204)
  return undefined
}

/** Checks in this order: the directory exists, the secret is right, the directory is active. */
async function admit(request: Request, store: Store, box: SecretBox): Promise<Directory> {
  const directory = await store.directory(param(request, 'directoryId'))
  if (!directory) throw new ScimError(404, 'There is no directory with this id.')
  const { scimSecret, oldScimSecret } = directory
  const overlaps = oldScimSecret !== undefined && Date.parse(oldScimSecret.until) > Date.now()
  const good = [scimSecret, ...(overlaps ? [oldScimSecret.secret] : [])]
  const hashes = good.map(sealed => hashKey(box.open(sealed, directory.id, 'scim')))
  if (!isKeyOf(credential(request, ['bearer']), hashes)) {
    throw new ScimError(401, 'The header "Authorization: Bearer <secret>" is missing or its secret is wrong.')
  }
  if (directory.deactivated) throw new ScimError(403, 'This directory is deactivated.')
  return directory
}

function bodyOf(request: Request): unknown {
  if (!isObject(request.body)) throw new ScimError(400, 'The body must be a JSON object.', 'invalidSyntax')
  return request.body
}

/** Errors as RFC 7644, section 3.12: `status` is text, `scimType` only where the RFC has a word for it. */
function answerScimErrors(server: Server, log: Log): void {
  const send = (reply: Reply, status: number, detail: string, scimType?: string): void => {
    const schemas = ['urn:ietf:params:scim:api:messages:2.0:Error']
    if (status === 401) reply.header('www-authenticate', 'Bearer')
    if (status === 503) reply.header('retry-after', retryAfter)
    reply.code(status).type(mediaType)
    reply.send({ schemas, status: String(status), ...(scimType ? { scimType } : {}), detail })
  }
  server.setErrorHandler((error, request, reply) => {
    if (error instanceof ScimError) return send(reply, error.status, error.message, error.scimType)
    const { status, message } = explain(error)
    if (status >= 500) logFault(log, request, error)
    return send(reply, status, message, status === 400 ? 'invalidSyntax' : undefined)
  })
  server.setNotFoundHandler((_request, reply) => send(reply, 404, 'There is nothing at this path.'))
}
