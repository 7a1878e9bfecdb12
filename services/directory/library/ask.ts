import { METHODS } from 'node:http'
import type { Core } from '../core.js'
import { createServer, HttpError, type Server } from '../routes/http.js'

/** A question to routes of this process. It may come from anywhere, so nothing of it is taken on trust. */
export interface Question {
  readonly method: string
  /** The parts of the path, not yet encoded. */
  readonly path: readonly unknown[]
  /** Text, numbers and truth values by name; undefined and null are not asked. */
  readonly query?: object | null | undefined
  readonly headers: Readonly<Record<string, string>>
  /** JSON, parsed or as text; undefined and null are none. */
  readonly body?: unknown
}

export interface Answered {
  /** Of HTTP. */
  readonly status: number
  readonly headers: Readonly<Record<string, string | undefined>>
  /** JSON, or nothing. */
  readonly text: string
}

/** Asks one question. Throws HttpError: 400 and 405 for what no HTTP request could say, 503 once the service is closed. */
export type Ask = (question: Question) => Promise<Answered>

/**
 * Asks routes in this process, without a listener: the same readers of input, the same sentences and the same answers as over
 * HTTP, so that the library can neither lack a rule nor have one of its own. The routes are made with the first question.
 */
export function createAsk(core: Core, add: (server: Server) => void): Ask {
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
  // An empty part, or dots, would lead to another path.
  if (typeof part !== 'string' || /^\.{0,2}$/.test(part)) {
    throw new HttpError(400, 'The id must be a string, as in the answers.')
  }
  // Half a surrogate pair cannot be encoded; this way it becomes a sign that no id holds.
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
    // A cycle or a BigInt: told like any other text that is no JSON.
  }
  throw new HttpError(400, 'The body is not valid JSON.')
}
