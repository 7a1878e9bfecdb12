import type { Socket } from 'node:net'

/**
 * Ends a connection so that what was sent over it looks as cut as it is, also where only its end marks the end: by a
 * reset, which TLS has no need of, since there an end without a farewell is known as a cut (RFC 8446 section 6.1).
 */
export function cutConnection(socket: Socket): void {
  if ('encrypted' in socket) socket.destroy()
  else socket.resetAndDestroy()
}
