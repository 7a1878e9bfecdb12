/** Identities for administrators and programs: JSON in, JSON out. */

import { setImmediate } from 'node:timers/promises'
import { HttpError } from '../../http/errors.js'
import { isJsonObject, type JsonObject, type JsonValue, own } from '../../json.js'
import type { FieldError } from '../decode/messages.js'
import {
  etagOf,
  type HttpAnswer,
  type IdentityRequest,
  type IdentityRoutes,
  ifMatch,
  jsonBody,
  noIdentity,
  refusal,
  statusOf,
} from '../http.js'
import type { Identities, WrittenIdentity } from '../identities.js'
import { IdentifierTaken } from '../store/contract.js'
import { takenError } from './self-service.js'

const PATH = '/admin/identities'
const PAGE_SIZE = 50
const MAX_PAGE_SIZE = 500
const MAX_BATCH = 1000

export function adminRoutes(identities: Identities): IdentityRoutes {
  async function list(request: IdentityRequest): Promise<HttpAnswer> {
    const size = pageSize(either(request, 'page_size', 'pageLimit'))
    const token = either(request, 'page_token', 'pageToken')
    const after = token ? readPageToken(token) : undefined
    if (token && after === undefined) {
      throw new HttpError(400, 'page_token has to be the next_page_token of an earlier page.', 'page_token')
    }
    const page = await identities.list(request.project, after, size)
    const last = page.identities.at(-1)
    const next = page.more && last ? pageToken(last.id) : null
    return {
      status: 200,
      ...(next === null
        ? {}
        : { headers: { link: `<${PATH}?page_size=${size}&page_token=${next}>; rel="next"` } }),
      body: { identities: page.identities, next_page_token: next },
    }
  }

  async function create(request: IdentityRequest): Promise<HttpAnswer> {
    const written = await identities.create(
      request.project,
      traitsOf(request.project, await jsonBody(request)),
    )
    const answer = shown(written, 201)
    return 'identity' in written
      ? { ...answer, headers: { ...answer.headers, location: `${PATH}/${written.identity.id}` } }
      : answer
  }

  /** Each entry separately and in order; only an unavailable store fails all of them. */
  async function createMany(request: IdentityRequest): Promise<HttpAnswer> {
    const entries = own(await jsonBody(request), 'identities')
    if (!Array.isArray(entries) || entries.length > MAX_BATCH) {
      throw new HttpError(400, `"identities" has to be a list of at most ${MAX_BATCH} entries.`, 'identities')
    }
    const outcomes: unknown[] = []
    for (const entry of entries) {
      outcomes.push(await createEntry(request.project, entry))
      // Yields to other requests in between.
      await setImmediate()
    }
    return { status: 200, body: { identities: outcomes } }
  }

  async function createEntry(project: string, entry: JsonValue): Promise<unknown> {
    try {
      const wanted = isJsonObject(entry) ? own(entry, 'create') : undefined
      if (!isJsonObject(wanted)) throw new HttpError(400, 'The entry has to have "create".', 'required')
      const written = await identities.create(project, traitsOf(project, wanted))
      return 'errors' in written
        ? failed(statusOf(written.errors), written.errors)
        : { action: 'create', identity: written.identity.id }
    } catch (error) {
      if (error instanceof IdentifierTaken) return failed(409, [takenError(error)])
      if (!(error instanceof HttpError)) throw error
      return failed(error.status, [{ path: '', code: error.code, message: error.message }])
    }
  }

  async function get(request: IdentityRequest): Promise<HttpAnswer> {
    return shown(await identities.find(request.project, idOf(request)), 200)
  }

  async function put(request: IdentityRequest): Promise<HttpAnswer> {
    const traits = traitsOf(request.project, await jsonBody(request))
    return shown(await identities.replace(request.project, idOf(request), traits, known(request)), 200)
  }

  async function patch(request: IdentityRequest): Promise<HttpAnswer> {
    const traits = traitsOf(request.project, await jsonBody(request))
    return shown(await identities.merge(request.project, idOf(request), traits, known(request)), 200)
  }

  async function remove(request: IdentityRequest): Promise<HttpAnswer> {
    if (!(await identities.remove(request.project, idOf(request), known(request)))) throw noIdentity()
    return { status: 204 }
  }

  /** The `traits` of the body; a `schema_id` beside them must be that of the project's schema. */
  function traitsOf(project: string, body: JsonObject): JsonValue {
    const { id } = identities.schemaOf(project)
    const schemaId = own(body, 'schema_id')
    if (schemaId !== undefined && schemaId !== id) {
      throw new HttpError(
        400,
        `schema_id has to be "${id}", this project's schema, or left out.`,
        'schema_id',
      )
    }
    const traits = own(body, 'traits')
    if (traits === undefined) throw new HttpError(400, '"traits" are required.', 'required')
    return traits
  }

  return new Map([
    [PATH, { GET: list, POST: create, PATCH: createMany }],
    [`${PATH}/:id`, { GET: get, PUT: put, PATCH: patch, DELETE: remove }],
  ])
}

function shown(written: WrittenIdentity, status: number): HttpAnswer {
  if (!written) throw noIdentity()
  return 'errors' in written
    ? refusal(statusOf(written.errors), written.errors)
    : { status, headers: { etag: etagOf(written.version) }, body: written.identity }
}

/** The versions that a write may change; any version without If-Match. */
function known(request: IdentityRequest): ReturnType<typeof ifMatch> | undefined {
  const field = request.header('if-match')
  return field === undefined ? undefined : ifMatch(field)
}

/** The result of an entry that was refused. */
function failed(status: number, errors: readonly FieldError[]) {
  return { action: 'error', error: { status, errors } }
}

function idOf(request: IdentityRequest): string {
  return request.params.id ?? ''
}

/** A query parameter by its name, or by the one that the directory's management API uses for it. */
function either(request: IdentityRequest, name: string, alias: string): string | null {
  const [own, other] = [request.query.get(name), request.query.get(alias)]
  if (own === null || other === null) return own ?? other
  throw new HttpError(400, `${name} and ${alias} mean the same: send one.`, name)
}

/** More than the maximum counts as the maximum, as everywhere. */
function pageSize(text: string | null): number {
  if (text === null) return PAGE_SIZE
  const size = /^\d{1,15}$/.test(text) ? Number(text) : 0
  if (size < 1) throw new HttpError(400, 'page_size has to be a whole number of at least 1.', 'page_size')
  return Math.min(size, MAX_PAGE_SIZE)
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** The opaque token of the page after the identity `id`. */
function pageToken(id: string): string {
  return Buffer.from(id).toString('base64url')
}

/** The id inside a page token; undefined for a token that is not ours. */
function readPageToken(token: string): string | undefined {
  const id = Buffer.from(token, 'base64url').toString('latin1')
  return UUID.test(id) ? id : undefined
}
