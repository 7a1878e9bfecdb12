import type { Json, JsonObject, Resource } from '../model.js'
import { ScimError } from './error.js'
import { clean, isObject } from './json.js'
import { conform, userAttributes, userUrn } from './schema.js'

/** Checks a whole user and brings it into the form that is kept. Throws 400 invalidValue or invalidSyntax. */
export function readUser(body: unknown): JsonObject {
  const { id: _id, meta: _meta, ...raw } = readResource(body, userUrn, userAttributes)
  requireText(raw, 'userName')
  return { ...raw, active: raw.active ?? true }
}

/** What POST, PUT and a finished PATCH have in common for users and groups. Throws 400 invalidSyntax or invalidValue. */
export function readResource(body: unknown, urn: string, attributes: typeof userAttributes): JsonObject {
  if (!isObject(body)) throw new ScimError(400, 'The body must be a JSON object.', 'invalidSyntax')
  const raw = conform(clean(body) as JsonObject, attributes)
  return { schemas: [urn], ...raw }
}

/** Throws 400 invalidValue unless the attribute is a text of 1 to 1024 characters, not all blank. */
export function requireText(raw: JsonObject, name: string): void {
  const value = raw[name]
  if (typeof value !== 'string' || value.trim() === '') {
    throw new ScimError(400, `${name} is required and must not be blank.`, 'invalidValue')
  }
  if (value.length > 1024) throw new ScimError(400, `${name} is longer than 1024 characters.`, 'invalidValue')
}

/** The directory user of the management API and of events. */
export interface UserView {
  id: string
  first_name: string
  last_name: string
  email: string
  active: boolean
  raw: JsonObject
}

/** A stored user as others see it; names and address are '' where none was sent. */
export function viewUser({ id, raw }: Pick<Resource, 'id' | 'raw'>): UserView {
  const name = isObject(raw.name) ? raw.name : {}
  return {
    id,
    first_name: text(name.givenName),
    last_name: text(name.familyName),
    email: emailOf(raw),
    active: raw.active !== false,
    raw: { ...raw, id },
  }
}

/** The primary address, else that of work, else the first, else the user name. */
function emailOf(raw: JsonObject): string {
  const emails = (Array.isArray(raw.emails) ? raw.emails : [])
    .filter(isObject)
    .filter(email => text(email.value))
  const chosen =
    emails.find(email => email.primary === true) ??
    emails.find(email => text(email.type).toLowerCase() === 'work') ??
    emails[0]
  return chosen ? text(chosen.value) : text(raw.userName)
}

const text = (value: Json | undefined): string => (typeof value === 'string' ? value : '')
