/** How a connection ends for which Node offers no response object: a last answer, and no long goodbye. */
import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { CATALOGUE, type ErrorCode, problem } from '../errors.js'

/** How long a client may still send, or not read, after our last byte. */
const GOODBYE_MS = 2_000

/**
 * Ends our side, after `lastBytes`, and drops what still arrives until the client ends its side or the time for it
 * is over. (Closing at once would reset the connection, and with it an answer the client has not read yet.)
 */
export function sayGoodbye(socket: Duplex, lastBytes = ''): void {
  if (socket.destroyed) return
  const timer = setTimeout(() => socket.destroy(), GOODBYE_MS)
  socket.once('close', () => clearTimeout(timer))
  socket.end(lastBytes)
  socket.resume()
}

/** True when the request announces a body. */
export function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

/**
 * An answer that is the last of its connection may be given while the body still comes. Node would close at once, and
 * the reset could overtake the answer; instead the connection says goodbye, and what still comes is dropped.
 */
export function lastAnswerMayComeEarly(req: IncomingMessage, res: ServerResponse): void {
  // Before Node's own listener, which is the one that closes.
  res.prependOnceListener('finish', () => {
    if (req.complete || res.shouldKeepAlive) return
    const { socket } = req
    socket.destroySoon = () => sayGoodbye(socket)
    req.resume()
  })
}

/** What a client hears whose bytes Node's parser gave up on. */
export function codeOfParserError(error: NodeJS.ErrnoException): ErrorCode {
  if (error.code === 'HPE_HEADER_OVERFLOW') return 'header-too-large'
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') return 'request-timeout'
  return 'bad-request'
}

/** A problem answer to a request that never reached the pipeline; fields are flat. */
export function problemAnswer(code: ErrorCode): {
  status: number
  title: string
  fields: string[]
  body: string
} {
  const { status, title, ...rest } = problem(code, randomUUID())
  const { retryAfter }: { status: number; retryAfter?: number } = CATALOGUE[code]
  const body = JSON.stringify({ status, title, ...rest })
  const fields = ['Content-Type', 'application/problem+json', 'Content-Length', `${Buffer.byteLength(body)}`]
  if (status === 405) fields.push('Allow', 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS')
  if (retryAfter !== undefined) fields.push('Retry-After', `${retryAfter}`)
  fields.push('Cache-Control', 'no-store')
  return { status, title, fields, body }
}

/** The bytes of a problem answer that is the last of its connection. */
export function rawAnswer(code: ErrorCode): string {
  const { status, title, fields, body } = problemAnswer(code)
  let head = `HTTP/1.1 ${status} ${title}\r\n`
  for (let i = 0; i < fields.length; i += 2) head += `${fields[i]}: ${fields[i + 1]}\r\n`
  return `${head}Connection: close\r\n\r\n${body}`
}
