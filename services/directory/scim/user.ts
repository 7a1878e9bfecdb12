import { isJsonObject } from '../../json.js'
import { foldLoginName } from '../../login-names.js'
import type { JsonObject, JsonValue, Resource } from '../model.js'
import type { UserView } from '../schemas/people.js'
import { userUrn } from './attributes.js'
import { ScimError } from './error.js'
import { countValues } from './json.js'
import { readResource, requireText, userAttributes } from './schema.js'

/**
 * Validates a whole user and brings it into the form that is stored. A body that does not say whether the user is
 * active keeps the given `active`. Throws 400 invalidValue or invalidSyntax, or 413.
 */
export function readUser(body: unknown, active: JsonValue = true): JsonObject {
  const { id: _id, meta: _meta, ...raw } = readResource(body, userUrn, userAttributes)
  requireText(raw, 'userName')
  requireVisible(text(raw.userName))
  countValues(raw)
  return { ...raw, active: raw.active ?? active }
}

/** Throws 400 invalidValue for control characters, and for a name of invisible characters only. */
function requireVisible(userName: string): void {
  if (/\p{Cc}/u.test(userName)) {
    const detail = 'userName must not hold control characters, such as a line break or U+0000.'
    throw new ScimError(400, detail, 'invalidValue')
  }
  if (foldLoginName(userName) === '') {
    throw new ScimError(400, 'userName is required and must not be blank.', 'invalidValue')
  }
}

/** A stored user as the API and events show it; missing names are ''. */
export function viewUser({ id, raw }: Pick<Resource, 'id' | 'raw'>): UserView {
  const name = isJsonObject(raw.name) ? raw.name : {}
  return {
    id,
    first_name: text(name.givenName),
    last_name: text(name.familyName),
    email: emailOf(raw),
    active: raw.active !== false,
    raw: { ...raw, id },
  }
}

/** The primary address, else the work address, else the first one, else the user name. */
function emailOf(raw: JsonObject): string {
  const emails = (Array.isArray(raw.emails) ? raw.emails : [])
    .filter(isJsonObject)
    .filter(email => text(email.value))
  const chosen =
    emails.find(email => email.primary === true) ??
    emails.find(email => text(email.type).toLowerCase() === 'work') ??
    emails[0]
  return chosen ? text(chosen.value) : text(raw.userName)
}

const text = (value: JsonValue | undefined): string => (typeof value === 'string' ? value : '')
