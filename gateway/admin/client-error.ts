/**
 * Answers input that is not a valid HTTP request, or has too many fields, in the same form as other errors:
 * fastify never sees it.
 */
import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'

const STATUS: Readonly<Record<string, number>> = {
  HPE_HEADER_OVERFLOW: 431,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
}

/** Fastify's `clientErrorHandler`. */
export function refuseClient({ code = '' }: NodeJS.ErrnoException, socket: Socket): void {
  if (code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const status = STATUS[code] ?? 400
  const title = STATUS_CODES[status]
  const detail =
    status === 431 ? 'The address and the fields are too long.' : 'This is not a complete HTTP request.'
  const body = JSON.stringify({ type: 'about:blank', title, status, detail })
  const fields = `Content-Type: application/problem+json\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close`
  socket.end(`HTTP/1.1 ${status} ${title}\r\n${fields}\r\n\r\n${body}`)
}
