import { type Static, Type } from 'typebox'
import { maxHeaderLength, maxHeaders, maxNameLength, maxUrlLength } from '../limits.js'
import { eventNames } from '../model.js'
import { overlapField } from './directory.js'
import { closed, component, flag, moment, orNull, text, whole, word } from './parts.js'

const events = Type.Array(word(eventNames))

const changeable = {
  secret: Type.Optional(
    orNull(Type.String({ maxLength: maxNameLength, description: 'As `webhook_secret` of a directory' })),
  ),
  events: Type.Optional(
    orNull(Type.Array(word(eventNames), { minItems: 1, description: 'Only these; null, or not sent: all' })),
  ),
  headers: Type.Optional(
    Type.Unsafe<Record<string, string> | null>({
      type: ['object', 'null'],
      additionalProperties: { type: 'string', minLength: 1, maxLength: maxHeaderLength },
      maxProperties: maxHeaders,
      description: 'Sent with each call. The values are not shown again',
    }),
  ),
  disabled: Type.Optional(flag('It receives nothing that happens in the meantime')),
}
const endpoint = Type.String({ minLength: 1, maxLength: maxUrlLength, description: 'A public https address' })

export const webhookSchema = component(
  'Webhook',
  Type.Object({
    id: text('`default` for the one that `webhook_url` names'),
    endpoint: text(),
    secret: text(),
    old_secret_valid_until: Type.Optional(moment()),
    events,
    header_names: Type.Array(text()),
    disabled: flag(),
  }),
)
/** A webhook as the list of a directory's webhooks shows it. */
export type ListedWebhook = Static<typeof webhookSchema>

export const newWebhookSchema = component('NewWebhook', closed({ endpoint, ...changeable }))
export type NewWebhook = Static<typeof newWebhookSchema>

export const webhookChangeSchema = component(
  'WebhookChange',
  closed({ endpoint: Type.Optional(endpoint), ...changeable, ...overlapField }, { minProperties: 1 }),
)
/** The fields of a webhook that may be changed; those not named stay as they are. */
export type WebhookChange = Static<typeof webhookChangeSchema>

export const webhookTrialSchema = component(
  'WebhookTrial',
  Type.Object({
    delivered: flag(),
    status_code: orNull(whole('Null when no answer came')),
    error: orNull(text()),
  }),
)
export type WebhookTrial = Static<typeof webhookTrialSchema>
