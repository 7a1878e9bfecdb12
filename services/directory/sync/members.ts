import { setImmediate as breathe } from 'node:timers/promises'
import type { Member } from '../model.js'
import type { Store } from '../store/contract.js'

const piece = 5000

/** Counts no further than `most`. */
export async function hasMoreMembers(store: Store, groupId: string, most: number): Promise<boolean> {
  return (await store.members(groupId, { offset: most, limit: 1 })).length > 0
}

/** All members of a group in order of user id. Yields to other requests between the pieces of a large one. */
export async function allMembers(store: Store, groupId: string): Promise<Member[]> {
  const members: Member[] = []
  for (;;) {
    const last = members.at(-1)
    const after = last && { created: '', id: last.userId }
    const found = await store.members(groupId, { offset: 0, limit: piece, after })
    for (const member of found) members.push(member)
    if (found.length < piece) return members
    await breathe()
  }
}
