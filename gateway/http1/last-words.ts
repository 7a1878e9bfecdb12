import type { Socket } from 'node:net'

type Written = (error?: Error | null) => void

/**
 * Puts off the failure of a write on `socket` until all that came before it has been read. An upstream may answer
 * before the end of an upload and close (RFC 9112 section 9.6): the next write then fails, while the answer still
 * waits to be read, and Node destroys both with the failed write.
 */
export function hearLastWords(socket: Socket): void {
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
    // A connection that cannot be written to has no more to say than what is here: one of these comes soon.
    socket.on('end', fail).on('close', fail)
  }
}
