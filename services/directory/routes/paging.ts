import type { Directory, DirectoryScope, ListPage, ListPlace, Scope } from '../model.js'
import type { Store } from '../store/contract.js'
import { identifier } from './body.js'
import { aliases } from './describe.js'
import {
  baseUrlOf,
  HttpError,
  query,
  queryInteger,
  type Reply,
  type Request,
  type RouteHandler,
} from './http.js'

const defaultPage = 50
const largestPage = 500
const maxTokenLength = 512

/** `pageOffset` from 0 or `pageToken`, and `pageLimit` (default 50; more than 500 counts as 500). */
export function readPage(request: Request): ListPage {
  const offset = queryInteger(request, nameOf(request, 'pageOffset')) ?? 0
  const limit = queryInteger(request, nameOf(request, 'pageLimit')) ?? defaultPage
  const token = query(request, nameOf(request, 'pageToken'))
  if (offset < 0) throw new HttpError(400, 'pageOffset must not be negative.')
  if (limit < 1) throw new HttpError(400, 'pageLimit must be at least 1.')
  if (token && offset > 0) throw new HttpError(400, 'pageToken and pageOffset exclude each other: send one.')
  return { offset, limit: Math.min(limit, largestPage), after: token ? readToken(token) : undefined }
}

const namesOf = (name: string): string[] => [name, ...(aliases[name] ?? [])]

/** The name that the request uses; two of them could contradict each other. */
function nameOf(request: Request, name: string): string {
  const used = namesOf(name).filter(each => query(request, each) !== undefined)
  if (used.length > 1) throw new HttpError(400, `${used.join(' and ')} mean the same: send one.`)
  return used[0] ?? name
}

/**
 * Reads one item more than the page holds, to know whether there is a next page. Returns its token and sets its URL as
 * `Link` (RFC 8288), which also serves responses that have `data` only.
 */
export async function readOn<Item>(
  request: Request,
  reply: Reply,
  baseUrl: string | undefined,
  read: (page: ListPage) => Promise<Item[]>,
  placeOf: (item: Item) => ListPlace,
): Promise<{ items: Item[]; more: { pageToken?: string } }> {
  const page = readPage(request)
  const found = await read({ ...page, limit: page.limit + 1 })
  const items = found.slice(0, page.limit)
  const last = items.at(-1)
  if (found.length === items.length || last === undefined) return { items, more: {} }
  const pageToken = writeToken(placeOf(last))
  const next = new URL(request.url, baseUrlOf(request, baseUrl) || 'http://localhost')
  for (const name of ['pageOffset', 'pageToken'].flatMap(namesOf)) next.searchParams.delete(name)
  next.searchParams.set('pageToken', pageToken)
  reply.header('link', `<${next.href}>; rel="next"`)
  return { items, more: { pageToken } }
}

/** A handler for a list in a scope, each item as `view` shows it. */
export const listOfScope =
  <Item>(
    { store, baseUrl }: { store: Pick<Store, 'directory'>; baseUrl: string | undefined },
    read: (scope: Scope, page: ListPage) => Promise<Item[]>,
    view: (item: Item) => object,
    placeOf: (item: Item) => ListPlace,
  ): RouteHandler =>
  async (request, reply) => {
    const scope = await readScope(request, store)
    const { items, more } = await readOn(request, reply, baseUrl, page => read(scope, page), placeOf)
    return { data: items.map(view), ...more }
  }

function writeToken({ created, id }: ListPlace): string {
  return Buffer.from(JSON.stringify([created, id])).toString('base64url')
}

/** A token only says where to continue in a list that the caller may read anyway, so it needs no signature. */
function readToken(token: string): ListPlace {
  try {
    if (token.length > maxTokenLength) throw new Error('too long')
    const [created, id] = JSON.parse(Buffer.from(token, 'base64url').toString()) as unknown[]
    if (typeof created === 'string' && typeof id === 'string') return { created, id }
  } catch {
    // Rejected below like any other token that is not ours.
  }
  throw new HttpError(400, 'pageToken does not come from this API: start without it.')
}

/** The query's tenant and product. Throws 400 when one is missing or not a valid name. */
export function readTenantProduct(request: Request): Required<DirectoryScope> {
  const tenant = query(request, 'tenant')
  const product = query(request, 'product')
  if (!tenant || !product) throw new HttpError(400, 'The query parameters tenant and product are required.')
  return { tenant: identifier(tenant, 'tenant'), product: identifier(product, 'product') }
}

/** Where a query's directories are looked up. */
export interface Lookup extends Pick<Store, 'directory'> {
  directories(scope: DirectoryScope, page: ListPage): Promise<Directory[]>
}

/** Also finds removed directories with undelivered events; by tenant and product only if no present one matches. */
export const withDeleted = (store: Store): Lookup => ({
  directory: async id => (await store.directory(id)) ?? (await store.deletedDirectory(id)),
  async directories(scope, page) {
    const found = await store.directories(scope, page)
    if (found.length > 0) return found
    const { tenant, product } = scope
    return (await store.deletedDirectories()).filter(
      each => each.product === product && each.tenant === tenant,
    )
  },
})

export const noDirectory = (): HttpError => new HttpError(404, 'There is no directory with this id.')

/** The directory with that id. Throws 404. */
export async function findDirectory(store: Pick<Store, 'directory'>, id: string): Promise<Directory> {
  const directory = await store.directory(id)
  if (!directory) throw noDirectory()
  return directory
}

/** The scope of a read: `directoryId`, or tenant and product. Throws 400, or 404 for an unknown directory. */
export async function readScope(request: Request, store: Pick<Store, 'directory'>): Promise<Scope> {
  const directoryId = query(request, 'directoryId')
  if (!directoryId) return readTenantProduct(request)
  const directory = await findDirectory(store, directoryId)
  for (const name of ['tenant', 'product'] as const) {
    if ((query(request, name) ?? directory[name]) !== directory[name]) throw noDirectory()
  }
  return { directoryId }
}
