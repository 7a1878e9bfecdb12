import type { Directory, DirectoryScope, Scope } from '../model.js'
import type { Store } from '../store/contract.js'
import { identifier } from './directory-input.js'
import { HttpError, query, type Request } from './http.js'

/** The query's tenant and product. Throws 400 when one is missing or could not be one's name. */
export function readTenantProduct(request: Request): Required<DirectoryScope> {
  const tenant = query(request, 'tenant')
  const product = query(request, 'product')
  if (!tenant || !product) throw new HttpError(400, 'The query parameters tenant and product are required.')
  return { tenant: identifier(tenant, 'tenant'), product: identifier(product, 'product') }
}

/** The directory of that id. Throws 404. */
export async function findDirectory(store: Store, id: string): Promise<Directory> {
  const directory = await store.directory(id)
  if (!directory) throw new HttpError(404, 'There is no directory with this id.')
  return directory
}

/** Where to look for users and groups: `directoryId`, or tenant and product. Throws 400, or 404 for an unknown directory. */
export async function readScope(request: Request, store: Store): Promise<Scope> {
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
