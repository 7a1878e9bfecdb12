/** The user of a connection to an upstream, and what can go wrong there. */
import type { Fields, Takeover } from '../message.js'
import type { ClientConnection } from './client-connection.js'
import type { ParsedResponse } from './message.js'

/** What can befall a request: nobody could be reached, the connection broke, nothing came in time, no HTTP came. */
export type ConnectionFault = 'no-connection' | 'gone' | 'silent' | 'invalid'

/** Who sends a request and hears its answer. After `onEnd`, `onSwitch` or `onFault` nothing follows. */
export interface Asker {
  /** It is yours until its answer ends: call `ask`, or `release`. */
  onConnection(connection: ClientConnection): void
  /** More of the body can be sent. */
  onSendable(): void
  /** An interim answer; 100 is not told. */
  onInterim(status: number, fields: Fields): void
  onHead(head: ParsedResponse): void
  /** `chunk` is yours to keep. */
  onData(chunk: Buffer): void
  /** All that came at once has been handed over, and more will come. */
  onReadEnd(): void
  /** Flat `trailers`. */
  onEnd(trailers: readonly string[]): void
  /** The upstream has switched protocols. Without this method that is a fault. */
  onSwitch?(head: ParsedResponse, takeover: Takeover): void
  /** True for `heard` when a byte of an answer had come. */
  onFault(fault: ConnectionFault, error: Error, heard: boolean): void
}
