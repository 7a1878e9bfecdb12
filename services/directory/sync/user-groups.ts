import { batchesOf } from '../batches.js'
import { limits } from '../limits.js'
import type { JsonObject, Resource } from '../model.js'
import { ScimError } from '../scim/error.js'
import type { Store } from '../store/contract.js'

/** The groups of a user as SCIM shows them. */
export type GroupsOf = (user: Resource, base: string) => Promise<JsonObject[]>

/**
 * For the users of one response: a group that they share is read once. `yieldNow` is called between the reads. Throws 400
 * tooMany (RFC 7644, section 3.12).
 */
export function createGroupsOf(store: Store, yieldNow: () => Promise<void>): GroupsOf {
  const names = new Map<string, string>()
  return async ({ id, directoryId }, base) => {
    const ids = await store.groupIdsOf(id)
    if (ids.length > limits.membershipsPerResource) {
      const detail = `The user ${id} is in more than ${limits.membershipsPerResource} groups: ask without groups, and page through /Groups with the filter members eq "${id}".`
      throw new ScimError(400, detail, 'tooMany')
    }
    const unread = ids.filter(groupId => !names.has(groupId))
    for (const some of batchesOf(unread, limits.resourcesAtOnce)) {
      for (const group of await store.resourcesById(directoryId, 'group', some)) {
        names.set(group.id, group.label)
      }
      await yieldNow()
    }
    return ids
      .filter(groupId => names.has(groupId))
      .map(value => ({ value, $ref: `${base}/Groups/${value}`, display: names.get(value) ?? '' }))
  }
}
