import { AsyncLocalStorage } from 'node:async_hooks'
import type { DirectoryCore } from '../core.js'
import type { EventCallback } from '../events/event.js'
import type { JsonObject } from '../model.js'
import { HttpError } from '../routes/http.js'
import { addScim } from '../routes/scim.js'
import type { DirectoryEvent } from '../schemas/events.js'
import { errorBody } from '../scim/error.js'
import { createIntake } from '../sync/intake.js'
import { type AskRoutes, createAsk, type LocalRequest } from './calls.js'

/** One SCIM request from the process that embeds the service (the spec's "in-process request handler"). */
export interface DirectoryRequest {
  /** `GET`, `HEAD`, `POST`, `PUT`, `PATCH` or `DELETE`, in any letter case. */
  readonly method: string
  /** The request's JSON, parsed or as text. */
  readonly body?: unknown
  readonly directoryId: string
  /** Empty or absent: all of the type. `.search` takes its query from the body (RFC 7644, section 3.4.3). */
  readonly resourceId?: string | undefined
  /**
   * `Users`, `Groups`, `Bulk`, `ServiceProviderConfig`, `ResourceTypes`, `Schemas` or `Me` (always 501), in any letter
   * case; empty: users and groups. The first path segment after the directory's own.
   */
  readonly resourceType: string
  /** The directory's SCIM secret, alone or as in `Authorization`: `Bearer <secret>`. */
  readonly apiSecret: string
  /** As in the URL: numbers may be text. */
  readonly query?: ScimQuery | null | undefined
  /** The header fields that matter: conditions (RFC 9110, section 13). */
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

/** The response for the identity provider. */
export interface DirectoryResponse {
  readonly status: number
  /** The SCIM body; null with 204 and 304, and for HEAD. */
  readonly data: JsonObject | null
  /** Values of the header fields with these names. */
  readonly etag?: string
  readonly location?: string
}

/** First path segments, by their lowercase form. */
const kinds = new Map(
  ['Users', 'Groups', 'Bulk', 'ServiceProviderConfig', 'ResourceTypes', 'Schemas', 'Me'].map(kind => [
    kind.toLowerCase(),
    kind,
  ]),
)

/** Creates the handler, which uses the same routes as HTTP requests. */
export function createHandler(core: DirectoryCore) {
  // Each request sees only its own changes: other writers run in other async contexts.
  const heard = new AsyncLocalStorage<DirectoryEvent[]>()
  const ask = createAsk(core, server => {
    const { store, writers, settings } = core
    const { users, groups } = writers((_directory, committed) => {
      const events = heard.getStore()
      if (events) for (const { body } of committed) events.push(JSON.parse(body))
    })
    const intake = createIntake(store, users, groups, core.searches)
    const noKeys = { keyHashes: [], wrongKey: async () => undefined }
    addScim(server, { ...core, ...noKeys, baseUrl: settings.baseUrl ?? '' }, intake)
  })

  return async (request: DirectoryRequest, callback?: EventCallback): Promise<DirectoryResponse> => {
    const events: DirectoryEvent[] = []
    const work = (): Promise<DirectoryResponse> => answer(ask, request)
    const response = await (callback ? heard.run(events, work) : work())
    // Even a request that failed halfway reports what was stored.
    for (const event of events) await callback?.(event)
    return response
  }
}

async function answer(ask: AskRoutes, request: DirectoryRequest): Promise<DirectoryResponse> {
  try {
    const { status, headers, text } = await ask(questionOf(request))
    const { etag, location } = headers
    return {
      status,
      data: text === '' ? null : JSON.parse(text),
      ...(etag ? { etag } : {}),
      ...(location ? { location } : {}),
    }
  } catch (error) {
    if (!(error instanceof HttpError)) throw error
    const { status, message } = error
    return { status, data: errorBody(status, message, status === 400 ? 'invalidSyntax' : undefined) }
  }
}

function questionOf(request: DirectoryRequest): LocalRequest {
  if (typeof request !== 'object' || request === null)
    throw new HttpError(400, 'The request must be an object.')
  const { method, directoryId, resourceType, resourceId, apiSecret, query, headers, body } = request
  const kind =
    typeof resourceType === 'string' ? (kinds.get(resourceType.toLowerCase()) ?? resourceType) : resourceType
  const path = [directoryId, kind, resourceId].filter(
    (part, index) => index === 0 || (part !== undefined && part !== null && part !== ''),
  )
  return {
    method: String(method).toUpperCase(),
    path,
    query,
    headers: { ...headerOf('authorization', apiSecret), ...conditionsOf(headers) },
    body,
  }
}

/** Only these two matter; a server may pass on all its header fields, in any letter case or as `Headers`. */
function conditionsOf(headers: unknown): Record<string, string> {
  const fields = headers instanceof Headers ? [...headers] : Object.entries(headers ?? {})
  const counting = fields.filter(([name]) => /^if-(?:none-)?match$/i.test(name))
  return Object.assign({}, ...counting.map(([name, value]) => headerOf(name.toLowerCase(), value)))
}

function headerOf(name: string, value: unknown): Record<string, string> {
  if (value === undefined || value === null || value === '') return {}
  if (typeof value === 'string') return { [name]: value }
  throw new HttpError(400, `The value for ${name} must be a string.`)
}
