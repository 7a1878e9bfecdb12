import { limits } from '../limits.js'
import type { JsonObject } from '../model.js'
import {
  type Attribute,
  coreGroupAttributes,
  coreUserAttributes,
  enterpriseAttributes,
  enterpriseUrn,
  groupUrn,
  namings,
  userUrn,
} from './attributes.js'
import { ScimError } from './error.js'
import { maxCount } from './question.js'

const core = 'urn:ietf:params:scim:schemas:core:2.0'

/** A list of discovery documents, or the one of them with that id. Throws 404. */
export function listed(documents: Map<string, JsonObject>, id: string | undefined): JsonObject {
  if (id !== undefined) {
    const document = documents.get(id)
    if (document) return document
    throw new ScimError(404, 'There is no document of this name.')
  }
  const Resources = [...documents.values()]
  return {
    schemas: ['urn:ietf:params:scim:api:messages:2.0:ListResponse'],
    totalResults: Resources.length,
    startIndex: 1,
    itemsPerPage: Resources.length,
    Resources,
  }
}

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

/** An attribute with every characteristic written out; only texts have `caseExact` and `uniqueness`. */
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
