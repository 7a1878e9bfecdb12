import type { Duplex } from 'node:stream'

/** How long a client may still send, or not read, after our last byte. */
export const GOODBYE_MS = 2_000

/**
 * Ends our side, after `lastBytes`, and drops what still arrives until the client ends its side or the time for it
 * is over. (Closing at once would reset the connection, and with it an answer the client has not read yet:
 * RFC 9112 section 9.6.)
 */
export function closeLingering(socket: Duplex, lastBytes = ''): void {
  if (socket.destroyed) return
  const timer = setTimeout(() => socket.destroy(), GOODBYE_MS)
  socket.once('close', () => clearTimeout(timer))
  if (!socket.writableEnded) socket.end(lastBytes, 'latin1')
  socket.resume()
}
