import { limits } from '../limits.js'
import type { JsonObject } from '../model.js'
import {
  type Attribute,
  coreGroupAttributes,
  coreUserAttributes,
  enterpriseAttributes,
  enterpriseUrn,
  groupUrn,
  userUrn,
} from './attributes.js'
import { namings } from './naming.js'
import { maxCount } from './question.js'

const core = 'urn:ietf:params:scim:schemas:core:2.0'

/** What the intake can do (RFC 7643, section 5). */
export const serviceProviderConfig = (base: string): JsonObject => ({
  schemas: [`${core}:ServiceProviderConfig`],
  patch: { supported: true },
  bulk: { supported: true, maxOperations: limits.bulkOperations, maxPayloadSize: limits.bodyBytes },
  filter: { supported: true, maxResults: maxCount },
  changePassword: { supported: false },
  sort: { supported: true },
  etag: { supported: true },
  authenticationSchemes: [
    {
      type: 'oauthbearertoken',
      name: 'Bearer token',
      description: "The directory's SCIM secret, in the header Authorization",
      specUri: 'https://www.rfc-editor.org/info/rfc6750',
      primary: true,
    },
  ],
  meta: { resourceType: 'ServiceProviderConfig', location: `${base}/ServiceProviderConfig` },
})

/** The resource types (RFC 7643, section 6) by name. */
export function resourceTypes(base: string): Map<string, JsonObject> {
  return new Map(
    Object.values(namings).map(({ name, path, schema, extensions, description }) => [
      name,
      {
        schemas: [`${core}:ResourceType`],
        id: name,
        name,
        endpoint: `/${path}`,
        description,
        schema,
        schemaExtensions: extensions.map(urn => ({ schema: urn, required: false })),
        meta: { resourceType: 'ResourceType', location: `${base}/ResourceTypes/${name}` },
      },
    ]),
  )
}

/** The schemas (RFC 7643, section 7) by URN. */
export function schemas(base: string): Map<string, JsonObject> {
  const document = (
    id: string,
    name: string,
    description: string,
    attributes: readonly Attribute[],
  ): [string, JsonObject] => [
    id,
    {
      schemas: [`${core}:Schema`],
      id,
      name,
      description,
      attributes: attributes.map(describe),
      meta: { resourceType: 'Schema', location: `${base}/Schemas/${id}` },
    },
  ]
  return new Map([
    document(userUrn, 'User', namings.user.description, coreUserAttributes),
    document(groupUrn, 'Group', namings.group.description, coreGroupAttributes),
    document(enterpriseUrn, 'EnterpriseUser', 'What organizations know of a user', enterpriseAttributes),
  ])
}

/** An attribute with every characteristic written out; only texts can be compared with their letter case. */
function describe(attribute: Attribute): JsonObject {
  const { name, kind, description, sub, canonicalValues, referenceTypes } = attribute
  const isText = kind !== 'boolean' && kind !== 'complex'
  return {
    name,
    type: kind,
    multiValued: attribute.multi ?? false,
    description,
    required: attribute.required ?? false,
    ...(isText
      ? { caseExact: attribute.caseExact ?? kind === 'reference', uniqueness: attribute.uniqueness ?? 'none' }
      : {}),
    mutability: attribute.mutability ?? 'readWrite',
    returned: attribute.returned ?? 'default',
    ...(canonicalValues ? { canonicalValues: [...canonicalValues] } : {}),
    ...(referenceTypes ? { referenceTypes: [...referenceTypes] } : {}),
    ...(sub ? { subAttributes: sub.map(describe) } : {}),
  }
}
