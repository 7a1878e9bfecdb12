/** The catalogue of the gateway's own error responses: code, status, title, and what to do. */

const IANA = 'https://iana.org/assignments/http-problem-types#'

interface Entry {
  readonly status: number
  readonly title: string
  readonly detail: string
  /** Problem type URI (RFC 9457); by default `about:blank`, where the status says it all. */
  readonly type?: string
  readonly retryAfter?: number
}

/** Value of the Allow field. */
export const SERVED_METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS'

export const CATALOGUE = {
  'quota-exceeded': {
    status: 429,
    title: 'Request quota exceeded',
    detail: 'A limit of this project is used up. Wait for the seconds in Retry-After, then try again.',
    type: `${IANA}quota-exceeded`,
  },
  'abnormal-usage': {
    status: 429,
    title: 'Abnormal usage detected',
    detail: 'Too many requests came from this source. Wait for the seconds in Retry-After, then try again.',
    type: `${IANA}abnormal-usage-detected`,
  },
  'limiter-unavailable': {
    status: 503,
    title: 'Temporarily unable to count requests',
    detail: 'This route may only be used while its limit can be counted. Try again shortly.',
    type: `${IANA}temporary-reduced-capacity`,
    retryAfter: 1,
  },
  'bad-request': { status: 400, title: 'Malformed request', detail: 'The request is not valid HTTP/1.1.' },
  'bad-target': {
    status: 400,
    title: 'Ambiguous request target',
    detail:
      'The path holds a malformed escape, an escaped slash, a backslash or a control character. Send it in its plain form.',
  },
  'bad-host': { status: 400, title: 'Invalid Host', detail: 'Send exactly one valid Host field.' },
  'bad-framing': {
    status: 400,
    title: 'Ambiguous message framing',
    detail: 'Send either Content-Length or Transfer-Encoding: chunked, once and valid.',
  },
  'tls-required': {
    status: 400,
    title: 'HTTPS required',
    detail: 'This port speaks TLS. Send the request to https://.',
  },
  'method-not-allowed': {
    status: 405,
    title: 'Method not allowed',
    detail: 'TRACE and CONNECT are not served here.',
  },
  'request-timeout': {
    status: 408,
    title: 'Request timed out',
    detail: 'The request did not arrive in time.',
  },
  'body-too-large': {
    status: 413,
    title: 'Request body too large',
    detail: 'The service behind this route does not accept a body of this size.',
  },
  'target-too-long': {
    status: 414,
    title: 'Request target too long',
    detail: 'Send a shorter path or query.',
  },
  'expectation-failed': {
    status: 417,
    title: 'Expectation failed',
    detail: 'Only Expect: 100-continue is understood.',
  },
  'header-too-large': {
    status: 431,
    title: 'Request header too large',
    detail: 'Send fewer or shorter header fields.',
  },
  'credential-missing': {
    status: 401,
    title: 'Credential missing',
    detail: 'This route requires a credential. WWW-Authenticate says of which kinds.',
  },
  'credential-invalid': {
    status: 401,
    title: 'Credential invalid',
    detail: 'The credential of this request is not valid here, or no longer.',
  },
  'insufficient-scope': {
    status: 403,
    title: 'Insufficient scope',
    detail: 'The credential of this request does not allow it.',
  },
  'wrong-credentials': {
    status: 429,
    title: 'Too many wrong credentials',
    detail: 'Too many wrong credentials came from this source. Wait, then send the right one.',
  },
  'credential-unchecked': {
    status: 503,
    title: 'Credential cannot be checked',
    detail: 'The service that knows this credential cannot be asked at the moment. Try again shortly.',
    retryAfter: 1,
  },
  'access-denied': {
    status: 403,
    title: 'Access denied',
    detail: 'The operator has closed this service to this client.',
  },
  'unknown-project': {
    status: 404,
    title: 'Unknown project',
    detail: 'No project is configured for this host or credential.',
  },
  'no-route': { status: 404, title: 'No route', detail: 'No upstream is configured for this path.' },
  'method-not-implemented': {
    status: 501,
    title: 'Method not implemented',
    detail: 'This method is not known here.',
  },
  'upstream-unreachable': {
    status: 502,
    title: 'Upstream unreachable',
    detail: 'The service behind this route could not be reached.',
  },
  'upstream-invalid': {
    status: 502,
    title: 'Invalid upstream answer',
    detail: 'The service behind this route gave an answer that is not valid HTTP.',
  },
  overloaded: {
    status: 503,
    title: 'Too many requests under way',
    detail: 'The service behind this route has no connection to spare. Try again shortly.',
    retryAfter: 1,
  },
  'gateway-overloaded': {
    status: 503,
    title: 'Gateway overloaded',
    detail: 'The gateway has no capacity left. Try again shortly.',
    retryAfter: 1,
  },
  'upstream-timeout': {
    status: 504,
    title: 'Upstream timed out',
    detail: 'The service behind this route did not answer in time.',
  },
  'deadline-exceeded': {
    status: 504,
    title: 'Deadline exceeded',
    detail: 'The service behind this route did not answer within the time that grpc-timeout gives.',
  },
  internal: {
    status: 500,
    title: 'Internal error',
    detail: 'The gateway failed on this request. The log has the request id.',
  },
} as const satisfies Record<string, Entry>

export type ErrorCode = keyof typeof CATALOGUE

/** Codes of answers that are given in place of an upstream that gave none, or none that is valid. */
const UPSTREAM_FAILURES: ReadonlySet<string> = new Set<ErrorCode>([
  'upstream-unreachable',
  'upstream-invalid',
  'upstream-timeout',
  'deadline-exceeded',
])

/** True if the upstream is to blame for an answer of the gateway with this code. */
export function isUpstreamFailure(code: string | undefined): boolean {
  return code !== undefined && UPSTREAM_FAILURES.has(code)
}

/** An error that is reported to the client; any other exception becomes `internal`. */
export class GatewayError extends Error {
  readonly code: ErrorCode
  /** Fields of the response that only this error has, as a flat list. */
  readonly fields: readonly string[] | undefined
  constructor(code: ErrorCode, options?: { detail?: string; cause?: unknown; fields?: readonly string[] }) {
    super(options?.detail ?? CATALOGUE[code].detail, { cause: options?.cause })
    this.code = code
    this.fields = options?.fields
  }
}

export interface ProblemBody {
  readonly type: string
  readonly title: string
  readonly status: number
  readonly detail: string
  readonly code: ErrorCode
  readonly instance: string
}

/** The problem+json body of the gateway's own error responses (RFC 9457); it names no upstream address. */
export function problem(code: ErrorCode, requestId: string, detail?: string): ProblemBody {
  const entry: Entry = CATALOGUE[code]
  return {
    type: entry.type ?? 'about:blank',
    title: entry.title,
    status: entry.status,
    detail: detail ?? entry.detail,
    code,
    instance: `urn:uuid:${requestId}`,
  }
}

/** An error that the operator can fix; printed without a stack. */
export class Failure extends Error {}

/** The settings of a plugin cannot be used: nothing but other settings can mend that. */
export class SettingsFault extends Error {}

/** Not found. */
export class NotFound extends Error {}

/** The name is taken. */
export class Taken extends Error {}

/** The request does not identify a counter, or is impossible. */
export class Unnamed extends Error {}

/** The store cannot be reached. */
export class Unreachable extends Error {}

/** The request asked about is impossible; the message says why. */
export class UnknownQuestion extends Error {}
