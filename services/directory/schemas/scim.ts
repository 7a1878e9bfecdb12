/** Messages of the SCIM intake (RFC 7644). The attributes of resources are listed at the /Schemas of a directory. */
import { type TSchema, Type } from 'typebox'
import { component, orNull, refTo, text, whole } from './parts.js'

/** In a request: its URL already says which message it is. */
const schemas = Type.Unknown({ description: 'The URN of the message; ignored' })
/** Nothing is required: an error in one operation is reported as that operation's result. */
const bulkOperation = Type.Unknown({
  description: 'An object with `method`, `path`, `bulkId`, `version` and `data` (RFC 7644, section 3.7)',
})
const operations = (items: TSchema) =>
  Type.Object({ schemas: Type.Optional(schemas), Operations: Type.Array(items) })

export const scimResourceSchema = component(
  'ScimResource',
  Type.Object(
    {},
    {
      description: 'RFC 7643; the attributes are listed at the /Schemas of a directory',
      additionalProperties: true,
    },
  ),
)
export const scimListSchema = component(
  'ScimList',
  Type.Object({
    schemas: Type.Array(text()),
    totalResults: whole(),
    startIndex: whole(),
    itemsPerPage: whole(),
    Resources: Type.Array(refTo(scimResourceSchema)),
  }),
)
export const scimPatchSchema = component('ScimPatch', operations(Type.Object({ op: text() })))
export const scimBulkSchema = component('ScimBulk', operations(bulkOperation))
export const scimSearchSchema = component(
  'ScimSearch',
  Type.Object({
    schemas: Type.Optional(schemas),
    filter: Type.Optional(orNull(text())),
    startIndex: Type.Optional(orNull(whole())),
    count: Type.Optional(orNull(whole())),
    sortBy: Type.Optional(orNull(text())),
    sortOrder: Type.Optional(orNull(text())),
    attributes: Type.Optional(orNull(Type.Array(text()))),
    excludedAttributes: Type.Optional(orNull(Type.Array(text()))),
  }),
)
export const scimErrorSchema = component(
  'ScimError',
  Type.Object({
    schemas: Type.Array(text()),
    status: text(),
    scimType: Type.Optional(text()),
    detail: text(),
  }),
)
