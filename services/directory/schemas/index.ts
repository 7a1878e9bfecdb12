/** All schemas that the API document names. */
import {
  directoryChangeSchema,
  directorySchema,
  newDirectorySchema,
  newSetupLinkSchema,
  setupLinkSchema,
} from './directory.js'
import { deadLetterSchema, eventSchema, webhookEventSchema } from './events.js'
import { errorSchema, problemSchema } from './parts.js'
import { fullGroupSchema, groupSchema, memberSchema, userSchema } from './people.js'
import {
  scimBulkSchema,
  scimErrorSchema,
  scimListSchema,
  scimPatchSchema,
  scimResourceSchema,
  scimSearchSchema,
} from './scim.js'
import { newWebhookSchema, webhookChangeSchema, webhookSchema, webhookTrialSchema } from './webhooks.js'

export const components = [
  ...[directorySchema, newDirectorySchema, directoryChangeSchema],
  ...[userSchema, groupSchema, fullGroupSchema, memberSchema],
  ...[eventSchema, webhookEventSchema, deadLetterSchema],
  ...[webhookSchema, newWebhookSchema, webhookChangeSchema, webhookTrialSchema],
  ...[setupLinkSchema, newSetupLinkSchema],
  ...[errorSchema, problemSchema],
  ...[scimResourceSchema, scimListSchema, scimPatchSchema, scimBulkSchema, scimSearchSchema, scimErrorSchema],
] as const
