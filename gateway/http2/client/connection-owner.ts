import type { Deadlines } from '../../http1/deadlines.js'
import type { ConnectionFault, WaitingTimes } from '../../outgoing-request.js'
import type { Http2ClientConnection } from './connection.js'
import type { Scheme } from './request-fields.js'

/** The owner of a connection. */
export interface Http2ConnectionOwner {
  readonly times: WaitingTimes
  readonly deadlines: Deadlines
  readonly scheme: Scheme
  /** Time for which a connection without a request is kept. */
  readonly idleMs: number
  /** The connection has opened, and allows at least one request. */
  onReady(connection: Http2ClientConnection): void
  /** The connection may have room for another request again. */
  onRoom(connection: Http2ClientConnection): void
  /** The connection takes no more requests; those it has may go on. */
  onLeaving(connection: Http2ClientConnection): void
  /**
   * It is closed, for this reason; without `onReady` before, it could not be opened. `refused` if the upstream has ended it
   * by GOAWAY while it carried no request.
   */
  onClosed(connection: Http2ClientConnection, fault: ConnectionFault, error: Error): void
}
