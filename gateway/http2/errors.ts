/** Errors of a peer, for which its connection or one stream must end (RFC 9113 section 5.4). */
import type { Flood } from '../message.js'
import { ENHANCE_YOUR_CALM } from './protocol.js'

/** The connection must end, with this error code for the peer (RFC 9113 section 5.4.1). */
export class ConnectionError extends Error {
  readonly code: number
  readonly flood: Flood | undefined

  constructor(code: number, message: string, flood?: Flood) {
    super(message)
    this.code = code
    this.flood = flood
  }
}

/** The stream whose frame is being handled must end, with this error code for the peer. */
export class StreamError extends Error {
  readonly code: number

  constructor(code: number, message: string) {
    super(message)
    this.code = code
  }
}

export function floodError(flood: Flood): ConnectionError {
  return new ConnectionError(ENHANCE_YOUR_CALM, `too many ${flood}`, flood)
}
