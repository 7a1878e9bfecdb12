import { directoryTypes } from '../model.js'
import { type Changeable, minKeyBytes, minSecretLength } from './directory-fields.js'

/** JSON Schemas that the API document names; routes refer to them by `refTo`. */
type Schema = Readonly<Record<string, unknown>>

const text = (description?: string): Schema => ({ type: 'string', ...(description ? { description } : {}) })
const flag: Schema = { type: 'boolean' }
const object = (properties: Record<string, Schema>, required = Object.keys(properties)): Schema => ({
  type: 'object',
  properties,
  required,
})
const each = (schema: Schema, ...names: string[]): Record<string, Schema> =>
  Object.fromEntries(names.map(name => [name, schema]))
const texts = (...names: string[]): Record<string, Schema> => each(text(), ...names)
const list = (items: Schema): Schema => ({ type: 'array', items })
const integer: Schema = { type: 'integer' }

/** Points to a component schema. */
export const refTo = (name: string): Schema => ({ $ref: `${name}#` })
/** A list of a component schema. */
export const listOf = (name: string): Schema => list(refTo(name))

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
const secretRule = `At least ${minSecretLength} characters; \`whsec_\` is followed by at least ${minKeyBytes} bytes in base64`

const change = (...names: string[]): Schema => object(each(integer, ...names))
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
      users: change('created', 'updated', 'deleted'),
      groups: change('created', 'updated', 'deleted'),
      memberships: change('added', 'removed'),
    }),
    type: ['object', 'null'],
    description: 'Of type external only. How the last pull went',
  },
}

const schemas = list(text())
const operations = (...required: string[]): Schema => list(object(texts(...required)))

const eventNames = [
  ...['user.created', 'user.updated', 'user.deleted', 'group.created', 'group.updated', 'group.deleted'],
  ...['group.user_added', 'group.user_removed'],
]

const changeable = {
  name: text(),
  webhook_url: text('A public http or https address'),
  webhook_secret: text(secretRule),
  external_domain: text('Of type external only: pulls users and groups of this domain'),
}

const components: Record<string, Schema> = {
  Directory: object(
    {
      ...texts('id', 'name', 'tenant', 'product'),
      type,
      ...each(flag, 'log_webhook_events', 'deactivated'),
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
  NewDirectory: object(
    {
      ...changeable,
      ...each(text('Without the character ":"'), 'tenant', 'product'),
      type: { ...type, default: 'generic-scim-v2' },
    },
    ['tenant', 'product'],
  ),
  DirectoryChange: object(
    {
      ...changeable,
      webhook: object(webhook.properties as never, []),
      log_webhook_events: flag,
      deactivated: flag,
    } satisfies Record<Changeable, Schema>,
    [],
  ),
  User: object({ ...texts('id', 'first_name', 'last_name', 'email'), active: flag, raw }),
  Group: object({ ...texts('id', 'name'), raw }),
  GroupWithMembers: object({
    ...texts('id', 'name'),
    raw,
    members: list(object(texts('group_id', 'user_id'))),
  }),
  Member: object(texts('user_id')),
  Event: object(
    {
      event: { type: 'string', enum: eventNames },
      ...texts('tenant', 'product', 'directory_id'),
      data: {
        type: 'object',
        description: 'The user or group after the change; of a membership, the user with its `group`',
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
  WebhookEvent: object({
    id: text('The `webhook-id` of the message'),
    ...texts('directory_id', 'tenant', 'product', 'webhook_endpoint'),
    created_at: moment('Of the first attempt'),
    status_code: { type: ['integer', 'null'], description: 'Of the last answer' },
    delivered: flag,
    attempts: integer,
    error: { type: ['string', 'null'] },
    payload: { description: 'The event, or in batch mode an array of events' },
  }),
  DeadLetter: object({
    id: text('Of the event'),
    ...texts('directory_id', 'tenant', 'product'),
    failed_at: moment('Of the last attempt'),
    attempts: integer,
    error: text(),
    replaying: { type: 'boolean', description: 'From the wish for a replay to its attempt' },
    payload: refTo('Event'),
  }),
  Error: object({ data: { type: 'null' }, error: object({ message: text(), code: integer }) }),
  ScimResource: {
    type: 'object',
    description: 'RFC 7643; the attributes are listed at the /Schemas of a directory',
    additionalProperties: true,
  },
  ScimList: object({
    schemas,
    ...each(integer, 'totalResults', 'startIndex', 'itemsPerPage'),
    Resources: listOf('ScimResource'),
  }),
  ScimPatch: object({ schemas, Operations: operations('op') }, ['Operations']),
  ScimBulk: object({ schemas, Operations: operations('method', 'path') }, ['Operations']),
  ScimSearch: object(
    {
      schemas,
      filter: text(),
      ...each(integer, 'startIndex', 'count'),
      ...texts('sortBy', 'sortOrder'),
      ...each(list(text()), 'attributes', 'excludedAttributes'),
    },
    [],
  ),
  ScimError: object({ schemas, ...texts('status', 'scimType', 'detail') }, ['schemas', 'status', 'detail']),
}

export const componentSchemas: readonly Schema[] = Object.entries(components).map(([$id, schema]) => ({
  $id,
  ...schema,
}))
