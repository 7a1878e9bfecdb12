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
export const groupSchema = component('Group', Type.Object(group))
/** The directory group of the management API and of events. `raw` excludes the members, which may be very many. */
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
