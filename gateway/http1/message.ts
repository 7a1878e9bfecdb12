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

/** Where a body ends (RFC 9112 section 6.3): `bytes` is meant for `length` alone. */
export interface Framing {
  readonly kind: 'none' | 'length' | 'chunked' | 'close'
  readonly bytes: number
}

/** What was read is not HTTP/1.1 as it must be; `code` is what a client hears of its own fault. */
export class WireError extends Error {
  readonly code: ErrorCode
  constructor(code: ErrorCode, message: string) {
    super(message)
    this.code = code
  }
}
