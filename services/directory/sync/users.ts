import { isDeepStrictEqual } from 'node:util'
import type { Directory, JsonObject, Resource } from '../model.js'
import { viewGroup } from '../scim/group.js'
import { isObject } from '../scim/json.js'
import { applyPatch } from '../scim/patch.js'
import { parsePatch } from '../scim/patch-path.js'
import { userAttributes } from '../scim/schema.js'
import { readUser, viewUser } from '../scim/user.js'
import type { Store } from '../store/contract.js'
import type { Changer, Plan } from './change.js'
import { changed, extensionsOf, load, newResource, requireUnique, save } from './resources.js'

/** Changes of users as SCIM asks for them. All throw ScimError. */
export interface UserSync {
  create(directory: Directory, body: unknown): Promise<Resource>
  replace(directory: Directory, id: string, body: unknown): Promise<Resource>
  patch(directory: Directory, id: string, body: unknown): Promise<Resource>
  remove(directory: Directory, id: string): Promise<void>
}

/** User changes on a store. */
export function createUserSync(store: Store, change: Changer): UserSync {
  const update = (
    directory: Directory,
    id: string,
    next: (raw: JsonObject) => JsonObject,
  ): Promise<Resource> =>
    change(directory, async (now): Promise<Plan<Resource>> => {
      const user = await load(store, directory, 'user', id)
      const raw = next(user.raw)
      if (isDeepStrictEqual(raw, user.raw)) return { result: user, writes: [], happenings: [] }
      await requireUnique(store, directory, 'user', 'userName', raw, id)
      const result = changed(user, raw, now)
      const happenings = [{ event: 'user.updated', data: viewUser(result) }] as const
      return { result, writes: [save('replace', result)], happenings }
    })

  return {
    create(directory, body) {
      const raw = readUser(body)
      return change(directory, async now => {
        await requireUnique(store, directory, 'user', 'userName', raw)
        const result = newResource(directory, 'user', raw, now)
        const happenings = [{ event: 'user.created', data: viewUser(result) }] as const
        return { result, writes: [save('create', result)], happenings }
      })
    },

    // A PUT that does not mention `active` says nothing about it (RFC 7644, section 3.5.1).
    replace: (directory, id, body) =>
      update(directory, id, old => readUser(isObject(body) ? { active: old.active ?? true, ...body } : body)),

    patch: (directory, id, body) =>
      update(directory, id, old =>
        readUser(applyPatch(old, parsePatch(body, extensionsOf(old)), userAttributes)),
      ),

    remove: (directory, id) =>
      change(directory, async now => {
        const user = await load(store, directory, 'user', id)
        const groups = await store.resourcesById(directory.id, 'group', await store.groupIdsOf(id))
        const left = groups.map(group => changed(group, group.raw, now))
        const data = viewUser(user)
        return {
          result: undefined,
          writes: [...left.map(group => save('replace', group)), { kind: 'delete', id }],
          happenings: [
            ...left.map(
              group => ({ event: 'group.user_removed', data: { ...data, group: viewGroup(group) } }) as const,
            ),
            { event: 'user.deleted', data },
          ],
        }
      }),
  }
}
