/**
 * The ids that a client gives its request. A client can send any id: it helps to find a request, but proves nothing.
 */
import type { Facts } from '../types.js'

/** Most tools send far shorter ids; values that do not match are left out. */
const ID = /^[\x21-\x7e]{1,128}$/
/** W3C Trace Context, section 3.2: version, trace id, parent id, flags; ids of all zeros are invalid. */
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/

/** Each is null when the request has no valid one. */
export function clientIds(facts: Pick<Facts, 'header'> | undefined) {
  return {
    client_request_id: matching(ID, facts?.header('x-request-id')),
    traceparent: matching(TRACEPARENT, facts?.header('traceparent')),
  }
}

function matching(pattern: RegExp, value: string | undefined): string | null {
  return value !== undefined && pattern.test(value) ? value : null
}
