/** What the client calls its request. Anybody may write these: they name a request, and prove nothing. */
import type { Facts } from '../types.js'

/** What most tools make is far shorter; what is no such name is left out. */
const ID = /^[\x21-\x7e]{1,128}$/
/** W3C Trace Context, section 3.2: version, trace id, parent id, flags; all zeros is no id. */
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/

/** Null where the request has none that could be one. */
export function clientIds(facts: Pick<Facts, 'header'> | undefined) {
  return {
    client_request_id: matching(ID, facts?.header('x-request-id')),
    traceparent: matching(TRACEPARENT, facts?.header('traceparent')),
  }
}

function matching(pattern: RegExp, value: string | undefined): string | null {
  return value !== undefined && pattern.test(value) ? value : null
}
