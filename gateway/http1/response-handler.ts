/** The user and the owner of a connection to an upstream, and what can go wrong there. */
import type { Fields, Takeover } from '../message.js'
import type { ClientConnection } from './client-connection.js'
import type { Deadlines } from './deadlines.js'
import type { ParsedResponse } from './message.js'
import type { Silence } from './silence.js'

/** How a request can fail: no connection, the connection broke, a timeout, or a response that is not valid HTTP. */
export type ConnectionFault = 'no-connection' | 'gone' | 'silent' | 'invalid'

/** Sends a request and receives its response. No call follows `onEnd`, `onSwitch` or `onFault`. */
export interface ResponseHandler {
  /** The connection is reserved for this request until the response ends: call `ask` or `release`. */
  onConnection(connection: ClientConnection): void
  /** The upstream can take more of the request body. */
  onSendable(): void
  /** An interim (1xx) response other than 100. */
  onInterim(status: number, fields: Fields): void
  onHead(head: ParsedResponse): void
  /** `chunk` is not reused and may be kept. */
  onData(chunk: Buffer): void
  /** All bytes of one read have been delivered, and the response goes on. */
  onReadEnd(): void
  /** `trailers` is a flat list. */
  onEnd(trailers: readonly string[]): void
  /** The upstream has switched protocols. Without this method a switch is a fault. */
  onSwitch?(head: ParsedResponse, takeover: Takeover): void
  /** `heard` is true when at least one byte of the response has arrived. */
  onFault(fault: ConnectionFault, error: Error, responseBegan: boolean): void
}

/** Limits in ms: to connect, from the end of the request to the response head, and between bytes of its body. */
export interface WaitingTimes {
  readonly connectMs: number
  readonly headMs: number
  readonly idleMs: number
}

/** The owner of a connection. */
export interface ConnectionOwner {
  readonly times: WaitingTimes
  readonly deadlines: Deadlines
  /** Connections that must be silent for a while before they are free. */
  readonly silence: Silence<ClientConnection>
  /** The connection can carry another request. `responseFields` holds the fields of its last response, if there was one. */
  onFree(connection: ClientConnection, responseFields: Fields | undefined): void
  onUnreachable(error: Error): void
  onClosed(connection: ClientConnection): void
}
