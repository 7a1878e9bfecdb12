import { CATALOGUE, type ErrorCode, problem, SERVED_METHODS } from '../errors.js'
import { dateNow } from './head-text.js'

/** A whole problem response, as text, for input that never became a request. It ends its connection. */
export function refusalText(code: ErrorCode, id: string): string {
  const { status, title, ...rest } = problem(code, id)
  const { retryAfter }: { status: number; retryAfter?: number } = CATALOGUE[code]
  const body = JSON.stringify({ status, title, ...rest })
  const lines = [
    `HTTP/1.1 ${status} ${title}`,
    'Content-Type: application/problem+json',
    `Content-Length: ${body.length}`,
    `Date: ${dateNow()}`,
    `X-Request-Id: ${id}`,
  ]
  if (status === 405) lines.push(`Allow: ${SERVED_METHODS}`)
  if (retryAfter !== undefined) lines.push(`Retry-After: ${retryAfter}`)
  lines.push('Cache-Control: no-store', 'Connection: close')
  return `${lines.join('\r\n')}\r\n\r\n${body}`
}
