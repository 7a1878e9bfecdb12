import type { Core } from './core.js'
import type { EventCallback } from './events/callback.js'
import { limits } from './limits.js'
import type { JsonObject, ResourceType } from './model.js'
import type { DirectoryEvent } from './schemas/events.js'
import { errorBody, ScimError } from './scim/error.js'
import { Unavailable } from './store/contract.js'
import { admit } from './sync/admission.js'
import { createIntake, type ScimRequest } from './sync/intake.js'

/** One SCIM request from the process that embeds the service (the spec's "in-process request handler"). */
export interface DirectoryRequest {
  /** `GET`, `POST`, `PUT`, `PATCH` or `DELETE`, in whatever letter case. */
  readonly method: string
  /** The request's JSON, parsed or as text. */
  readonly body?: unknown
  readonly directoryId: string
  /** Empty or absent: all of the type. */
  readonly resourceId?: string | undefined
  /** `users` or `groups`, in whatever letter case. */
  readonly resourceType: string
  /** The directory's SCIM secret. */
  readonly apiSecret: string
  readonly query?:
    | {
        readonly count?: number | undefined
        readonly startIndex?: number | undefined
        readonly filter?: string | undefined
      }
    | undefined
}

/** `status` is that of HTTP, `data` the SCIM body to answer with, null with 204. */
export interface DirectoryResponse {
  readonly status: number
  readonly data: JsonObject | null
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
      const { status, body } = await createIntake(store, users, groups).handle(directory, read(request, base))
      return { status, data: body ?? null }
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

/** What the caller has passed on may come from anywhere, so nothing of it is taken on trust. Throws ScimError. */
function read(request: DirectoryRequest, base: string): ScimRequest {
  const { count, startIndex, filter } = request.query ?? {}
  const method = methods.find(name => name === String(request.method).toUpperCase())
  if (!method) throw new ScimError(405, `The method must be one of ${methods.join(', ')}.`)
  const type = types.get(String(request.resourceType).toLowerCase())
  if (!type) throw new ScimError(404, 'resourceType must be users or groups.')
  return {
    method,
    type,
    id: textOf(request.resourceId) || undefined,
    body: jsonOf(request.body),
    base,
    asked: {
      count: wholeOf(count, 'count'),
      startIndex: wholeOf(startIndex, 'startIndex'),
      filter: textOf(filter),
    },
  }
}

function textOf(value: unknown): string | undefined {
  if (value === undefined || value === null || typeof value === 'string') return value ?? undefined
  throw new ScimError(400, 'Ids, the secret and the filter must be strings.', 'invalidValue')
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
