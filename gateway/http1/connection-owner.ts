/** The owner of a connection to an upstream. */
import type { Fields } from '../message.js'
import type { WaitingTimes } from '../outgoing-request.js'
import type { ClientConnection } from './client-connection.js'
import type { Deadlines } from './deadlines.js'
import type { Silence } from './silence.js'

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
