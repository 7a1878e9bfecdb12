import type { Duplex } from 'node:stream'

/** How long a client may take to close its side after our last byte. */
export const GOODBYE_MS = 2_000

/**
 * Sends `lastBytes`, ends our side, and drops what still arrives until the client closes its side or GOODBYE_MS have
 * passed. (Closing at once would reset the connection and discard a response that the client has not read yet:
 * RFC 9112 section 9.6.)
 */
export function closeLingering(socket: Duplex, lastBytes = ''): void {
  if (socket.destroyed) return
  const timer = setTimeout(() => socket.destroy(), GOODBYE_MS)
  socket.once('close', () => clearTimeout(timer))
  if (!socket.writableEnded) socket.end(lastBytes, 'latin1')
  socket.resume()
}
