import { isDeepStrictEqual } from 'node:util'
import { limits } from '../limits.js'
import type { Directory, JsonObject, Resource } from '../model.js'
import { viewGroup } from '../scim/group.js'
import { applyPatch } from '../scim/patch.js'
import { parsePatch } from '../scim/patch-path.js'
import { userAttributes } from '../scim/schema.js'
import { readUser, viewUser } from '../scim/user.js'
import type { Store } from '../store/contract.js'
import {
  changed,
  extensionsOf,
  load,
  newResource,
  type ResourceSync,
  requireUnique,
  save,
  type WriteCheck,
} from './resources.js'
import type { ChangePlan, Changer } from './writers.js'

export function createUserSync(store: Store, change: Changer): ResourceSync {
  const update = (
    directory: Directory,
    id: string,
    check: WriteCheck | undefined,
    next: (raw: JsonObject) => JsonObject,
  ): Promise<Resource> =>
    change(directory, async (now): Promise<ChangePlan<Resource>> => {
      const user = await load(store, directory, 'user', id)
      check?.(user)
      const raw = next(user.raw)
      if (isDeepStrictEqual(raw, user.raw)) return { result: user, writes: [], happenings: [] }
      await requireUnique(store, directory, 'user', 'userName', raw, user)
      const result = changed(user, raw, now)
      const happenings = [{ event: 'user.updated', data: viewUser(result), before: viewUser(user) }] as const
      return { result, writes: [save('replace', result)], happenings }
    })

  /**
   * Removes the user from some groups, or deletes it with its last memberships. Each call is a change of its own, so
   * that a user in any number of groups can be deleted. True when the user is gone.
   */
  const leave = (directory: Directory, id: string, check?: WriteCheck): Promise<boolean> =>
    change(directory, async (now): Promise<ChangePlan<boolean>> => {
      const user = await load(store, directory, 'user', id)
      check?.(user)
      const all = await store.groupIdsOf(id)
      const some = all.slice(0, limits.resourcesAtOnce)
      const last = some.length === all.length
      const groups = await store.resourcesById(directory.id, 'group', some)
      const left = groups.map(group => changed(group, group.raw, now))
      const data = viewUser(user)
      const removed = left.map(
        group => ({ event: 'group.user_removed', data: { ...data, group: viewGroup(group) } }) as const,
      )
      return {
        result: last,
        writes: [
          ...left.map(group => save('replace', group)),
          ...some.map(groupId => ({ kind: 'leave', groupId, userIds: [id] }) as const),
          ...(last ? [{ kind: 'delete', id } as const] : []),
        ],
        happenings: last ? [...removed, { event: 'user.deleted', data }] : removed,
      }
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

    // A PUT without `active` leaves it as it is (RFC 7644, section 3.5.1).
    replace: (directory, id, body, check) => update(directory, id, check, old => readUser(body, old.active)),

    // So does a PATCH that removes it: removing `active` must not let a user in again.
    patch: (directory, id, body, check) =>
      update(directory, id, check, old =>
        readUser(applyPatch(old, parsePatch(body, extensionsOf(old)), userAttributes), old.active),
      ),

    async remove(directory, id, check) {
      let gone = await leave(directory, id, check)
      while (!gone) gone = await leave(directory, id)
    },
  }
}
