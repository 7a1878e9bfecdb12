import { isDeepStrictEqual } from 'node:util'
import { Type } from 'typebox'
import { firstWebhook, queueOf } from '../events/queue.js'
import type { Directory, DirectoryScope } from '../model.js'
import {
  type DirectoryChange,
  directoryChangeSchema,
  directorySchema,
  type NewDirectory,
  identifierSchema as name,
  newDirectorySchema,
  rotationSchema,
  type SecretRotation,
} from '../schemas/directory.js'
import { listOf, refTo } from '../schemas/parts.js'
import type { Store } from '../store/contract.js'
import { purgeRemoved } from '../sync/directories.js'
import { identifier } from './body.js'
import { endpoint, pageQuery } from './describe.js'
import { changeDirectory, readDirectory, rotateScimSecret } from './directory-input.js'
import { viewDirectories, viewDirectory } from './directory-view.js'
import {
  baseUrlOf,
  param,
  query,
  type Reply,
  type Request,
  type RouteParts,
  resource,
  type Server,
} from './http.js'
import { findDirectory, noDirectory, readOn, readTenantProduct } from './paging.js'

const tag = 'Directories'
const data = refTo(directorySchema)
const listed = listOf(directorySchema)
const path = ['directoryId']

/** The spec's endpoints 1 to 3, and change, removal, secret rotation and the list of a product. */
export function addDirectories(server: Server, parts: RouteParts): void {
  const { store, box, baseUrl, courier, directories } = parts

  const viewParts = (request: Request) => ({ store, box, baseUrl: baseUrlOf(request, baseUrl) })
  const view = (request: Request, directory: Directory) => viewDirectory(viewParts(request), directory)
  const list = async (request: Request, reply: Reply, scope: DirectoryScope): Promise<object> => {
    const read = (page: Parameters<Store['directories']>[1]) => store.directories(scope, page)
    const { items, more } = await readOn(request, reply, baseUrl, read, directory => directory)
    return { data: await viewDirectories(viewParts(request), items), ...more }
  }
  const change = async (request: Request, next: (directory: Directory) => Directory): Promise<object> => {
    const changed = await directories.change(param(request, 'directoryId'), next)
    if (!changed) throw noDirectory()
    return view(request, changed)
  }

  resource(server, '/', {
    POST: endpoint(
      { tag, summary: 'Create a directory', body: refTo(newDirectorySchema), data, status: 201 },
      async request => {
        const directory = readDirectory(request.body as NewDirectory, parts)
        await store.createDirectory(directory)
        return view(request, directory)
      },
    ),
    GET: endpoint(
      {
        tag,
        summary: 'List the directories of a tenant and product',
        query: { tenant: name, product: name, ...pageQuery },
        data: listed,
        paged: true,
      },
      async (request, reply) => list(request, reply, readTenantProduct(request)),
    ),
  })
  resource(server, '/product', {
    GET: endpoint(
      {
        tag,
        summary: 'List the directories of a product, whatever their tenant',
        query: { product: name, ...pageQuery },
        data: listed,
        paged: true,
      },
      async (request, reply) =>
        list(request, reply, {
          product: identifier(query(request, 'product'), 'The query parameter product'),
        }),
    ),
  })
  resource(server, '/:directoryId', {
    GET: endpoint({ tag, summary: 'Read a directory', path, data }, async request =>
      view(request, await findDirectory(store, param(request, 'directoryId'))),
    ),
    PATCH: endpoint(
      {
        tag,
        summary: 'Rename, deactivate or activate a directory, or change its webhook and its log',
        description:
          'Fields that are not sent stay as they are. An empty `webhook_url` removes the webhook and the events that wait for it.',
        path,
        body: refTo(directoryChangeSchema),
        data,
      },
      async request => {
        let isOther = false
        const changed = await change(request, directory => {
          const after = changeDirectory(directory, request.body as DirectoryChange, parts)
          isOther = !isDeepStrictEqual(after.webhook, directory.webhook)
          return after
        })
        // Failed events may succeed with the changed webhook; events for a removed one are dropped.
        if (isOther) courier.hasten(queueOf(param(request, 'directoryId'), firstWebhook))
        return changed
      },
    ),
    DELETE: endpoint(
      {
        tag,
        summary: 'Remove a directory with all its users, groups and events',
        description:
          'Its webhooks receive `dsync.deleted` and nothing else: the directory is gone, its users are not.',
        path,
        data: Type.Null(),
      },
      async request => {
        if (!(await directories.remove(param(request, 'directoryId')))) throw noDirectory()
        await purgeRemoved(store)
      },
    ),
  })
  resource(server, '/:directoryId/scim-secret', {
    POST: endpoint(
      {
        tag,
        summary: 'Rotate the SCIM secret',
        description:
          'The answer holds the new secret. The old one stays valid for `overlap_seconds`, and older ones for as long as they were promised; 0 ends all of them at once.',
        path,
        body: rotationSchema,
        data,
      },
      async request =>
        change(request, directory => rotateScimSecret(directory, request.body as SecretRotation, box)),
    ),
  })
}
