import type { Directory, DirectoryScope, Scope } from '../model.js'
import type { Store } from '../store/contract.js'
import { identifier } from './body.js'
import { HttpError, query, type Request } from './http.js'

/** The query's tenant and product. Throws 400 when one is missing or not a valid name. */
export function readTenantProduct(request: Request): Required<DirectoryScope> {
  const tenant = query(request, 'tenant')
  const product = query(request, 'product')
  if (!tenant || !product) throw new HttpError(400, 'The query parameters tenant and product are required.')
  return { tenant: identifier(tenant, 'tenant'), product: identifier(product, 'product') }
}

/** Where a query's directories are looked up. */
export type Lookup = Pick<Store, 'directory' | 'directories'>

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

/** The directory with that id. Throws 404. */
export async function findDirectory(store: Pick<Store, 'directory'>, id: string): Promise<Directory> {
  const directory = await store.directory(id)
  if (!directory) throw new HttpError(404, 'There is no directory with this id.')
  return directory
}

/** The scope of a read: `directoryId`, or tenant and product. Throws 400, or 404 for an unknown directory. */
export async function readScope(request: Request, store: Pick<Store, 'directory'>): Promise<Scope> {
  const directoryId = query(request, 'directoryId')
  if (!directoryId) return readTenantProduct(request)
  const directory = await store.directory(directoryId)
  const { tenant = directory?.tenant, product = directory?.product } = {
    tenant: query(request, 'tenant'),
    product: query(request, 'product'),
  }
  if (!directory || directory.tenant !== tenant || directory.product !== product) {
    throw new HttpError(404, 'There is no directory with this id.')
  }
  return { directoryId }
}
