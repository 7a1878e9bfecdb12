import { isDeepStrictEqual } from 'node:util'
import type { Happening } from '../events/event.js'
import type { Log } from '../log.js'
import type { Directory, JsonObject, Resource } from '../model.js'
import { readGroup, viewGroup } from '../scim/group.js'
import { fullList, isMembersStep, type MembershipPlan, planMembership } from '../scim/membership.js'
import { applyPatch } from '../scim/patch.js'
import { parsePatch } from '../scim/patch-path.js'
import { groupAttributes } from '../scim/schema.js'
import { viewUser } from '../scim/user.js'
import type { Store, Write } from '../store/contract.js'
import type { Changer, Plan } from './change.js'
import { changed, extensionsOf, load, newResource, requireUnique, save } from './resources.js'

/** Changes of groups as SCIM asks for them. All throw ScimError. */
export interface GroupSync {
  create(directory: Directory, body: unknown): Promise<Resource>
  replace(directory: Directory, id: string, body: unknown): Promise<Resource>
  patch(directory: Directory, id: string, body: unknown): Promise<Resource>
  remove(directory: Directory, id: string): Promise<void>
}

interface Wanted {
  readonly raw: JsonObject
  readonly membership: MembershipPlan
}

const everybody = { offset: 0, limit: Number.MAX_SAFE_INTEGER }

/** Group changes on a store; unknown members are logged by number only. */
export function createGroupSync(store: Store, change: Changer, log: Log): GroupSync {
  /** Users that really leave and join: ids without a user, and memberships already as wanted, fall away. */
  async function moves(directory: Directory, groupId: string | undefined, plan: MembershipPlan) {
    const asked = [...plan.add, ...plan.remove]
    const present =
      groupId === undefined
        ? new Set<string>()
        : plan.reset
          ? new Set((await store.members(groupId, everybody)).map(member => member.userId))
          : await store.membersAmong(groupId, asked)
    const leaving = plan.reset
      ? [...present].filter(id => !plan.add.has(id))
      : [...plan.remove].filter(id => present.has(id))
    const joining = [...plan.add].filter(id => !present.has(id))
    const users = await store.resourcesById(directory.id, 'user', [...leaving, ...joining])
    const known = new Map(users.map(user => [user.id, user]))
    const unknown = joining.filter(id => !known.has(id)).length
    if (unknown > 0)
      log.warn({ directory: directory.id, group: groupId, unknown }, 'unknown members are left out')
    const pick = (ids: string[]): Resource[] =>
      ids.map(id => known.get(id)).filter(user => user !== undefined)
    return { leaving: pick(leaving), joining: pick(joining) }
  }

  /** Membership as writes and events: removals before additions. */
  function membershipOf(group: Resource, leaving: Resource[], joining: Resource[]) {
    const view = viewGroup(group)
    const tell = (event: 'group.user_added' | 'group.user_removed') => (user: Resource) =>
      ({ event, data: { ...viewUser(user), group: view } }) as const
    const move = (kind: 'join' | 'leave', users: Resource[]): Write[] =>
      users.length > 0 ? [{ kind, groupId: group.id, userIds: users.map(user => user.id) }] : []
    const happenings: Happening[] = [
      ...leaving.map(tell('group.user_removed')),
      ...joining.map(tell('group.user_added')),
    ]
    return { writes: [...move('leave', leaving), ...move('join', joining)], happenings }
  }

  const update = (directory: Directory, id: string, next: (raw: JsonObject) => Wanted): Promise<Resource> =>
    change(directory, async (now): Promise<Plan<Resource>> => {
      const group = await load(store, directory, 'group', id)
      const { raw, membership } = next(group.raw)
      const { leaving, joining } = await moves(directory, id, membership)
      const renamed = !isDeepStrictEqual(raw, group.raw)
      if (!renamed && leaving.length + joining.length === 0)
        return { result: group, writes: [], happenings: [] }
      await requireUnique(store, directory, 'group', 'displayName', raw, id)
      const result = changed(group, raw, now)
      const moved = membershipOf(result, leaving, joining)
      const updated: Happening[] = renamed ? [{ event: 'group.updated', data: viewGroup(result) }] : []
      return {
        result,
        writes: [save('replace', result), ...moved.writes],
        happenings: [...updated, ...moved.happenings],
      }
    })

  return {
    create(directory, body) {
      const { raw, members } = readGroup(body)
      const plan = fullList(members ?? [])
      return change(directory, async now => {
        await requireUnique(store, directory, 'group', 'displayName', raw)
        const result = newResource(directory, 'group', raw, now)
        const { joining } = await moves(directory, undefined, plan)
        const moved = membershipOf(result, [], joining)
        return {
          result,
          writes: [save('create', result), ...moved.writes],
          happenings: [{ event: 'group.created', data: viewGroup(result) }, ...moved.happenings],
        }
      })
    },

    // A PUT without `members`, as a mere rename, leaves them alone (RFC 7644, section 3.5.1).
    replace(directory, id, body) {
      const { raw, members } = readGroup(body)
      const membership = members === undefined ? planMembership([]) : fullList(members)
      return update(directory, id, () => ({ raw, membership }))
    },

    patch: (directory, id, body) =>
      update(directory, id, old => {
        const steps = parsePatch(body, extensionsOf(old))
        const others = steps.filter(step => !isMembersStep(step))
        return {
          raw: readGroup(applyPatch(old, others, groupAttributes)).raw,
          membership: planMembership(steps.filter(isMembersStep)),
        }
      }),

    remove: (directory, id) =>
      change(directory, async () => {
        const group = await load(store, directory, 'group', id)
        return {
          result: undefined,
          writes: [{ kind: 'delete', id }],
          happenings: [{ event: 'group.deleted', data: viewGroup(group) }],
        }
      }),
  }
}
