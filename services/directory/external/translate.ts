import { isJsonObject } from '../../json.js'
import type { JsonObject, JsonValue } from '../model.js'
import { enterpriseUrn, groupUrn, userUrn } from '../scim/attributes.js'
import { readGroup } from '../scim/group.js'
import { readUser } from '../scim/user.js'

/**
 * Converts a provider's user to the SCIM user that is stored; the provider's id becomes `externalId`. Throws
 * ScimError.
 */
export function toUser(item: JsonObject): JsonObject {
  const name = isJsonObject(item.name) ? item.name : {}
  const [job] = preferPrimary(item.organizations)
  return readUser({
    schemas: [userUrn],
    externalId: item.id,
    userName: item.primaryEmail,
    name: given({ givenName: name.givenName, familyName: name.familyName, formatted: name.fullName }),
    ...given({ displayName: name.fullName, title: job?.title }),
    emails: emailsOf(item),
    ...plural(
      'phoneNumbers',
      listOf(item.phones).map(({ value, type }) => given({ value, type })),
    ),
    active: item.suspended !== true && item.archived !== true,
    ...nested(enterpriseUrn, given({ department: job?.department, costCenter: job?.costCenter })),
  })
}

/**
 * Converts a member of a provider's group to the SCIM user that is stored where users may not be read: there are no
 * names. Throws ScimError.
 */
export const memberToUser = ({ id = null, email = null, status = 'ACTIVE' }: JsonObject): JsonObject =>
  toUser({ id, primaryEmail: email, suspended: status !== 'ACTIVE' })

/** Converts a provider's group to the SCIM group that is stored. Throws ScimError. */
export const toGroup = (item: JsonObject): JsonObject =>
  readGroup({ schemas: [groupUrn], externalId: item.id, displayName: item.name || item.email }).raw

/** Group names are not unique at the provider, addresses are. */
export const distinctName = ({ id, name, email }: JsonObject): string =>
  name ? `${name} (${email || id})` : `${email} (${id})`

/** The primary address first; the provider also lists it among the others. */
function emailsOf({ primaryEmail, emails }: JsonObject): JsonObject[] {
  const known = new Set([fold(primaryEmail)])
  const others = listOf(emails).flatMap(({ address, type }) => {
    if (typeof address !== 'string' || known.has(fold(address))) return []
    known.add(fold(address))
    return [given({ value: address, type })]
  })
  return [{ ...given({ value: primaryEmail }), type: 'work', primary: true }, ...others]
}

const fold = (value: JsonValue | undefined): string => String(value).toLowerCase()
const listOf = (value: JsonValue | undefined): JsonObject[] =>
  (Array.isArray(value) ? value : []).filter(isJsonObject)
const preferPrimary = (value: JsonValue | undefined): JsonObject[] =>
  listOf(value).sort((a, b) => Number(b.primary === true) - Number(a.primary === true))

/** Keeps only non-empty strings. */
const given = (values: Record<string, JsonValue | undefined>): JsonObject =>
  Object.fromEntries(
    Object.entries(values).filter(([, value]) => typeof value === 'string' && value !== ''),
  ) as JsonObject

const plural = (name: string, values: JsonObject[]): JsonObject => {
  const held = values.filter(value => value.value !== undefined)
  return held.length > 0 ? { [name]: held } : {}
}
const nested = (name: string, value: JsonObject): JsonObject =>
  Object.keys(value).length > 0 ? { [name]: value } : {}
