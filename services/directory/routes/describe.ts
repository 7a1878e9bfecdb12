import { refTo } from './api-schemas.js'
import type { Endpoint, Handler } from './http.js'

type Schema = Readonly<Record<string, unknown>>

/** What the API document tells of a management endpoint. */
export interface About {
  readonly tag: 'Directories' | 'Webhooks' | 'Users and groups' | 'Events' | 'External provider'
  readonly summary: string
  readonly description?: string
  /** Names of path parameters. */
  readonly path?: readonly string[]
  /** Query parameters by name. */
  readonly query?: Readonly<Record<string, Schema>>
  /** Those that must be sent. */
  readonly needs?: readonly string[]
  readonly body?: Schema
  /** The schema of `data`. */
  readonly data: Schema
  readonly status?: 200 | 201
  /** A list names the place of its next page. */
  readonly paged?: boolean
  /** The whole answer, where it is not `{data, error}`. */
  readonly answer?: Schema
}

const problems = { '4xx': refTo('Error'), '5xx': refTo('Error') }
const textParameter: Schema = { type: 'string' }

/** The query parameters that choose one directory, or all of a tenant's product. */
export const scopeQuery: Readonly<Record<string, Schema>> = {
  tenant: textParameter,
  product: textParameter,
  directoryId: { ...textParameter, description: 'In place of tenant and product' },
}
/** The query parameters of a list. */
export const pageQuery: Readonly<Record<string, Schema>> = {
  pageOffset: { type: 'integer', minimum: 0, default: 0, description: '`offset` is an alias' },
  pageLimit: {
    type: 'integer',
    minimum: 1,
    default: 50,
    description: 'More than 500 is taken as 500; `limit` and `page_size` are aliases',
  },
  pageToken: {
    ...textParameter,
    description: 'From the answer before; costs the same at any depth; `page_token` is an alias',
  },
}

/** An endpoint of the management API with its answer in the envelope `{data, error}`. */
export function endpoint(about: About, handler: Handler): Endpoint {
  const {
    tag,
    summary,
    description,
    path = [],
    query,
    needs = [],
    body,
    data,
    status = 200,
    paged,
    answer,
  } = about
  const envelope = {
    type: 'object',
    properties: {
      data,
      error: { type: 'null' },
      ...(paged ? { pageToken: { type: 'string', description: 'When there is a next page' } } : {}),
    },
    required: ['data', 'error'],
  }
  const schema = {
    tags: [tag],
    summary,
    ...(description ? { description } : {}),
    security: [{ managementKey: [] }],
    ...(path.length > 0 ? { params: parameters(path) } : {}),
    ...(query ? { querystring: { type: 'object', properties: query, required: needs } } : {}),
    ...(body ? { body } : {}),
    response: { [status]: { description: 'Success', ...(answer ?? envelope) }, ...problems },
  }
  return { schema, handler }
}

/** The schema of path parameters. */
export const parameters = (names: readonly string[]): Schema => ({
  type: 'object',
  properties: Object.fromEntries(names.map(name => [name, textParameter])),
  required: names,
})
