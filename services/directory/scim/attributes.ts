import type { ResourceType } from '../model.js'

/** An attribute as defined in RFC 7643, section 7; omitted properties have the RFC's defaults. */
export interface Attribute {
  readonly name: string
  readonly kind: 'string' | 'boolean' | 'complex' | 'reference' | 'binary'
  readonly description: string
  readonly multi?: true
  readonly sub?: readonly Attribute[]
  readonly required?: true
  readonly caseExact?: true
  readonly mutability?: 'readOnly' | 'immutable'
  /** `request`: returned only on request. */
  readonly returned?: 'always' | 'request'
  readonly uniqueness?: 'server'
  readonly canonicalValues?: readonly string[]
  readonly referenceTypes?: readonly string[]
}

/** The schema URNs of RFC 7643, section 10. */
export const userUrn = 'urn:ietf:params:scim:schemas:core:2.0:User'
export const groupUrn = 'urn:ietf:params:scim:schemas:core:2.0:Group'
export const enterpriseUrn = 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User'

const text = (name: string, description: string, more: Partial<Attribute> = {}): Attribute => ({
  name,
  kind: 'string',
  description,
  ...more,
})
const flag = (name: string, description: string): Attribute => ({ name, kind: 'boolean', description })
const complex = (
  name: string,
  description: string,
  sub: readonly Attribute[],
  more: Partial<Attribute> = {},
): Attribute => ({ name, kind: 'complex', description, sub, ...more })
const reference = (name: string, description: string, type: string, more: Partial<Attribute> = {}) =>
  text(name, description, { kind: 'reference', referenceTypes: [type], ...more })
const primary = flag('primary', 'Whether this value is the preferred one; true at most once')

/** A list of values with a type, such as e-mail addresses. */
function plural(
  name: string,
  description: string,
  types: readonly string[],
  value: Partial<Attribute> = {},
): Attribute {
  const sub = [
    text('value', 'The value', value),
    text('display', 'A name for people to read'),
    text('type', 'What the value is for', types.length > 0 ? { canonicalValues: types } : {}),
    primary,
  ]
  return complex(name, description, sub, { multi: true })
}

const externalId = text('externalId', "The identity provider's id of this resource", { caseExact: true })

/** In every resource, whatever its schemas (RFC 7643, section 3.1). */
export const commonAttributes: readonly Attribute[] = [
  text('schemas', 'The URNs of the schemas in use', { multi: true, caseExact: true, returned: 'always' }),
]

/** RFC 7643, section 4.1. Passwords are left out: they are never stored. */
export const coreUserAttributes: readonly Attribute[] = [
  text('userName', 'The name the user signs in with, unique in the directory whatever its letter case', {
    required: true,
    uniqueness: 'server',
  }),
  externalId,
  complex('name', "The parts of the user's name", [
    text('formatted', 'The whole name'),
    text('familyName', 'The family name'),
    text('givenName', 'The given name'),
    text('middleName', 'The middle names'),
    text('honorificPrefix', 'Titles before the name'),
    text('honorificSuffix', 'Titles after the name'),
  ]),
  text('displayName', 'The name shown to people'),
  text('nickName', 'A casual name'),
  reference('profileUrl', 'An address about the user', 'external'),
  text('title', 'A title such as "Vice President"'),
  text('userType', 'The relation to the organization, such as "Contractor"'),
  text('preferredLanguage', 'As the header Accept-Language, such as "en-US"'),
  text('locale', 'For dates and currency, such as "en-US"'),
  text('timezone', 'A name of the time zone database, such as "Europe/Berlin"'),
  flag('active', 'Whether the user may use the service; true when not sent'),
  plural('emails', 'E-mail addresses', ['work', 'home', 'other']),
  plural('phoneNumbers', 'Telephone numbers', ['work', 'home', 'mobile', 'fax', 'pager', 'other']),
  plural('ims', 'Addresses for instant messages', []),
  plural('photos', 'Addresses of pictures', ['photo', 'thumbnail'], {
    kind: 'reference',
    referenceTypes: ['external'],
  }),
  complex(
    'addresses',
    'Postal addresses',
    [
      text('formatted', 'The whole address'),
      text('streetAddress', 'Street and number, with line breaks'),
      text('locality', 'City'),
      text('region', 'State or region'),
      text('postalCode', 'Postal code'),
      text('country', 'Two letters of ISO 3166-1'),
      text('type', 'What the address is for', { canonicalValues: ['work', 'home', 'other'] }),
      primary,
    ],
    { multi: true },
  ),
  {
    ...complex('groups', 'The groups the user belongs to; changed through the groups', [
      text('value', "The group's id", { mutability: 'readOnly' }),
      reference('$ref', "The group's address", 'Group', { mutability: 'readOnly' }),
      text('display', "The group's name", { mutability: 'readOnly' }),
    ]),
    multi: true,
    mutability: 'readOnly',
    returned: 'request',
  },
  plural('entitlements', 'What the user is entitled to', []),
  plural('roles', 'Roles of the user', []),
  plural('x509Certificates', 'Certificates in base64', [], { kind: 'binary', caseExact: true }),
]

/** RFC 7643, section 4.3. */
export const enterpriseAttributes: readonly Attribute[] = [
  text('employeeNumber', 'The number the organization gave the user'),
  text('costCenter', 'Cost center'),
  text('organization', 'Organization'),
  text('division', 'Division'),
  text('department', 'Department'),
  complex('manager', "The user's manager", [
    text('value', "The manager's id"),
    reference('$ref', "The manager's address", 'User'),
    text('displayName', "The manager's name"),
  ]),
]

/** RFC 7643, section 4.2. */
export const coreGroupAttributes: readonly Attribute[] = [
  text('displayName', 'The name of the group, unique in the directory whatever its letter case', {
    required: true,
    uniqueness: 'server',
  }),
  externalId,
  {
    ...complex('members', 'The users in the group', [
      text('value', "The user's id", { mutability: 'immutable' }),
      reference('$ref', "The user's address", 'User', { mutability: 'immutable' }),
      text('type', 'Always User', { mutability: 'immutable', canonicalValues: ['User'] }),
      text('display', "The user's name", { mutability: 'readOnly' }),
    ]),
    multi: true,
  },
]

/** The external names of a resource type (RFC 7643, section 6). */
export interface Naming {
  readonly type: ResourceType
  /** In URLs. */
  readonly path: 'Users' | 'Groups'
  /** In `meta.resourceType`. */
  readonly name: 'User' | 'Group'
  readonly schema: string
  readonly extensions: readonly string[]
  readonly description: string
}

export const namings: Readonly<Record<ResourceType, Naming>> = {
  user: {
    type: 'user',
    path: 'Users',
    name: 'User',
    schema: userUrn,
    extensions: [enterpriseUrn],
    description: 'User account',
  },
  group: {
    type: 'group',
    path: 'Groups',
    name: 'Group',
    schema: groupUrn,
    extensions: [],
    description: 'Group of users',
  },
}
