/** How a connection ends for which Node offers no response object: a last answer, and no long goodbye. */
import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { CATALOGUE, type ErrorCode, problem } from '../errors.js'
import { codeOfOverflow, type ParserError } from './head-size.js'

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
export function codeOfParserError(error: ParserError): ErrorCode {
  if (error.code === 'HPE_HEADER_OVERFLOW') return codeOfOverflow(error)
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') return 'request-timeout'
  return 'bad-request'
}

/** The bytes of a problem answer to what never reached the pipeline; it is the last of its connection. */
export function rawAnswer(code: ErrorCode): string {
  const { status, title, ...rest } = problem(code, randomUUID())
  const { retryAfter }: { status: number; retryAfter?: number } = CATALOGUE[code]
  const body = JSON.stringify({ status, title, ...rest })
  const lines = [
    `HTTP/1.1 ${status} ${title}`,
    'Content-Type: application/problem+json',
    `Content-Length: ${Buffer.byteLength(body)}`,
  ]
  if (status === 405) lines.push('Allow: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS')
  if (retryAfter !== undefined) lines.push(`Retry-After: ${retryAfter}`)
  lines.push('Cache-Control: no-store', 'Connection: close')
  return `${lines.join('\r\n')}\r\n\r\n${body}`
}
