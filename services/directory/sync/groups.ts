import { setImmediate as yieldToOthers } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import type { ServiceLog } from '../../log.js'
import type { Happening } from '../events/event.js'
import { batchesOf, limits } from '../limits.js'
import type { Directory, JsonObject, Resource } from '../model.js'
import { readGroup, viewGroup, viewListedGroup } from '../scim/group.js'
import { fullList, isMembersStep, type MembershipPlan, planMembership } from '../scim/membership.js'
import { applyPatch } from '../scim/patch.js'
import { parsePatch } from '../scim/patch-path.js'
import { groupAttributes } from '../scim/schema.js'
import { viewUser } from '../scim/user.js'
import type { Store, Write } from '../store/contract.js'
import { allMembers, firstMembersAfter, type MemberMoves } from './members.js'
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

interface Wanted {
  readonly raw: JsonObject
  readonly membership: MembershipPlan
}

/** Group changes on a store; of unknown members only the number is logged. */
export function createGroupSync(store: Store, change: Changer, log: ServiceLog): ResourceSync {
  /** Drops ids without a user, and memberships that are already as wanted. */
  async function moves(
    directory: Directory,
    groupId: string | undefined,
    plan: MembershipPlan,
  ): Promise<MemberMoves> {
    const present =
      groupId === undefined ? new Map<string, string | undefined>() : await presentOf(groupId, plan)
    const leaving = [...(plan.reset ? present.keys() : plan.remove)].filter(
      id => present.has(id) && !plan.add.has(id),
    )
    const asked = [...plan.add.keys()].filter(id => !present.has(id))
    const known = await store.idsAmong(directory.id, 'user', asked)
    const unknown = asked.length - known.size
    if (unknown > 0)
      log.warn({ directory: directory.id, group: groupId, unknown }, 'unknown members were ignored')
    const displays: Record<string, string> = {}
    for (const [id, display] of plan.add) {
      const isNew = present.has(id) ? present.get(id) !== display : known.has(id)
      if (isNew && display !== undefined) displays[id] = display
    }
    return { leaving, joining: asked.filter(id => known.has(id)), displays }
  }

  /** The present members that the plan may affect. */
  async function presentOf(
    groupId: string,
    { reset, add, remove }: MembershipPlan,
  ): Promise<Map<string, string | undefined>> {
    const named = await store.membersAmong(groupId, [...add.keys(), ...remove])
    if (!reset) return named
    return new Map((await allMembers(store, groupId)).map(({ userId }) => [userId, named.get(userId)]))
  }

  /** Removals before additions. */
  function writesOf(groupId: string, { leaving, joining, displays }: MemberMoves): Write[] {
    const isJoining = new Set(joining)
    const staying = Object.fromEntries(Object.entries(displays).filter(([id]) => !isJoining.has(id)))
    return [
      ...(leaving.length > 0 ? [{ kind: 'leave', groupId, userIds: leaving } as const] : []),
      ...(joining.length > 0 ? [{ kind: 'join', groupId, userIds: joining, displays } as const] : []),
      ...(Object.keys(staying).length > 0 ? [{ kind: 'display', groupId, displays: staying } as const] : []),
    ]
  }

  async function* written(
    group: Resource,
    { leaving, joining }: Pick<MemberMoves, 'leaving' | 'joining'>,
  ): AsyncGenerator<Happening> {
    yield* each(group, leaving, 'group.user_removed')
    yield* each(group, joining, 'group.user_added')
  }

  /** Keeps few users in memory at a time, and yields to other requests in between. */
  async function* each(
    group: Resource,
    userIds: readonly string[],
    event: 'group.user_added' | 'group.user_removed',
  ): AsyncGenerator<Happening> {
    const view = viewGroup(group)
    for (const ids of batchesOf(userIds, limits.resourcesAtOnce)) {
      const found = await store.resourcesById(group.directoryId, 'user', ids)
      const users = new Map(found.map(user => [user.id, user]))
      for (const user of ids.map(id => users.get(id)).filter(user => user !== undefined)) {
        yield { event, data: { ...viewUser(user), group: view } }
      }
      await yieldToOthers()
    }
  }

  const update = (
    directory: Directory,
    id: string,
    check: WriteCheck | undefined,
    next: (raw: JsonObject) => Wanted,
  ): Promise<Resource> =>
    change(directory, async (now): Promise<ChangePlan<Resource>> => {
      const group = await load(store, directory, 'group', id)
      check?.(group)
      const { raw, membership } = next(group.raw)
      const moved = await moves(directory, id, membership)
      const renamed = !isDeepStrictEqual(raw, group.raw)
      if (!renamed && writesOf(id, moved).length === 0) {
        return { result: group, writes: [], happenings: [] }
      }
      await requireUnique(store, directory, 'group', 'displayName', raw, group)
      const result = changed(group, raw, now)
      async function* happenings(): AsyncGenerator<Happening> {
        if (renamed) {
          // With the same members before and after: their changes have events of their own.
          const members = await firstMembersAfter(store, group, moved)
          const [data, before] = [viewListedGroup(result, members), viewListedGroup(group, members)]
          yield { event: 'group.updated', data, before }
        }
        yield* written(result, moved)
      }
      return {
        result,
        writes: [save('replace', result), ...writesOf(id, moved)],
        happenings: happenings(),
      }
    })

  return {
    create(directory, body) {
      const { raw, members } = readGroup(body)
      const plan = fullList(members ?? [])
      return change(directory, async now => {
        await requireUnique(store, directory, 'group', 'displayName', raw)
        const result = newResource(directory, 'group', raw, now)
        const moved = await moves(directory, undefined, plan)
        async function* happenings(): AsyncGenerator<Happening> {
          const members = await firstMembersAfter(store, result, moved)
          yield { event: 'group.created', data: viewListedGroup(result, members) }
          yield* written(result, moved)
        }
        return {
          result,
          writes: [save('create', result), ...writesOf(result.id, moved)],
          happenings: happenings(),
        }
      })
    },

    // A PUT without `members`, such as a mere rename, leaves them alone (RFC 7644, section 3.5.1).
    replace(directory, id, body, check) {
      const { raw, members } = readGroup(body)
      const membership = members === undefined ? planMembership([]) : fullList(members)
      return update(directory, id, check, () => ({ raw, membership }))
    },

    patch: (directory, id, body, check) =>
      update(directory, id, check, old => {
        const steps = parsePatch(body, extensionsOf(old))
        const others = steps.filter(step => !isMembersStep(step))
        return {
          raw: readGroup(applyPatch(old, others, groupAttributes)).raw,
          membership: planMembership(steps.filter(isMembersStep)),
        }
      }),

    remove: (directory, id, check) =>
      change(directory, async () => {
        const group = await load(store, directory, 'group', id)
        check?.(group)
        const members = await firstMembersAfter(store, group, { leaving: [], joining: [], displays: {} })
        return {
          result: undefined,
          writes: [{ kind: 'delete', id }],
          happenings: [{ event: 'group.deleted', data: viewListedGroup(group, members) }],
        }
      }),
  }
}
