import { limits } from '../limits.js'
import type { GroupMember, JsonObject, JsonValue, Resource } from '../model.js'
import type { GroupView } from '../schemas/people.js'
import { groupUrn } from './attributes.js'
import { countValues } from './json.js'
import { groupAttributes, readResource, requireText } from './schema.js'

/**
 * Validates a whole group. Its members are returned separately, undefined when the body has none. Throws 400 or 413.
 */
export function readGroup(body: unknown): { raw: JsonObject; members: JsonValue | undefined } {
  const { id: _id, meta: _meta, members, ...raw } = readResource(body, groupUrn, groupAttributes)
  requireText(raw, 'displayName')
  countValues(raw)
  return { raw, members }
}

/** A stored group within an event about one of its members: without its members. */
export function viewGroup({ id, raw }: Pick<Resource, 'id' | 'raw'>): GroupView {
  return { id, name: String(raw.displayName), raw: { ...raw, id } }
}

/**
 * A stored group as lists and its own events show it, with the first `most` of its members; `members` holds these, and
 * one more if there are more.
 */
export function viewListedGroup(
  group: Pick<Resource, 'id' | 'raw'>,
  members: readonly GroupMember[],
  most: number = limits.membersOfListed,
): GroupView {
  const { raw, ...view } = viewGroup(group)
  const cut = members.length > most ? { members_truncated: true } : {}
  return { ...view, raw: { ...raw, members: viewMembers(members.slice(0, most)) }, ...cut }
}

/** Members as the management API shows them in `raw`. */
export const viewMembers = (members: readonly GroupMember[]): JsonObject[] =>
  members.map(({ userId, label }) => ({ value: userId, display: label }))

/** Members as SCIM shows them; `base` is the URL of the directory's intake. */
export const viewScimMembers = (members: readonly GroupMember[], base: string): JsonObject[] =>
  members.map(({ userId, label }) => ({
    value: userId,
    $ref: `${base}/Users/${userId}`,
    type: 'User',
    display: label,
  }))
