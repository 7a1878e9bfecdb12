/** Accepts client connections up to a limit in total and per client, so that no client can use up all of them. */
import { randomUUID } from 'node:crypto'
import { createServer, type Server, type Socket } from 'node:net'
import type { ErrorCode } from '../errors.js'
import { closeLingering } from '../http1/lingering-close.js'
import { refusalText } from '../http1/refusal.js'
import { clientBehind, type TrustedProxies } from './client.js'
import { type Cap, Shares } from './client-shares.js'

/** Most refused connections at a time that get an error response; any more are just closed. */
const MOST_CLOSING = 256

export interface DoorSettings {
  readonly maxConnections: number
  /** Counted by IPv4 address or IPv6 /64. */
  readonly maxConnectionsPerClient: number
  /** Trusted proxies carry the connections of many clients, so they have no limit per client. */
  trustedProxies(): TrustedProxies
  /** A connection, or an HTTP/2 request, was refused. */
  turnedAway?(cap: Cap): void
}

export interface Door {
  readonly server: Server
  /** Number of admitted connections that are open. */
  readonly connections: number
}

interface Inside {
  /** Takes an admitted connection. */
  enter(socket: Socket): void
  /** Closes a connection that is idle; false if there is none. */
  closeIdle(): boolean
  /** A client was refused with an error response. */
  refused(code: ErrorCode, id: string, peer: string): void
}

/** A TCP server in front of HTTP, or of the TLS handshakes if `isTls`. */
export function createDoor(settings: DoorSettings, isTls: boolean, inside: Inside): Door {
  const open = new Shares(settings.maxConnections, settings.maxConnectionsPerClient)
  let closing = 0
  // A client may close its side before it has received all of the response.
  const server = createServer({ noDelay: true, allowHalfOpen: !isTls })
  server.on('connection', socket => {
    // The client has already reset the connection. Its request could still be read, but no rule could tell whose it is.
    if (socket.remoteAddress === undefined) {
      socket.destroy()
      return
    }
    const cap = admit(socket)
    if (cap === undefined) inside.enter(socket)
    else refuse(socket, cap)
  })

  /** Counts a connection, or returns the limit that is reached. */
  function admit(socket: Socket): Cap | undefined {
    const client = clientBehind(socket.remoteAddress ?? '', settings.trustedProxies())
    const cap = open.capOf(client)
    if (cap === 'client' || (cap === 'all' && !inside.closeIdle())) return cap
    open.take(client)
    socket.once('close', () => open.giveBack(client))
    return undefined
  }

  function refuse(socket: Socket, cap: Cap): void {
    settings.turnedAway?.(cap)
    socket.on('error', () => socket.destroy())
    // Over TLS a response would need a handshake first, which costs more than the request.
    if (isTls || closing >= MOST_CLOSING) {
      socket.destroy()
      return
    }
    closing += 1
    socket.once('close', () => {
      closing -= 1
    })
    const id = randomUUID()
    inside.refused('gateway-overloaded', id, socket.remoteAddress ?? '')
    closeLingering(socket, refusalText('gateway-overloaded', id))
  }

  return {
    server,
    get connections() {
      return open.taken
    },
  }
}
