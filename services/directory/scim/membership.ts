import { isJsonObject } from '../../json.js'
import { limits } from '../limits.js'
import type { JsonValue } from '../model.js'
import { ScimError } from './error.js'
import type { Filter } from './filter.js'
import { attributeValue } from './json.js'
import type { PatchStep } from './patch-path.js'
import { requireText } from './schema.js'

/**
 * The requested change of a group's members: emptied first if `reset`, then removals, then additions, with the `display`
 * that was sent for each, if any.
 */
export interface MembershipPlan {
  reset: boolean
  readonly add: Map<string, string | undefined>
  readonly remove: Set<string>
}

/** True when a PATCH step concerns the group's members. */
export const isMembersStep = (step: PatchStep): boolean => step.path.names[0]?.toLowerCase() === 'members'

/** The plan of a full member list, as in POST and PUT. */
export function fullList(members: JsonValue): MembershipPlan {
  return limited({ reset: true, add: new Map(readMembers(members)), remove: new Set() })
}

/** Merges the steps on `members` into one plan, in their order. */
export function planMembership(steps: readonly PatchStep[]): MembershipPlan {
  const plan: MembershipPlan = { reset: false, add: new Map(), remove: new Set() }
  for (const step of steps) fold(plan, step)
  return limited(plan)
}

function fold(plan: MembershipPlan, { op, path, value }: PatchStep): void {
  if (path.names.length > 1 || path.sub.length > 0) {
    throw new ScimError(400, 'A member is added or removed as a whole.', 'invalidPath')
  }
  const named = path.filter ? idsOf(path.filter) : undefined
  if (op === 'remove' && named === undefined && value === undefined) {
    empty(plan)
    return
  }
  if (op === 'replace' && named === undefined) empty(plan)
  // A removal that names nobody (an empty list or null) must not empty the group.
  const leaving = op === 'remove' ? (named ?? readMembers(value ?? []).map(([id]) => id)) : (named ?? [])
  for (const id of leaving) {
    plan.add.delete(id)
    plan.remove.add(id)
  }
  for (const [id, display] of op === 'remove' ? [] : readMembers(value ?? [])) {
    plan.remove.delete(id)
    plan.add.set(id, display)
  }
}

function empty(plan: MembershipPlan): void {
  plan.reset = true
  plan.add.clear()
  plan.remove.clear()
}

/** Ids with what they are shown as, in `{"value": id, "display": text}`, a list of these, or plain ids. */
function readMembers(value: JsonValue): [id: string, display: string | undefined][] {
  return (Array.isArray(value) ? value : [value]).map(item => {
    const id = isJsonObject(item) ? attributeValue(item, 'value') : item
    if (typeof id !== 'string' || id === '') {
      throw new ScimError(400, 'Each member needs a "value" with the id of a user.', 'invalidValue')
    }
    const display = isJsonObject(item) ? attributeValue(item, 'display') : undefined
    if (typeof display !== 'string' || display === '') return [id, undefined]
    requireText({ display }, 'display')
    return [id, display]
  })
}

/** The ids of `value eq "x" or value eq "y"`. */
function idsOf(filter: Filter): string[] {
  if (filter.kind === 'or') return filter.filters.flatMap(idsOf)
  const isId =
    filter.kind === 'compare' && filter.operator === 'eq' && filter.path.join().toLowerCase() === 'value'
  if (!isId || typeof filter.literal !== 'string') {
    throw new ScimError(400, 'Members are chosen by: value eq "<user id>".', 'invalidFilter')
  }
  return [filter.literal]
}

function limited(plan: MembershipPlan): MembershipPlan {
  if (plan.add.size + plan.remove.size > limits.members) {
    throw new ScimError(400, `More than ${limits.members} members in one request.`, 'invalidValue')
  }
  return plan
}
