import type { DirectoryScope, Page, Resource, ResourceType, Scope } from '../model.js'
import { termOf } from '../scim/terms.js'
import type { Store } from '../store/contract.js'

/** Most that a store may be asked for at once. */
const mostAtOnce = 2 ** 31 - 1
const directoriesAtOnce = 500

/** Users with this e-mail address among theirs, or as their userName, whatever the letter case. */
export const byEmail = (email: string): string[] => [termOf('emails', email), termOf('username', email)]
/** Groups of this name, whatever the letter case. */
export const byName = (name: string): string[] => [termOf('displayname', name)]

/** Resources of a scope that hold one of the terms, in order of creation; looked up, whatever the size of the directories. */
export async function lookUp(
  store: Store,
  scope: Scope,
  type: ResourceType,
  terms: readonly string[],
  { after, offset, limit }: Page,
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
  let after: Page['after']
  for (;;) {
    const some = await store.directories(scope, { offset: 0, limit: directoriesAtOnce, after })
    yield* some.map(({ id }) => id)
    after = some.at(-1)
    if (some.length < directoriesAtOnce) return
  }
}
