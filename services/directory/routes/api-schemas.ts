import { directoryTypes, eventNames } from '../model.js'
import {
  type Changeable,
  maxNameLength,
  maxUrlLength,
  minKeyBytes,
  minSecretLength,
} from './directory-fields.js'

/** JSON Schemas that the API document names; routes refer to them by `refTo`. */
type Schema = Readonly<Record<string, unknown>>

const text = (description?: string): Schema => ({ type: 'string', ...(description ? { description } : {}) })
const flag: Schema = { type: 'boolean' }
const object = (properties: Record<string, Schema>, required = Object.keys(properties)): Schema => ({
  type: 'object',
  properties,
  required,
})
/** Of a body: what it does not list is refused. */
const closed = (properties: Record<string, Schema>, required: string[]): Schema => ({
  ...object(properties, required),
  additionalProperties: false,
})
const named = ($id: string, schema: Schema): Schema => ({ $id, ...schema })

/** Points to a component schema. */
export const refTo = (name: string): Schema => ({ $ref: `${name}#` })
/** A list of a component schema. */
export const listOf = (name: string): Schema => ({ type: 'array', items: refTo(name) })

const type: Schema = { type: 'string', enum: [...directoryTypes] }
const moment = (description?: string): Schema => ({ ...text(description), format: 'date-time' })
const webhook = object(
  {
    endpoint: text('Receives events by POST; empty: no webhook'),
    secret: text('Signs the events'),
    old_secret_valid_until: moment('After a change of the secret: until then both sign'),
  },
  ['endpoint', 'secret'],
)
const raw: Schema = { type: 'object', description: 'The SCIM resource as received, with its id' }
const scimResource: Schema = {
  type: 'object',
  description: 'RFC 7643; the attributes are listed at the /Schemas of a directory',
}
const secretRule = `At least ${minSecretLength} characters; \`whsec_\` is followed by at least ${minKeyBytes} bytes in base64`

const change = (names: string[]): Schema =>
  object(Object.fromEntries(names.map(name => [name, { type: 'integer' }])))
/** What directories of type external have besides. */
const pulled = {
  external_domain: text('Of type external only. Empty: all domains of the account'),
  external_access_token: text('Of type external only. Empty: not connected'),
  external_refresh_token: text('Of type external only'),
  external_sync: {
    ...object({
      status: {
        type: 'string',
        enum: ['running', 'complete', 'incomplete', 'refused', 'failed', 'interrupted'],
      },
      started_at: moment(),
      finished_at: { type: ['string', 'null'], format: 'date-time' },
      error: { type: ['string', 'null'] },
      users: change(['created', 'updated', 'deleted']),
      groups: change(['created', 'updated', 'deleted']),
      memberships: change(['added', 'removed']),
    }),
    type: ['object', 'null'],
    description: 'Of type external only. How the last pull went',
  },
}

/** Nothing is required: what is wrong with one operation is the answer to that one. */
const bulkOperation: Schema = {
  description: 'An object with `method`, `path`, `bulkId`, `version` and `data` (RFC 7644, section 3.7)',
}
const nullable = (type: 'string' | 'integer' | 'array'): Schema => ({ type: [type, 'null'] })
/** Of a message: its address says already what it is. */
const schemas: Schema = { description: 'The URN of the message; passed over' }

/** A tenant or product. */
export const identifierSchema: Schema = {
  type: 'string',
  minLength: 1,
  maxLength: maxNameLength,
  pattern: '^[^:\\u0000-\\u001f\\u007f-\\u009f]*$',
  description: 'Without the character ":"; not blank',
}
/** What may be left out, be null or be empty. */
const optional = (description?: string, more: Schema = {}): Schema => ({
  ...text(description),
  ...more,
  type: ['string', 'null'],
})

const changeable = {
  name: optional('Empty: not changed, or `scim-<tenant>-<product>`', { maxLength: maxNameLength }),
  log_webhook_events: flag,
  deactivated: flag,
  webhook: {
    ...closed(
      {
        endpoint: optional('As webhook_url'),
        secret: optional('As webhook_secret'),
        old_secret_valid_until: { description: 'As answers show it; passed over' },
      },
      [],
    ),
    type: ['object', 'null'],
    description: 'In place of `webhook_url` and `webhook_secret`',
  },
  webhook_url: optional('A public https address; empty: no webhook', { maxLength: maxUrlLength }),
  webhook_secret: optional(secretRule, { maxLength: maxNameLength }),
  external_domain: optional('Of type external only: pulls users and groups of this domain'),
} satisfies Record<Changeable, Schema>

export const componentSchemas: readonly Schema[] = [
  named(
    'Directory',
    object(
      {
        id: text(),
        name: text(),
        tenant: text(),
        product: text(),
        type,
        log_webhook_events: flag,
        deactivated: flag,
        scim: object(
          {
            path: text(),
            secret: text('The bearer token of the identity provider'),
            endpoint: text('The SCIM base address of the identity provider'),
            old_secret_valid_until: { type: 'string', format: 'date-time', description: 'After a rotation' },
          },
          ['path', 'secret', 'endpoint'],
        ),
        webhook,
        ...pulled,
      },
      ['id', 'name', 'tenant', 'product', 'type', 'log_webhook_events', 'deactivated', 'scim', 'webhook'],
    ),
  ),
  named(
    'NewDirectory',
    closed(
      {
        ...changeable,
        tenant: identifierSchema,
        product: identifierSchema,
        type: { type: ['string', 'null'], enum: [...directoryTypes, '', null], default: 'generic-scim-v2' },
      },
      ['tenant', 'product'],
    ),
  ),
  named('DirectoryChange', { ...closed(changeable, []), minProperties: 1 }),
  named(
    'User',
    object({
      id: text(),
      first_name: text(),
      last_name: text(),
      email: text(),
      active: flag,
      raw,
    }),
  ),
  named('Group', object({ id: text(), name: text(), raw })),
  named(
    'GroupWithMembers',
    object({
      id: text(),
      name: text(),
      raw,
      members: { type: 'array', items: object({ group_id: text(), user_id: text() }) },
    }),
  ),
  named('Member', object({ user_id: text() })),
  named(
    'Event',
    object(
      {
        event: {
          type: 'string',
          enum: [...eventNames],
        },
        tenant: text(),
        product: text(),
        directory_id: text(),
        data: {
          type: 'object',
          description:
            'The user or group after the change; of a membership, the user with its `group`; of `dsync.*` the directory',
        },
        previous_attributes: {
          type: 'object',
          description: 'Of an update: what changed, with the values from before',
        },
        id: text(),
        created_at: moment(),
        sequence: { type: 'integer', description: 'Counts the events of the directory, without a gap' },
      },
      ['event', 'tenant', 'product', 'directory_id', 'data', 'id', 'created_at', 'sequence'],
    ),
  ),
  named(
    'WebhookEvent',
    object({
      id: text('The `webhook-id` of the message; of a further webhook with its id after a dot'),
      directory_id: text(),
      webhook_id: text(),
      tenant: text(),
      product: text(),
      webhook_endpoint: text(),
      created_at: moment('Of the first attempt'),
      status_code: { type: ['integer', 'null'], description: 'Of the last answer' },
      delivered: flag,
      attempts: { type: 'integer' },
      error: { type: ['string', 'null'] },
      payload: { description: 'The event, or in batch mode an array of events' },
    }),
  ),
  named(
    'DeadLetter',
    object({
      id: text('Of the event; of a further webhook with its id after a dot'),
      directory_id: text(),
      webhook_id: text(),
      tenant: text(),
      product: text(),
      failed_at: moment('Of the last attempt'),
      attempts: { type: 'integer' },
      error: text(),
      replaying: { type: 'boolean', description: 'From the wish for a replay to its attempt' },
      payload: refTo('Event'),
    }),
  ),
  named(
    'Error',
    object({ data: { type: 'null' }, error: object({ message: text(), code: { type: 'integer' } }) }),
  ),
  named('Problem', {
    ...object(
      {
        type: text(),
        title: text(),
        status: { type: 'integer' },
        detail: text('What to do'),
        code: text('For programs'),
        instance: text("The request's id"),
      },
      ['type', 'title', 'status', 'detail', 'code'],
    ),
    description: 'An answer of the gateway in front (RFC 9457)',
  }),
  named('ScimResource', { ...scimResource, additionalProperties: true }),
  named(
    'ScimList',
    object({
      schemas: { type: 'array', items: text() },
      totalResults: { type: 'integer' },
      startIndex: { type: 'integer' },
      itemsPerPage: { type: 'integer' },
      Resources: listOf('ScimResource'),
    }),
  ),
  named(
    'ScimPatch',
    object({ schemas, Operations: { type: 'array', items: object({ op: text() }) } }, ['Operations']),
  ),
  named('ScimBulk', object({ schemas, Operations: { type: 'array', items: bulkOperation } }, ['Operations'])),
  named(
    'ScimSearch',
    object(
      {
        schemas,
        filter: nullable('string'),
        startIndex: nullable('integer'),
        count: nullable('integer'),
        sortBy: nullable('string'),
        sortOrder: nullable('string'),
        attributes: { ...nullable('array'), items: text() },
        excludedAttributes: { ...nullable('array'), items: text() },
      },
      [],
    ),
  ),
  named(
    'ScimError',
    object({ schemas: { type: 'array', items: text() }, status: text(), scimType: text(), detail: text() }, [
      'schemas',
      'status',
      'detail',
    ]),
  ),
]
