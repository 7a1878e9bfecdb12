import { type Static, type TObject, type TProperties, type TSchema, Type } from 'typebox'
import { errorSchema, refTo, text } from '../schemas/parts.js'
import { mayBeAbsent, unknownName } from './body.js'
import { type Endpoint, HttpError, query as queryParameter, type Request, type RouteHandler } from './http.js'

/** The description of a management endpoint in the API document. */
export interface About {
  readonly tag: 'Directories' | 'Webhooks' | 'Users and groups' | 'Events' | 'External provider'
  readonly summary: string
  readonly description?: string
  readonly path?: readonly string[]
  /** Query parameters by name; required ones are not marked as optional. */
  readonly query?: TProperties
  readonly body?: TSchema
  readonly data: TSchema
  readonly status?: 200 | 201
  /** The list names its next page. */
  readonly paged?: boolean
  /** The whole response, which the handler then returns, when it is not `{data, error}`. */
  readonly answer?: TSchema
}

const problems = { '4xx': refTo(errorSchema), '5xx': refTo(errorSchema) }

/** The query parameters that choose one directory, or all of a tenant and product. */
export const scopeQuery = {
  tenant: Type.Optional(text()),
  product: Type.Optional(text()),
  directoryId: Type.Optional(text('In place of tenant and product')),
}
/** The scope of a query, as in `scopeQuery`. */
export type Where = Static<TObject<typeof scopeQuery>>
export const pageQuery = {
  pageOffset: Type.Optional(Type.Integer({ minimum: 0, default: 0, description: '`offset` is an alias' })),
  pageLimit: Type.Optional(
    Type.Integer({
      minimum: 1,
      default: 50,
      description: 'Values above 500 count as 500; `limit` and `page_size` are aliases',
    }),
  ),
  pageToken: Type.Optional(
    text('From the previous answer; equally fast at any depth; `page_token` is an alias'),
  ),
}

/** The part of a list to return, as in `pageQuery`. */
export type Paging = Static<TObject<typeof pageQuery>>

/**
 * An endpoint of the management API. The handler returns the `data` of the envelope `{data, error}`; that of a list with
 * pages an object with `data`, and `pageToken` if there is a next page.
 */
export function endpoint(about: About, handler: RouteHandler): Endpoint {
  const { tag, summary, description, path = [], query, body, data, status = 200, paged, answer } = about
  const more: TProperties = paged ? { pageToken: Type.Optional(text('When there is a next page')) } : {}
  const envelope = Type.Object({ data, error: Type.Null(), ...more })
  const schema = {
    tags: [tag],
    summary,
    ...(description ? { description } : {}),
    security: [{ managementKey: [] }],
    ...(path.length > 0 ? { params: parameters(path) } : {}),
    ...(query ? { querystring: Type.Object(query) } : {}),
    ...(body ? { body } : {}),
    response: { [status]: { description: 'Success', ...(answer ?? envelope) }, ...problems },
  }
  const known = knownParameters(path, query)
  return {
    schema,
    ...(body && mayBeAbsent(body) && { preValidation: emptyBody }),
    handler: async (request, reply) => {
      requireKnown(request, known)
      const found = await handler(request, reply)
      reply.code(status)
      if (answer) return found
      const { data, ...more } = paged ? (found as { data: unknown }) : { data: found ?? null }
      return { data, error: null, ...more }
    },
  }
}

async function emptyBody(request: Request): Promise<void> {
  if (request.body === undefined) request.body = {}
}

/** Other names of query parameters: those of the peer's API, and those of the identity service. */
export const aliases: Readonly<Record<string, readonly string[]>> = {
  pageOffset: ['offset'],
  pageLimit: ['limit', 'page_size'],
  pageToken: ['page_token'],
}

/** With an id in the path the scope adds nothing, but clients of the peer's API send it anyway. */
function knownParameters(path: readonly string[], query: TProperties = {}): string[] {
  const scope = path.length > 0 ? Object.keys(scopeQuery) : []
  return [...new Set([...Object.keys(query), ...scope])].flatMap(name => [name, ...(aliases[name] ?? [])])
}

/** A misspelt filter would otherwise list everything. Throws HttpError 400. */
function requireKnown(request: Request, known: readonly string[]): void {
  for (const name of Object.keys(request.query as object)) {
    queryParameter(request, name)
    if (!known.includes(name)) throw new HttpError(400, unknownName('query parameter', name, known))
  }
}

export const parameters = (names: readonly string[]) =>
  Type.Object(Object.fromEntries(names.map(name => [name, text()])))
