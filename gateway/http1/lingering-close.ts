import type { Duplex } from 'node:stream'

/** How long a client may take to close its side after our last byte. */
export const CLOSING_MS = 2_000

/**
 * Sends `lastBytes`, ends our side, and drops what still arrives until the client closes its side, GOODBYE_MS have
 * passed, or too many clients go on sending. (Closing at once would reset the connection and discard a response that
 * the client has not read yet: RFC 9112 section 9.6.)
 */
export function closeLingering(socket: Duplex, lastBytes = ''): void {
  if (socket.destroyed) return
  const timer = setTimeout(() => socket.destroy(), CLOSING_MS)
  socket.once('close', () => {
    clearTimeout(timer)
    unread.delete(socket)
  })
  if (!socket.writableEnded) socket.end(lastBytes, 'latin1')
  socket.on('data', () => awaitTurn(socket))
  awaitTurn(socket)
}

/** Sockets read in one turn of the event loop: reading what nobody wants must not keep others waiting. */
const READ_AT_ONCE = 8
/** Each keeps up to 128 KiB while it awaits its turn. Beyond so many, the one that has waited longest is closed. */
const MOST_UNREAD = 256
/** Sockets that may have bytes to drop, in the order of their turns. */
const unread = new Set<Duplex>()

function awaitTurn(socket: Duplex): void {
  socket.pause()
  if (unread.size === 0) setImmediate(readSome)
  unread.add(socket)
  if (unread.size <= MOST_UNREAD) return
  const [first] = unread
  if (first === undefined) return
  unread.delete(first)
  first.destroy()
}

function readSome(): void {
  for (const socket of [...unread].slice(0, READ_AT_ONCE)) {
    unread.delete(socket)
    socket.resume()
  }
  if (unread.size > 0) setImmediate(readSome)
}
