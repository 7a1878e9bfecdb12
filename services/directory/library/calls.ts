import { randomBytes } from 'node:crypto'
import { METHODS } from 'node:http'
import { hashKey } from '../../keys.js'
import type { DirectoryCore } from '../core.js'
import { createServer, HttpError, type Method, type Server } from '../routes/http.js'
import { addManagement } from '../routes/management.js'
import type { Refusal } from '../schemas/parts.js'

/** What the library returns, in the form of the management API; `code` is an HTTP status. */
export type LibraryAnswer<Data> = { readonly data: Data; readonly error: null } | Refusal
/** A page of a list; continue with `pageToken` while there is one. */
export type Listed<Item> = (LibraryAnswer<Item[]> & { readonly pageToken?: string }) | Refusal

/** One call of the management API. `path` holds the segments below `/api/v1/directory-sync`. */
export type CallManagement = <Result>(
  method: Method,
  path: readonly string[],
  sent?: { readonly query?: object | undefined; readonly body?: unknown },
) => Promise<Result | Refusal>

/** Calls the routes of the management API in this process, with a key that nobody else knows. */
export function createCalls(core: DirectoryCore): CallManagement {
  const key = randomBytes(32).toString('base64url')
  const headers = { authorization: `Api-Key ${key}` }
  const ask = createAsk(core, server => {
    const { baseUrl = '' } = core.settings
    const keys = { keyHashes: [hashKey(key)], wrongKey: async () => undefined }
    addManagement(server, { ...core, ...keys, baseUrl })
  })

  return async (method, path, { query, body } = {}) => {
    try {
      refuseNull(query ?? {})
      const answer = await ask({ method, path, query, headers, body })
      const next = /[?&]pageToken=([^?&>]+)>; rel="next"/.exec(answer.headers.link ?? '')?.[1]
      // The response for members has no `pageToken` of its own: over HTTP its next page is in a header.
      return {
        error: null,
        ...(next ? { pageToken: decodeURIComponent(next) } : {}),
        ...JSON.parse(answer.text),
      }
    } catch (error) {
      if (!(error instanceof HttpError)) throw error
      return { data: null, error: { message: error.message, code: error.status } }
    }
  }
}

/** Null for a page's start counts as absent; elsewhere it would widen the query to everything. */
function refuseNull(query: object): void {
  for (const [name, value] of Object.entries(query)) {
    if (value !== null || /^(?:cursor|page)/.test(name)) continue
    throw new HttpError(400, `${name} must not be null: leave it out to ask for all.`)
  }
}

/** A request to routes of this process. It may come from anywhere, so all of it is checked. */
export interface LocalRequest {
  readonly method: string
  /** The path segments, not yet encoded. */
  readonly path: readonly unknown[]
  /** Strings, numbers and booleans by name; undefined and null are left out. */
  readonly query?: object | null | undefined
  readonly headers: Readonly<Record<string, string>>
  /** JSON, parsed or as text; undefined and null mean no body. */
  readonly body?: unknown
}

interface Answered {
  readonly status: number
  readonly headers: Readonly<Record<string, string | undefined>>
  /** JSON, or empty. */
  readonly text: string
}

/** Makes one request. Throws HttpError: 400 and 405 for what HTTP could not express, 503 once the service is closed. */
export type AskRoutes = (question: LocalRequest) => Promise<Answered>

/**
 * Calls routes in this process, without a listener: the same input checks, messages and responses as over HTTP, so
 * that the library can neither lack a rule nor have its own. The routes are created on the first request.
 */
export function createAsk(core: DirectoryCore, add: (server: Server) => void): AskRoutes {
  let server: Server | undefined
  let closed = false
  core.closers.push(async () => {
    closed = true
    await server?.close()
  })

  function routes(): Server {
    const made = createServer()
    made.register(async scope => add(scope))
    return made
  }

  return async ({ method, path, query, headers, body }) => {
    if (closed) throw new HttpError(503, 'The directory service is closed.')
    if (!METHODS.includes(method))
      throw new HttpError(405, `${method.slice(0, 100)} is not a method of HTTP.`)
    const url = `/${path.map(partOf).join('/')}?${queryOf(query)}`
    const sent =
      body === undefined || body === null
        ? { headers }
        : { headers: { ...headers, 'content-type': 'application/json' }, payload: textOf(body) }
    server ??= routes()
    const answer = await server.inject({ method: method as 'GET', url, ...sent })
    return {
      status: answer.statusCode,
      headers: answer.headers as Answered['headers'],
      text: answer.payload,
    }
  }
}

function partOf(part: unknown): string {
  // An empty segment, or dots, would lead to another path.
  if (typeof part !== 'string' || /^\.{0,2}$/.test(part)) {
    throw new HttpError(400, 'The id must be a string, as in the answers.')
  }
  // Half a surrogate pair cannot be encoded; this turns it into U+FFFD, which no id contains.
  return encodeURIComponent(Buffer.from(part).toString())
}

function queryOf(query: object | null | undefined): string {
  const given = Object.entries(query ?? {}).filter(([, value]) => value !== undefined && value !== null)
  for (const [name, value] of given) {
    if (['string', 'number', 'boolean'].includes(typeof value)) continue
    throw new HttpError(400, `${name} must be a string, a number or a boolean.`)
  }
  return new URLSearchParams(given.map(([name, value]): [string, string] => [name, String(value)])).toString()
}

function textOf(body: unknown): string {
  if (typeof body === 'string') return body
  try {
    const text: string | undefined = JSON.stringify(body)
    if (text !== undefined) return text
  } catch {
    // A cycle or a BigInt: rejected below like any other text that is not JSON.
  }
  throw new HttpError(400, 'The body is not valid JSON.')
}
