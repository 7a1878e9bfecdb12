import type { Directory, DirectoryScope, ListPage, Resource, ResourceType, Scope } from '../model.js'
import { termOf } from '../scim/filter-query.js'
import type { Store } from '../store/contract.js'
import { inOrder } from './resources.js'

/** The largest limit that a store accepts. */
const mostAtOnce = 2 ** 31 - 1
const directoriesAtOnce = 100

/** Terms of users with this e-mail address or userName, in any letter case. */
export const byEmail = (email: string): string[] => [termOf('emails', email), termOf('username', email)]
/** Terms of groups with this name, in any letter case. */
export const byName = (name: string): string[] => [termOf('displayname', name)]

/**
 * Resources of a scope with one of the terms, in order of creation; looked up by index, whatever the size of the
 * directories.
 */
export async function lookUp(
  store: Store,
  scope: Scope,
  type: ResourceType,
  terms: readonly string[],
  { after, offset, limit }: ListPage,
): Promise<Resource[]> {
  const end = Math.min(offset + limit, mostAtOnce)
  const found: Resource[] = []
  const directories = 'directoryId' in scope ? [{ id: scope.directoryId }] : directoriesOf(store, scope)
  for await (const { id: directoryId } of directories) {
    found.push(...(await store.scan({ directoryId, type, terms, after, limit: end })))
  }
  return inOrder(found).slice(offset, end)
}

/** All directories of a scope, read in pages. */
export async function* directoriesOf(
  store: Pick<Store, 'directories'>,
  scope: DirectoryScope | 'all',
): AsyncGenerator<Directory> {
  for (let after: Directory | undefined; ; ) {
    const some = await store.directories(scope, { offset: 0, limit: directoriesAtOnce, after })
    yield* some
    after = some.at(-1)
    if (some.length < directoriesAtOnce) return
  }
}
