import type { ErrorCode } from '../errors.js'

/** Undici's and the system's names for what can befall a request. */
const SOCKET_GONE = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE'])
const NO_ANSWER_IN_TIME = new Set(['UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT'])
const NOT_AN_ANSWER = /^(?:HPE_|UND_ERR_HEADERS_OVERFLOW)/

/** What to tell the client when no answer came; `heard` when the upstream had begun to send one. */
export function codeOf(error: Error, heard: boolean): ErrorCode {
  const code = codeIn(error)
  if (NO_ANSWER_IN_TIME.has(code)) return 'upstream-timeout'
  if (code === 'UND_ERR_INVALID_ARG') return 'bad-request'
  if (heard || NOT_AN_ANSWER.test(code)) return 'upstream-invalid'
  return 'upstream-unreachable'
}

/** True when the connection broke, whoever broke it. */
export function isSocketGone(error: Error): boolean {
  return SOCKET_GONE.has(codeIn(error))
}

/** True for a method that may be sent again when its fate is unknown (RFC 9110 section 9.2.2). */
export function isSafe(method: string): boolean {
  return method === 'GET' || method === 'HEAD'
}

function codeIn(error: Error): string {
  return 'code' in error && typeof error.code === 'string' ? error.code : ''
}
