import { setImmediate as breathe } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import type { Directory, JsonObject, Place, ResourceType } from '../model.js'
import type { Store } from '../store/contract.js'
import { allMembers } from '../sync/members.js'
import type { Item, Snapshot } from './read.js'

/** What separates the users or groups of a directory from those of its provider. */
export interface Difference {
  /** Our id of each of the provider's that is here already. */
  readonly ids: Map<string, string>
  /** By the provider's ids. */
  readonly changed: string[]
  readonly created: string[]
  /** Our ids. */
  readonly gone: string[]
  /** Who of the changed has which name so far; names as `nameOf` gives them. */
  readonly names: Map<string, string>
}

/** Who has to leave a group (our ids) and who to join it (the provider's ids, some of which are not here yet). */
export interface Moves {
  readonly leaving: string[]
  readonly joining: string[]
}

/** All that a pull has to do. */
export interface Work {
  readonly users: Difference
  readonly groups: Difference
  /** By the provider's id of the group. */
  readonly moves: Map<string, Moves>
  /** Memberships of the provider's users in its groups, as they are here. */
  readonly memberships: number
}

const pageSize = 200

/** Compares a directory with its provider. Reads only. */
export async function compare(store: Store, directory: Directory, snapshot: Snapshot): Promise<Work> {
  const users = await compareResources(store, directory, 'user', snapshot.users)
  const groups = await compareResources(store, directory, 'group', snapshot.groups)
  const moves = new Map<string, Moves>()
  const own = new Map([...users.ids].map(([external, id]) => [id, external]))
  let memberships = 0
  for (const [group, wanted] of snapshot.members) {
    const groupId = groups.ids.get(group)
    const present = new Set<string>()
    const leaving: string[] = []
    for (const { userId } of groupId === undefined ? [] : await allMembers(store, groupId)) {
      const external = own.get(userId)
      // The provider must not remove users it does not know; deleted users leave with their deletion.
      if (external === undefined) continue
      memberships++
      present.add(external)
      if (!wanted.has(external)) leaving.push(userId)
    }
    const joining = [...wanted].filter(user => !present.has(user) && snapshot.users.has(user))
    if (leaving.length + joining.length > 0) moves.set(group, { leaving, joining })
    await breathe()
  }
  return { users, groups, moves, memberships }
}

async function compareResources(
  store: Store,
  directory: Directory,
  type: ResourceType,
  wanted: ReadonlyMap<string, Item>,
): Promise<Difference> {
  const difference: Difference = { ids: new Map(), changed: [], created: [], gone: [], names: new Map() }
  const { ids, changed, created, gone, names } = difference
  /** Those that did not come from the provider, by name. */
  const others = new Map<string, string>()
  for (let after: Place | undefined; ; ) {
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
    await breathe()
  }
  for (const [external, { body }] of wanted) {
    if (ids.has(external) || !body) continue
    // Made here by hand or by SCIM before the provider was connected: the same user, not a second one.
    const id = others.size > 0 ? others.get(nameOf(JSON.parse(body))) : undefined
    if (id === undefined) created.push(external)
    else {
      ids.set(external, id)
      changed.push(external)
    }
  }
  return difference
}

/** The name that only one user, or one group, of a directory can have. */
export const nameOf = ({ userName, displayName }: JsonObject): string =>
  String(userName ?? displayName).toLowerCase()
