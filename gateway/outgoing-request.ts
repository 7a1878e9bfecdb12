/** An HTTP exchange with an upstream, in any version of HTTP: what is written to it and what is read from it. */
import type { Fields, Takeover } from './message.js'

/** How the body of a request is delimited. `bytes` has a meaning for `length` only. */
export interface RequestFraming {
  readonly kind: 'none' | 'length' | 'chunked'
  readonly bytes: number
}

/** The head of a response, without its connection. */
export interface ResponseHead {
  readonly status: number
  /** Latin-1; often empty. */
  readonly reason: string
  readonly fields: Fields
}

/**
 * How a request can fail: no connection, the upstream says that it has not looked at the request, it does not accept
 * what the request is, it has failed at it, the connection broke, a timeout, or a response that is not valid HTTP.
 */
export type ConnectionFault =
  | 'no-connection'
  | 'refused'
  | 'not-accepted'
  | 'failed'
  | 'gone'
  | 'silent'
  | 'invalid'

/** Limits in ms: to connect, from the end of the request to the response head, and between bytes of its body. */
export interface WaitingTimes {
  readonly connectMs: number
  readonly headMs: number
  readonly idleMs: number
}

/** A place for one request on a connection to an upstream. */
export interface OutgoingRequest {
  /** Earlier requests of the connection: after some, it may have been closed by the upstream for its idleness. */
  readonly requests: number
  /**
   * Begins the request; only for the handler that holds the place. `head` is the text of HTTP/1.1 with the empty line
   * that ends it. If there is a body, `flush` sends the head, and `send` and `finish` follow.
   */
  ask(handler: ResponseHandler, method: string, head: string, framing: RequestFraming): void
  /** Returns the place without a request. */
  release(): void
  /** Sends a piece of the body, which must not change any more. False when the upstream must read first; `onSendable` follows. */
  send(chunk: Buffer): boolean
  /** Sends everything written so far. */
  flush(): void
  /** Ends the body. */
  finish(trailers: readonly string[]): void
  /** Stops reading the response. Bytes that are already read may still arrive. */
  pause(): void
  resume(): void
  /** Breaks the request off without a call of the handler. */
  abort(): void
}

/** Sends a request and receives its response. No call follows `onEnd`, `onSwitch` or `onFault`. */
export interface ResponseHandler {
  /** In place of those of the connection, if they differ. */
  readonly times?: WaitingTimes | undefined
  /** The place is reserved for this request until the response ends: call `ask` or `release`. */
  onConnection(connection: OutgoingRequest): void
  /** The upstream can take more of the request body. */
  onSendable(): void
  /** An interim (1xx) response other than 100. */
  onInterim(status: number, fields: Fields): void
  onHead(head: ResponseHead): void
  /** `chunk` is not reused and may be kept. */
  onData(chunk: Buffer): void
  /** All bytes of one read have been delivered, and the response goes on. */
  onReadEnd(): void
  /** `trailers` is a flat list. */
  onEnd(trailers: readonly string[]): void
  /** The upstream has switched protocols. Without this method a switch is a fault. */
  onSwitch?(head: ResponseHead, takeover: Takeover): void
  /** `responseBegan` is true when at least one byte of the response has arrived. */
  onFault(fault: ConnectionFault, error: Error, responseBegan: boolean): void
  /** One of these calls has thrown `error`. The request was broken off, and the exchange must end; this never throws. */
  onCrash(error: Error): void
}

/** Calls a handler. What it throws ends its own exchange, and no other; `end` breaks its request off. */
export function tell(
  handler: ResponseHandler,
  call: (handler: ResponseHandler) => void,
  end: () => void,
): void {
  try {
    call(handler)
  } catch (error) {
    end()
    handler.onCrash(error as Error)
  }
}

/** The connections to one address of an upstream. The caller limits how many requests are in progress. */
export interface RequestPool {
  /** Gets `handler` a place for one request: at once, or when a connection is open (or a fault). */
  take(handler: ResponseHandler): void
  /** Like `take`, but on a connection that is opened for it and cannot be stale. */
  takeNew(handler: ResponseHandler): void
  /** Closes every connection, those with a request in progress too. */
  close(): void
}
