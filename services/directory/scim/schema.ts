import type { Json, JsonObject } from '../model.js'
import { ScimError } from './error.js'
import { isObject } from './json.js'

/** What RFC 7643 says of an attribute, as far as storing and matching needs it. */
export interface Attribute {
  readonly name: string
  readonly kind: 'string' | 'boolean' | 'complex'
  readonly multi?: true
  readonly sub?: readonly Attribute[]
}

/** The schema URNs of RFC 7643, section 10. */
export const userUrn = 'urn:ietf:params:scim:schemas:core:2.0:User'
export const groupUrn = 'urn:ietf:params:scim:schemas:core:2.0:Group'
export const enterpriseUrn = 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User'

const texts = (...names: string[]): Attribute[] => names.map(name => ({ name, kind: 'string' }))
const flagged = (name: string): Attribute => ({ name, kind: 'boolean' })
const complex = (name: string, sub: Attribute[]): Attribute => ({ name, kind: 'complex', sub })
const list = (name: string, sub: Attribute[]): Attribute => ({ name, kind: 'complex', multi: true, sub })
const plural = (name: string): Attribute =>
  list(name, [...texts('value', 'display', 'type'), flagged('primary')])

const common: readonly Attribute[] = [
  { name: 'schemas', kind: 'string', multi: true },
  ...texts('externalId', 'displayName'),
]

/** RFC 7643, section 4.1, with the enterprise extension of section 4.3. */
export const userAttributes: readonly Attribute[] = [
  ...common,
  ...texts(
    'userName',
    'nickName',
    'profileUrl',
    'title',
    'userType',
    'preferredLanguage',
    'locale',
    'timezone',
  ),
  complex(
    'name',
    texts('formatted', 'familyName', 'givenName', 'middleName', 'honorificPrefix', 'honorificSuffix'),
  ),
  flagged('active'),
  ...['emails', 'phoneNumbers', 'ims', 'photos', 'entitlements', 'roles', 'x509Certificates'].map(plural),
  list('addresses', [
    ...texts('formatted', 'streetAddress', 'locality', 'region', 'postalCode', 'country', 'type'),
    flagged('primary'),
  ]),
  complex(enterpriseUrn, [
    ...texts('employeeNumber', 'costCenter', 'organization', 'division', 'department'),
    complex('manager', texts('value', '$ref', 'displayName')),
  ]),
]

/** RFC 7643, section 4.2. `members` are kept apart from the group. */
export const groupAttributes: readonly Attribute[] = [
  ...common,
  list('members', texts('value', 'display', 'type', '$ref')),
]

/** The attribute of that name whatever its letter case. */
export function attributeOf(
  attributes: readonly Attribute[] | undefined,
  name: string,
): Attribute | undefined {
  const folded = name.toLowerCase()
  return attributes?.find(attribute => attribute.name.toLowerCase() === folded)
}

/**
 * The resource with known attribute names in the schema's letter case and known values in the schema's type: text
 * booleans ("True") become booleans, a lone value of a multi-valued attribute a list, and a text where the value is
 * complex and has a `value` (an e-mail, a manager) that `value`. Attributes the schema does not know stay as they are. Throws invalidValue.
 */
export function conform(resource: JsonObject, attributes: readonly Attribute[], path = ''): JsonObject {
  const result: JsonObject = {}
  for (const [key, value] of Object.entries(resource)) {
    const attribute = attributeOf(attributes, key)
    const name = attribute?.name ?? key
    if (Object.hasOwn(result, name)) throw invalid(path + name, 'is given twice in different letter case')
    result[name] = attribute ? conformValue(value, attribute, path + name) : value
  }
  return result
}

function conformValue(value: Json, attribute: Attribute, path: string): Json {
  if (!attribute.multi) return conformSingle(value, attribute, path)
  const items = Array.isArray(value) ? value : [value]
  return items.map((item, index) => conformSingle(item, attribute, `${path}[${index}]`))
}

function conformSingle(value: Json, attribute: Attribute, path: string): Json {
  switch (attribute.kind) {
    case 'string':
      if (typeof value !== 'string') throw invalid(path, 'must be a string')
      return value
    case 'boolean':
      if (typeof value === 'boolean') return value
      if (typeof value === 'string' && /^(true|false)$/i.test(value)) return value.toLowerCase() === 'true'
      throw invalid(path, 'must be true or false')
    case 'complex': {
      const object = typeof value === 'string' && attributeOf(attribute.sub, 'value') ? { value } : value
      if (!isObject(object)) throw invalid(path, 'must be an object')
      return conform(object, attribute.sub ?? [], `${path}.`)
    }
  }
}

const invalid = (path: string, problem: string): ScimError =>
  new ScimError(400, `${path} ${problem}.`, 'invalidValue')
