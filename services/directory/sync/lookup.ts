import type { DirectoryScope, ListPage, Resource, ResourceType, Scope } from '../model.js'
import { termOf } from '../scim/filter-query.js'
import type { Store } from '../store/contract.js'

/** The largest limit that a store accepts. */
const mostAtOnce = 2 ** 31 - 1
const directoriesAtOnce = 500

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
  for await (const directoryId of directoryIds(store, scope)) {
    found.push(...(await store.scan({ directoryId, type, terms, after, limit: end })))
  }
  const place = ({ created, id }: Resource): string => created + id
  return found.sort((a, b) => (place(a) < place(b) ? -1 : 1)).slice(offset, end)
}

async function* directoryIds(store: Store, scope: Scope): AsyncGenerator<string> {
  if ('directoryId' in scope) yield scope.directoryId
  else yield* idsOf(store, scope)
}

async function* idsOf(store: Store, scope: DirectoryScope): AsyncGenerator<string> {
  let after: ListPage['after']
  for (;;) {
    const some = await store.directories(scope, { offset: 0, limit: directoriesAtOnce, after })
    yield* some.map(({ id }) => id)
    after = some.at(-1)
    if (some.length < directoriesAtOnce) return
  }
}
