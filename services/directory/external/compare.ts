import { setImmediate as yieldToOthers } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import type { Directory, JsonObject, ListPlace, ResourceType } from '../model.js'
import { folded } from '../scim/match.js'
import type { Store } from '../store/contract.js'
import { allMembers } from '../sync/members.js'
import type { Item, Snapshot } from './read.js'

/** The differences between a directory's users or groups and those of its provider. */
export interface PullDifference {
  /** Our ids by the provider's ids, of those that are already here. */
  readonly ids: Map<string, string>
  /** The provider's ids, as in `created`. */
  readonly changed: string[]
  readonly created: string[]
  /** Our ids. */
  readonly gone: string[]
  /** The provider's ids of the changed, by their present names as `nameOf` returns them. */
  readonly names: Map<string, string>
}

/** The users to remove from a group (our ids) and to add to it (the provider's ids, some of which are not here yet). */
export interface PullMoves {
  readonly leaving: string[]
  readonly joining: string[]
}

export interface Work {
  readonly users: PullDifference
  readonly groups: PullDifference
  /** By the provider's group id. */
  readonly moves: Map<string, PullMoves>
  /** Memberships of the provider's users in its groups, as they are stored here. */
  readonly memberships: number
}

const pageSize = 200

/** Compares a directory with its provider. Reads only. */
export async function compare(store: Store, directory: Directory, snapshot: Snapshot): Promise<Work> {
  const users = await compareResources(store, directory, 'user', snapshot.users)
  const groups = await compareResources(store, directory, 'group', snapshot.groups)
  const moves = new Map<string, PullMoves>()
  const own = new Map([...users.ids].map(([external, id]) => [id, external]))
  let memberships = 0
  for (const [group, wanted] of snapshot.members) {
    const groupId = groups.ids.get(group)
    const present = new Set<string>()
    const leaving: string[] = []
    for (const { userId } of groupId === undefined ? [] : await allMembers(store, groupId)) {
      const external = own.get(userId)
      // Users the provider does not know stay in the group; deleted users leave it with their deletion.
      if (external === undefined) continue
      memberships++
      present.add(external)
      if (!wanted.has(external)) leaving.push(userId)
    }
    const joining = [...wanted].filter(user => !present.has(user) && snapshot.users.has(user))
    if (leaving.length + joining.length > 0) moves.set(group, { leaving, joining })
    await yieldToOthers()
  }
  return { users, groups, moves, memberships }
}

async function compareResources(
  store: Store,
  directory: Directory,
  type: ResourceType,
  wanted: ReadonlyMap<string, Item>,
): Promise<PullDifference> {
  const difference: PullDifference = { ids: new Map(), changed: [], created: [], gone: [], names: new Map() }
  const { ids, changed, created, gone, names } = difference
  /** Users or groups that did not come from the provider, by name. */
  const others = new Map<string, string>()
  for (let after: ListPlace | undefined; ; ) {
    const page = await store.scan({ directoryId: directory.id, type, after, limit: pageSize })
    for (const { id, raw } of page) {
      const { externalId: external } = raw
      if (typeof external !== 'string') others.set(nameOf(raw), id)
      else if (!wanted.has(external)) gone.push(id)
      else if (!ids.has(external)) {
        ids.set(external, id)
        const body = wanted.get(external)?.body
        if (body && !isDeepStrictEqual(JSON.parse(body), raw)) {
          changed.push(external)
          names.set(nameOf(raw), external)
        }
      }
    }
    after = page.at(-1)
    if (page.length < pageSize) break
    await yieldToOthers()
  }
  for (const [external, { body }] of wanted) {
    if (ids.has(external) || !body) continue
    // Made here by hand or through SCIM before the provider was connected: adopted rather than created a second time.
    const name = others.size > 0 ? nameOf(JSON.parse(body)) : ''
    const id = others.get(name)
    if (id === undefined) created.push(external)
    else {
      // At the provider others may have the same name.
      others.delete(name)
      ids.set(external, id)
      changed.push(external)
    }
  }
  return difference
}

/** The name that must be unique among the users, or groups, of a directory. */
export const nameOf = ({ userName, displayName }: JsonObject): string =>
  typeof userName === 'string' ? folded('userName', userName) : folded('displayName', String(displayName))
