/** All that the API document names. */
import { directoryChangeSchema, directorySchema, newDirectorySchema } from './directory.js'
import { deadLetterSchema, eventSchema, webhookEventSchema } from './events.js'
import { fullGroupSchema, groupSchema, memberSchema, userSchema } from './people.js'
import { errorSchema, problemSchema } from './refusals.js'
import {
  scimBulkSchema,
  scimErrorSchema,
  scimListSchema,
  scimPatchSchema,
  scimResourceSchema,
  scimSearchSchema,
} from './scim.js'

export const components = [
  ...[directorySchema, newDirectorySchema, directoryChangeSchema],
  ...[userSchema, groupSchema, fullGroupSchema, memberSchema],
  ...[eventSchema, webhookEventSchema, deadLetterSchema],
  ...[errorSchema, problemSchema],
  ...[scimResourceSchema, scimListSchema, scimPatchSchema, scimBulkSchema, scimSearchSchema, scimErrorSchema],
] as const
