/** Names of header fields, and which of them only the gateway writes. */
import { HOP_BY_HOP_FIELDS, METHOD_OVERRIDE_FIELDS, REPLACED_FIELDS } from './words.js'

/** A lower-case field name without everything that some servers replace by `_`. */
export function lettersOf(name: string): string {
  return name.replace(/[^a-z0-9]/g, '')
}

const OF_REQUESTS = new Set(
  [...HOP_BY_HOP_FIELDS, ...REPLACED_FIELDS, ...METHOD_OVERRIDE_FIELDS].map(lettersOf),
)
const OF_RESPONSES = new Set(
  [
    ...HOP_BY_HOP_FIELDS,
    ...['content-length', 'date', 'ratelimit', 'ratelimit-policy', 'x-request-id'],
    // How a gRPC call has ended, which the gateway says of those that it ends.
    ...['grpc-status', 'grpc-message', 'grpc-status-details-bin'],
  ].map(lettersOf),
)
/** `proxy` is the variable HTTP_PROXY of CGI programs (CVE-2016-5385). */
const OF_GATEWAY = ['x-sluice-', 'proxy']
const BEGINNINGS = { request: [...OF_GATEWAY, 'x-forwarded-'], response: [...OF_GATEWAY, 'x-ratelimit-'] }

/**
 * True for a field, by its lower-case name in any spelling, that frames or forwards a message, or that the gateway itself
 * answers for: no route may change it.
 */
export function isFieldOfGateway(name: string, of: 'request' | 'response'): boolean {
  const letters = lettersOf(name)
  const names = of === 'request' ? OF_REQUESTS : OF_RESPONSES
  return names.has(letters) || BEGINNINGS[of].some(beginning => letters.startsWith(lettersOf(beginning)))
}

/** A field of responses that says what a request has cost. */
export const ANSWER_HEADER = {
  pattern: "^[a-z0-9!#$%&'*+.^_`|~-]+$",
  expected: 'a header name in lowercase, such as x-tokens-used',
} as const
