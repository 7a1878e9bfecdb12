import type { Core } from '../core.js'
import type { EventCallback } from '../events/callback.js'
import { limits } from '../limits.js'
import type { Directory, JsonObject, ResourceType } from '../model.js'
import { namesOf, readSearch } from '../routes/scim-asked.js'
import type { DirectoryEvent } from '../schemas/events.js'
import { discover } from '../scim/discovery.js'
import { errorBody, ScimError } from '../scim/error.js'
import { Unavailable } from '../store/contract.js'
import { admit } from '../sync/admission.js'
import { runBulk } from '../sync/bulk.js'
import { createIntake, type Intake, type ScimAnswer } from '../sync/intake.js'

/** One SCIM request from the process that embeds the service (the spec's "in-process request handler"). */
export interface DirectoryRequest {
  /** `GET`, `POST`, `PUT`, `PATCH` or `DELETE`, in whatever letter case. */
  readonly method: string
  /** The request's JSON, parsed or as text. */
  readonly body?: unknown
  readonly directoryId: string
  /** Empty or absent: all of the type. `.search` asks in the body (RFC 7644, section 3.4.3). */
  readonly resourceId?: string | undefined
  /**
   * `Users`, `Groups`, `Bulk`, `ServiceProviderConfig`, `ResourceTypes` or `Schemas`, in whatever letter case; empty: users and
   * groups. As the first part of the path after the directory's own.
   */
  readonly resourceType: string
  /** The directory's SCIM secret. */
  readonly apiSecret: string
  /** As the URL has it: numbers may be text. */
  readonly query?: ScimQuery | undefined
  /** Of the request's header fields those that count: conditions (RFC 9110, section 13). */
  readonly headers?: { readonly 'if-match'?: string; readonly 'if-none-match'?: string } | undefined
}

/** RFC 7644, section 3.4.2. */
export interface ScimQuery {
  readonly count?: number | string | undefined
  readonly startIndex?: number | string | undefined
  readonly filter?: string | undefined
  readonly sortBy?: string | undefined
  readonly sortOrder?: string | undefined
  /** Names, separated by commas. */
  readonly attributes?: string | undefined
  readonly excludedAttributes?: string | undefined
}

/** What to answer the identity provider with. */
export interface DirectoryResponse {
  /** Of HTTP. */
  readonly status: number
  /** The SCIM body, null with 204 and 304. */
  readonly data: JsonObject | null
  /** For the header fields of these names. */
  readonly etag?: string
  readonly location?: string
}

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const
const types = new Map<string, ResourceType>([
  ['users', 'user'],
  ['groups', 'group'],
])

/** The handler: the same intake that HTTP requests go through, with the same refusals. */
export function createHandler({ store, box, writers, settings, log }: Core) {
  return async (request: DirectoryRequest, callback?: EventCallback): Promise<DirectoryResponse> => {
    const events: DirectoryEvent[] = []
    const { users, groups } = writers((_directory, told) => {
      if (callback) for (const { body } of told) events.push(JSON.parse(body))
    })
    const response = await respond(async () => {
      const { directoryId, apiSecret } = request
      const directory = await admit(store, box, textOf(directoryId) ?? '', textOf(apiSecret))
      const base = `${settings.baseUrl ?? ''}/api/scim/v2.0/${directory.id}`
      return answer(createIntake(store, users, groups), directory, read(request), base)
    })
    // Also of a request that failed halfway: what was stored is told.
    for (const event of events) await callback?.(event)
    return response
  }

  async function respond(work: () => Promise<DirectoryResponse>): Promise<DirectoryResponse> {
    const refuse = (status: number, ...rest: [string, ScimError['scimType']?]): DirectoryResponse => ({
      status,
      data: errorBody(status, ...rest),
    })
    try {
      return await work()
    } catch (error) {
      if (error instanceof ScimError) return refuse(error.status, error.message, error.scimType)
      if (error instanceof Unavailable) return refuse(503, error.message)
      log.error({ err: error instanceof Error ? error.stack : String(error) }, 'request failed')
      return refuse(500, 'The directory service failed; its log says more.')
    }
  }
}

type Read = ReturnType<typeof read>

/** Hands the request on to what answers its address, as the routes do for HTTP. Throws ScimError. */
async function answer(
  intake: Intake,
  directory: Directory,
  request: Read,
  base: string,
): Promise<DirectoryResponse> {
  const { method, kind, id, body, asked, conditions } = request
  const type = types.get(kind)
  const searched: readonly ResourceType[] = kind === '' ? ['user', 'group'] : type ? [type] : []
  if (searched.length > 0 && id === '.search') {
    requireMethod('POST', method)
    return { status: 200, data: await intake.search(directory, searched, readSearch(body), base) }
  }
  if (type) {
    return shown(await intake.handle(directory, { method, type, id, body, base, asked, conditions }))
  }
  if (kind === '' && id === undefined) {
    requireMethod('GET', method)
    return { status: 200, data: await intake.search(directory, searched, asked, base) }
  }
  if (kind === 'bulk' && id === undefined) {
    requireMethod('POST', method)
    return { status: 200, data: await runBulk(intake, directory, body, base) }
  }
  const described = discover(kind, id, base, asked.filter)
  if (described) {
    requireMethod('GET', method)
    return { status: 200, data: described }
  }
  throw new ScimError(
    404,
    'resourceType must be users or groups, Bulk, ServiceProviderConfig, ResourceTypes or Schemas.',
  )
}

function requireMethod(possible: Read['method'], method: Read['method']): void {
  if (method === possible) return
  throw new ScimError(405, `${method} is not possible here; possible: ${possible}.`)
}

function shown({ status, body, location, version }: ScimAnswer): DirectoryResponse {
  return {
    status,
    data: body ?? null,
    ...(version ? { etag: version } : {}),
    ...(location && status !== 204 ? { location } : {}),
  }
}

/** What the caller has passed on may come from anywhere, so nothing of it is taken on trust. Throws ScimError. */
function read(request: DirectoryRequest) {
  const { query = {}, headers = {} } = request
  const method = methods.find(name => name === String(request.method).toUpperCase())
  if (!method) throw new ScimError(405, `The method must be one of ${methods.join(', ')}.`)
  return {
    method,
    kind: textOf(request.resourceType)?.toLowerCase() ?? '',
    id: textOf(request.resourceId) || undefined,
    body: jsonOf(request.body),
    conditions: { ifMatch: textOf(headers['if-match']), ifNoneMatch: textOf(headers['if-none-match']) },
    asked: {
      count: wholeOf(query.count, 'count'),
      startIndex: wholeOf(query.startIndex, 'startIndex'),
      filter: textOf(query.filter),
      sortBy: textOf(query.sortBy),
      sortOrder: textOf(query.sortOrder),
      attributes: namesOf(textOf(query.attributes)),
      excludedAttributes: namesOf(textOf(query.excludedAttributes)),
    },
  }
}

function textOf(value: unknown): string | undefined {
  if (value === undefined || value === null || typeof value === 'string') return value ?? undefined
  throw new ScimError(400, 'Ids, the secret, the filter and names must be strings.', 'invalidValue')
}

/** Numbers, also as the text that a URL holds. */
function wholeOf(value: unknown, name: string): number | undefined {
  if (value === undefined || value === null || value === '') return undefined
  const number = typeof value === 'string' ? Number(value) : value
  if (typeof number === 'number' && Number.isSafeInteger(number)) return number
  throw new ScimError(400, `${name} must be a whole number.`, 'invalidValue')
}

/** Plain JSON, of the size that HTTP allows: a copy, so that the caller's object stays its own. */
function jsonOf(body: unknown): unknown {
  if (body === undefined || body === null) return undefined
  let json: string | undefined
  try {
    json = typeof body === 'string' ? body : JSON.stringify(body)
    if (json !== undefined && Buffer.byteLength(json) <= limits.bodyBytes) return JSON.parse(json)
  } catch {
    throw new ScimError(400, 'The body is not valid JSON.', 'invalidSyntax')
  }
  if (json === undefined) throw new ScimError(400, 'The body is not valid JSON.', 'invalidSyntax')
  throw new ScimError(413, `The body is larger than ${limits.bodyBytes} bytes.`)
}
