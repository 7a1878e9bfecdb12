import { type Static, Type } from 'typebox'
import { eventNames } from '../model.js'
import { component, flag, moment, orNull, refTo, text, whole, word } from './parts.js'

const facts = (about: string) => Type.Unsafe<Record<string, unknown>>({ type: 'object', description: about })

export const eventSchema = component(
  'Event',
  Type.Object({
    event: word(eventNames),
    tenant: text(),
    product: text(),
    directory_id: text(),
    data: facts(
      'The user or group after the change; of a membership, the user with its `group`; of `dsync.*` the directory',
    ),
    previous_attributes: Type.Optional(facts('Of an update: what changed, with the values from before')),
    id: text(),
    created_at: moment(),
    sequence: whole('Number of the event within the directory, without gaps'),
  }),
)
/** An event as webhooks, the feed and callbacks get it. */
export type DirectoryEvent = Static<typeof eventSchema>

const about = { directory_id: text(), tenant: text(), product: text() }

export const webhookEventSchema = component(
  'WebhookEvent',
  Type.Object({
    id: text('The `webhook-id` of the message; of a further webhook with its id after a dot'),
    webhook_id: text(),
    ...about,
    webhook_endpoint: text(),
    created_at: moment('Of the first attempt'),
    status_code: orNull(whole('Of the last answer')),
    delivered: flag(),
    attempts: whole(),
    error: orNull(text()),
    payload: Type.Unknown({ description: 'The event, or in batch mode an array of events' }),
  }),
)
/** An entry of the webhook-event log. */
export type WebhookEventView = Static<typeof webhookEventSchema>

export const deadLetterSchema = component(
  'DeadLetter',
  Type.Object({
    id: text('Of the event; of a further webhook with its id after a dot'),
    webhook_id: text(),
    ...about,
    failed_at: moment('Of the last attempt'),
    attempts: whole(),
    error: text(),
    replaying: flag('From the request for a replay to its attempt'),
    payload: refTo(eventSchema),
  }),
)
/** An event that was given up. */
export type DeadLetterView = Static<typeof deadLetterSchema>

export const startedSchema = Type.Object({ message: text() })
/** What was started, in a sentence. */
export type Started = Static<typeof startedSchema>
export const replayedSchema = Type.Object({ replaying: whole() })
/** How many dead letters are tried again. */
export type Replayed = Static<typeof replayedSchema>
