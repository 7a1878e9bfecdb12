import type { Deadlines } from '../../http1/deadlines.js'
import type { WaitingTimes } from '../../outgoing-request.js'
import type { Http2ClientConnection } from './connection.js'
import type { Scheme } from './request-fields.js'

/** The owner of a connection. */
export interface Http2ConnectionOwner {
  readonly times: WaitingTimes
  readonly deadlines: Deadlines
  readonly scheme: Scheme
  /** Time for which a connection without a request is kept. */
  readonly idleMs: number
  /** How many streams the upstream allows on a connection, as far as is known. */
  maxStreams: number
  onUnreachable(error: Error): void
  /** The connection takes no more requests; those it has may go on. */
  onLeaving(connection: Http2ClientConnection): void
  onClosed(connection: Http2ClientConnection): void
}
