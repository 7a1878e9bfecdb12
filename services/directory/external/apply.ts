import { setImmediate as yieldToOthers } from 'node:timers/promises'
import { batchesOf } from '../limits.js'
import type { Directory, JsonObject } from '../model.js'
import { ScimError } from '../scim/error.js'
import type { Writers } from '../sync/writers.js'
import { nameOf, type PullDifference, type Work } from './compare.js'
import type { Item, Snapshot } from './read.js'

/** Most members in one change: all events of a change are in memory at once. */
const membersAtOnce = 500

export interface ApplyParts {
  readonly directory: Directory
  readonly writers: Writers
  /** Users or groups written concurrently: they are still applied one after the other, but stored together. */
  readonly atOnce: number
  /** Called after each change; throws when the pull must stop. */
  readonly written: () => Promise<void>
}

/**
 * Brings a directory to its provider's state with the same writes that SCIM makes. Deletions come first, so that a
 * freed name can be taken over; without `deletions` nothing is removed. Returns sentences about what could not be
 * done.
 */
export async function apply(
  { directory, writers, atOnce, written }: ApplyParts,
  work: Work,
  snapshot: Snapshot,
  deletions: boolean,
): Promise<string[]> {
  const { users, groups, moves } = work
  let refused = 0

  /** One write. A refusal by the intake is returned, any other error is thrown. */
  async function attempt(write: () => Promise<unknown>): Promise<'done' | 'conflict' | 'refused'> {
    try {
      await write()
      return 'done'
    } catch (error) {
      if (!(error instanceof ScimError)) throw error
      return error.status === 409 ? 'conflict' : 'refused'
    } finally {
      await written()
      await yieldToOthers()
    }
  }
  async function must(write: () => Promise<unknown>): Promise<void> {
    if ((await attempt(write)) !== 'done') refused++
  }

  async function save(type: 'users' | 'groups', { ids }: PullDifference, external: string, body: JsonObject) {
    const id = ids.get(external)
    const sync = writers[type]
    if (id !== undefined) await sync.replace(directory, id, body)
    else ids.set(external, (await sync.create(directory, body)).id)
  }

  /** Writes all, even when one takes a name that another gives up only later. Returns those whose name stays taken. */
  async function settle(
    type: 'users' | 'groups',
    difference: PullDifference,
    items: ReadonlyMap<string, Item>,
  ): Promise<string[]> {
    let left = [...difference.changed, ...difference.created]
    for (;;) {
      const again: string[] = []
      const one = async (external: string): Promise<void> => {
        const body = bodyOf(items, external)
        const result = await attempt(() => save(type, difference, external, body))
        if (result === 'conflict') again.push(external)
        if (result === 'refused') refused++
      }
      for (const some of batchesOf(left, atOnce)) await Promise.all(some.map(one))
      if (again.length === 0) return again
      if (again.length === left.length && !(await untie(type, difference, items, again))) return again
      left = again
    }
  }

  /** Breaks a cycle of names by renaming one of their holders for a moment. False when there is no cycle. */
  async function untie(
    type: 'users' | 'groups',
    difference: PullDifference,
    items: ReadonlyMap<string, Item>,
    stuck: readonly string[],
  ): Promise<boolean> {
    const waiting = new Set(stuck)
    const holderOf = (external: string) => difference.names.get(nameOf(bodyOf(items, external)))
    const isInCircle = (start: string): boolean => {
      const seen = new Set<string>()
      let at = holderOf(start)
      while (at !== undefined && at !== start && waiting.has(at) && !seen.has(at)) {
        seen.add(at)
        at = holderOf(at)
      }
      return at === start
    }
    const external = stuck.find(isInCircle)
    if (external === undefined) return false
    for (const [name, holder] of difference.names) if (holder === external) difference.names.delete(name)
    const aside = { [type === 'users' ? 'userName' : 'displayName']: `${external} (being renamed)` }
    return (
      (await attempt(() => save(type, difference, external, { ...bodyOf(items, external), ...aside }))) ===
      'done'
    )
  }

  const patch = (groupId: string, op: 'add' | 'remove', userIds: readonly string[]): Promise<unknown> => {
    const value = userIds.map(id => ({ value: id }))
    return writers.groups.patch(directory, groupId, { Operations: [{ op, path: 'members', value }] })
  }
  async function move(group: string, op: 'add' | 'remove', userIds: readonly string[]): Promise<void> {
    const groupId = groups.ids.get(group)
    if (groupId === undefined) return
    for (const some of batchesOf(userIds, membersAtOnce)) await must(() => patch(groupId, op, some))
  }

  if (deletions) {
    for (const [group, { leaving }] of moves) await move(group, 'remove', leaving)
    for (const id of groups.gone) await must(() => writers.groups.remove(directory, id))
    for (const id of users.gone) await must(() => writers.users.remove(directory, id))
  }
  const twins = await settle('users', users, snapshot.users)
  for (const external of await settle('groups', groups, snapshot.groups)) {
    const displayName = snapshot.groups.get(external)?.fallback ?? external
    const body = { ...bodyOf(snapshot.groups, external), displayName }
    await must(() => save('groups', groups, external, body))
  }
  for (const [group, { joining }] of moves) {
    await move(
      group,
      'add',
      joining.flatMap(external => users.ids.get(external) ?? []),
    )
  }
  return [
    ...(twins.length > 0 ? [`${twins.length} users have the userName of another user of the directory`] : []),
    ...(refused > 0 ? [`${refused} changes were refused`] : []),
  ]
}

const bodyOf = (items: ReadonlyMap<string, Item>, external: string): JsonObject =>
  JSON.parse(items.get(external)?.body ?? '{}')
