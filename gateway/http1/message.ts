/** The parts of an HTTP/1.1 message as they are read from the wire. */
import type { ErrorCode } from '../errors.js'
import type { Fields } from '../message.js'

/** A request line and its fields, checked by the grammar (RFC 9112 sections 3 and 5). */
export interface ParsedRequest {
  readonly method: string
  readonly target: string
  readonly version: '1.0' | '1.1'
  readonly fields: Fields
}

/** A status line and its fields (RFC 9112 section 4). */
export interface ParsedResponse {
  readonly status: number
  /** Latin-1; often empty. */
  readonly reason: string
  readonly version: '1.0' | '1.1'
  readonly fields: Fields
}

/** How a body is delimited (RFC 9112 section 6.3). `bytes` has a meaning for `length` only. */
export interface Framing {
  readonly kind: 'none' | 'length' | 'chunked' | 'close'
  readonly bytes: number
}

/** The bytes read are not valid HTTP/1.1. If they came from a client, it is sent the error `code`. */
export class WireError extends Error {
  readonly code: ErrorCode
  constructor(code: ErrorCode, message: string) {
    super(message)
    this.code = code
  }
}

/** The beginning of HTTP/2 in the clear, by a client that knows that it is spoken here (RFC 9113 section 3.3). */
export class Http2Preface extends WireError {
  constructor() {
    super('bad-request', 'the version')
  }
}
