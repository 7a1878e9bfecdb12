import type { ErrorCode } from '../errors.js'
import type { ConnectionFault } from '../outgoing-request.js'

/** In characters. */
const LONGEST_CAUSE = 300

/** The error code for the client when there is no response; `responseBegan` if the upstream had begun to send one. */
export function codeOf(fault: ConnectionFault, responseBegan: boolean): ErrorCode {
  if (fault === 'silent') return 'upstream-timeout'
  return responseBegan ? 'upstream-invalid' : 'upstream-unreachable'
}

/** The cause in a few words, for logs; it may name an address. */
export function causeOf(error: Error): string {
  const { message, code, name }: { message: string; code?: unknown; name: string } = error
  // A name with several addresses, none of which answers.
  if (error instanceof AggregateError && message === '')
    return error.errors.map(causeOf).join('; ').slice(0, LONGEST_CAUSE)
  // Errors of HTTP/2 have a number as their code.
  return (message || (typeof code === 'string' ? code : name)).slice(0, LONGEST_CAUSE)
}

/** True for a method that may be sent again when the outcome is unknown, though nobody has asked for it. */
export function isSafe(method: string): boolean {
  return method === 'GET' || method === 'HEAD'
}

const IDEMPOTENT = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE'])

/** True for a method that has the same effect when it is sent twice (RFC 9110 section 9.2.2). */
export function isIdempotent(method: string): boolean {
  return IDEMPOTENT.has(method)
}
