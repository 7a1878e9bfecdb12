import { setImmediate as yieldToOthers } from 'node:timers/promises'
import { batchesOf, limits } from '../limits.js'
import type { GroupMember, Resource } from '../model.js'
import type { Displays, Store } from '../store/contract.js'
import { createYield } from './yield.js'

const piece = 5000

/** Counts no further than `most`. */
export async function hasMoreMembers(store: Store, groupId: string, most: number): Promise<boolean> {
  return (await store.members(groupId, { offset: most, limit: 1 })).length > 0
}

/** All members of a group in order of user id. Yields to other requests between the pieces of a large one. */
export async function allMembers(store: Store, groupId: string): Promise<GroupMember[]> {
  const members: GroupMember[] = []
  for (;;) {
    const last = members.at(-1)
    const after = last && { created: '', id: last.userId }
    const found = await store.members(groupId, { offset: 0, limit: piece, after })
    for (const member of found) members.push(member)
    if (found.length < piece) return members
    await yieldToOthers()
  }
}

/** Users that leave and join a group, and what members are shown as from then on. */
export interface MemberMoves {
  readonly leaving: readonly string[]
  readonly joining: readonly string[]
  readonly displays: Displays
}

/**
 * The first members of a group once these moves are stored, in order of user id: those that a view shows, and one more
 * if there are more. Its cost is that of the moves, not of the group.
 */
export async function firstMembersAfter(
  store: Store,
  { id: groupId, directoryId }: Pick<Resource, 'id' | 'directoryId'>,
  { leaving, joining, displays }: MemberMoves,
): Promise<GroupMember[]> {
  const most = limits.membersOfListed + 1
  const gone = new Set(leaving)
  const members: GroupMember[] = []
  for (let after: { created: string; id: string } | undefined; ; ) {
    const found = await store.members(groupId, { offset: 0, limit: most, after })
    const left = found.filter(({ userId }) => !gone.has(userId))
    members.push(...left.map(({ userId, label }) => ({ userId, label: displays[userId] ?? label })))
    const last = found.at(-1)
    if (last === undefined || found.length < most || members.length >= most) break
    after = { created: '', id: last.userId }
  }
  const first = [...joining].sort().slice(0, most)
  const nameless = first.filter(userId => displays[userId] === undefined)
  const labels = new Map<string, string>()
  for (const ids of batchesOf(nameless, limits.resourcesAtOnce)) {
    for (const { id, label } of await store.resourcesById(directoryId, 'user', ids)) labels.set(id, label)
  }
  members.push(...first.map(userId => ({ userId, label: displays[userId] ?? labels.get(userId) ?? '' })))
  return members.sort((a, b) => (a.userId < b.userId ? -1 : 1)).slice(0, most)
}

/** The members of several groups as a list shows them: the first of each, and fewer once the page is full. */
export async function listedMembers(
  store: Store,
  groupIds: readonly string[],
): Promise<{ readonly members: GroupMember[]; readonly most: number }[]> {
  const yieldNow = createYield()
  const listed: { members: GroupMember[]; most: number }[] = []
  let left: number = limits.membershipsPerPage
  for (const groupId of groupIds) {
    const most = Math.min(limits.membersOfListed, left)
    const members = await store.members(groupId, { offset: 0, limit: most + 1 })
    listed.push({ members, most })
    left -= Math.min(most, members.length)
    await yieldNow()
  }
  return listed
}
