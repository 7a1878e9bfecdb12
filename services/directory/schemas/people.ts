import { type Static, Type } from 'typebox'
import { anyObject, component, flag, text } from './parts.js'

const raw = anyObject('The SCIM resource as received, with its id')

export const userSchema = component(
  'User',
  Type.Object({
    id: text(),
    first_name: text(),
    last_name: text(),
    email: text(),
    active: flag(),
    raw,
  }),
)
/** The directory user of the management API and of events. */
export type UserView = Static<typeof userSchema>

const group = { id: text(), name: text(), raw }
export const groupSchema = component(
  'Group',
  Type.Object({
    ...group,
    members_truncated: Type.Optional(
      Type.Boolean({
        description: '`raw.members` does not hold all members; read them at /groups/{id}/members',
      }),
    ),
  }),
)
/**
 * The directory group of the management API and of events. `raw.members` holds the first 1000 members, and none in
 * events about a single member.
 */
export type GroupView = Static<typeof groupSchema>

export const fullGroupSchema = component(
  'GroupWithMembers',
  Type.Object({
    ...group,
    members: Type.Array(Type.Object({ group_id: text(), user_id: text() })),
  }),
)
/** A group read on its own; `raw.members` also has the members' names. */
export type FullGroupView = Static<typeof fullGroupSchema>

export const memberSchema = component('Member', Type.Object({ user_id: text() }))
export type MemberView = Static<typeof memberSchema>
