import { eventNames } from '../model.js'
import { maxHeaderLength, maxHeaders, maxNameLength, maxUrlLength } from './directory-fields.js'

/** What the API document says of webhooks. */
const text = { type: 'string' }
const events = { type: 'array', items: { type: 'string', enum: [...eventNames] } }
const moment = { type: 'string', format: 'date-time' }

const changeable = {
  endpoint: { ...text, minLength: 1, maxLength: maxUrlLength, description: 'A public https address' },
  secret: {
    type: ['string', 'null'],
    maxLength: maxNameLength,
    description: 'As `webhook_secret` of a directory',
  },
  events: {
    ...events,
    type: ['array', 'null'],
    minItems: 1,
    description: 'Only these; null, or not sent: all',
  },
  headers: {
    type: ['object', 'null'],
    additionalProperties: { ...text, minLength: 1, maxLength: maxHeaderLength },
    maxProperties: maxHeaders,
    description: 'Sent with each call. The values are not shown again',
  },
  disabled: { type: 'boolean', description: 'It is told of nothing that happens meanwhile' },
}

export const webhookSchemas = [
  {
    $id: 'Webhook',
    type: 'object',
    properties: {
      id: { ...text, description: '`default` for the one that `webhook_url` names' },
      endpoint: text,
      secret: text,
      old_secret_valid_until: moment,
      events,
      header_names: { type: 'array', items: text },
      disabled: { type: 'boolean' },
    },
    required: ['id', 'endpoint', 'secret', 'events', 'header_names', 'disabled'],
  },
  {
    $id: 'NewWebhook',
    type: 'object',
    properties: changeable,
    required: ['endpoint'],
    additionalProperties: false,
  },
  {
    $id: 'WebhookChange',
    type: 'object',
    properties: changeable,
    minProperties: 1,
    additionalProperties: false,
  },
  {
    $id: 'WebhookTrial',
    type: 'object',
    properties: {
      delivered: { type: 'boolean' },
      status_code: { type: ['integer', 'null'], description: 'Null when no answer came' },
      error: { type: ['string', 'null'] },
    },
    required: ['delivered', 'status_code', 'error'],
  },
]
