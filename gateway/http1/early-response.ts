import type { Socket } from 'node:net'

type Written = (error?: Error | null) => void

/**
 * Delays the error of a failed write on `socket` until everything received has been read. An upstream may respond
 * before the end of an upload and close (RFC 9112 section 9.6). The next write then fails, and Node would destroy the
 * socket together with the unread response.
 */
export function readBeforeWriteErrors(socket: Socket): void {
  const { _write, _writev } = socket
  socket._write = (chunk, encoding, done) => _write.call(socket, chunk, encoding, unlessFailed(socket, done))
  if (_writev) socket._writev = (chunks, done) => _writev.call(socket, chunks, unlessFailed(socket, done))
}

function unlessFailed(socket: Socket, done: Written): Written {
  return error => {
    if (!error || socket.readableEnded || socket.destroyed) return done(error)
    const fail = (): void => {
      socket.off('end', fail).off('close', fail)
      done(error)
    }
    // The other end is gone, so once the received bytes are read one of these events follows.
    socket.on('end', fail).on('close', fail)
  }
}
