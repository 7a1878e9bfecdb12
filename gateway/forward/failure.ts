import type { ErrorCode } from '../errors.js'
import type { ConnectionFault } from '../http1/asker.js'

/** Characters. */
const LONGEST_CAUSE = 300

/** What to tell the client when no answer came; `heard` when the upstream had begun to send one. */
export function codeOf(fault: ConnectionFault, heard: boolean): ErrorCode {
  if (fault === 'silent') return 'upstream-timeout'
  return heard ? 'upstream-invalid' : 'upstream-unreachable'
}

/** In a few words, for logs; it may name an address. */
export function causeOf(error: Error): string {
  return (error.message || ((error as NodeJS.ErrnoException).code ?? error.name)).slice(0, LONGEST_CAUSE)
}

/** True for a method that may be sent again when its fate is unknown (RFC 9110 section 9.2.2). */
export function isSafe(method: string): boolean {
  return method === 'GET' || method === 'HEAD'
}
