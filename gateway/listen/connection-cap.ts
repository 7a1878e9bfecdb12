/** Where clients' connections come in: as many as are allowed, so that none can take what all others need. */
import { randomUUID } from 'node:crypto'
import { createServer, type Server, type Socket } from 'node:net'
import type { ErrorCode } from '../errors.js'
import { closeLingering } from '../http1/lingering-close.js'
import { refusalText } from '../http1/refusal.js'
import { clientBehind, type TrustedProxies } from './client.js'

/** Connections that are refused in so many words; of more at a time each is just closed. */
const MOST_GOODBYES = 256

/** Which limit a connection was beyond: that of all together, or that of its client. */
export type Cap = 'all' | 'client'

export interface DoorSettings {
  readonly maxConnections: number
  /** By address, of IPv6 by /64. */
  readonly maxConnectionsPerClient: number
  /** They bring the connections of many clients, and have no limit of their own. */
  trustedProxies(): TrustedProxies
  /** A connection was refused. */
  turnedAway?(cap: Cap): void
}

export interface Door {
  readonly server: Server
  /** Those that were let in and are open. */
  readonly connections: number
}

interface Inside {
  /** Takes what was let in. */
  enter(socket: Socket): void
  /** Ends a connection that nobody needs just now; false when there is none. */
  makeRoom(): boolean
  /** A client was told that it is refused. */
  refused(code: ErrorCode, id: string, peer: string): void
}

/** A TCP server in front of HTTP, or, when `isTls`, of the handshakes. */
export function createDoor(settings: DoorSettings, isTls: boolean, inside: Inside): Door {
  let open = 0
  let goodbyes = 0
  const byClient = new Map<string, number>()
  // A client may end its side before its answer has come.
  const server = createServer({ noDelay: true, allowHalfOpen: !isTls })
  server.on('connection', socket => {
    const cap = admit(socket)
    if (cap === undefined) inside.enter(socket)
    else turnAway(socket, cap)
  })

  /** Counts a connection, or says which limit is reached. */
  function admit(socket: Socket): Cap | undefined {
    const client = clientBehind(socket.remoteAddress ?? '', settings.trustedProxies())
    const count = client === undefined ? 0 : (byClient.get(client) ?? 0)
    if (client !== undefined && count >= settings.maxConnectionsPerClient) return 'client'
    if (open >= settings.maxConnections && !inside.makeRoom()) return 'all'
    open += 1
    if (client !== undefined) byClient.set(client, count + 1)
    socket.once('close', () => {
      open -= 1
      if (client !== undefined) leave(client)
    })
    return undefined
  }

  function leave(client: string): void {
    const left = (byClient.get(client) ?? 0) - 1
    if (left > 0) byClient.set(client, left)
    else byClient.delete(client)
  }

  function turnAway(socket: Socket, cap: Cap): void {
    settings.turnedAway?.(cap)
    socket.on('error', () => socket.destroy())
    // An answer under TLS would need a handshake first, which costs more than the request.
    if (isTls || goodbyes >= MOST_GOODBYES) {
      socket.destroy()
      return
    }
    goodbyes += 1
    socket.once('close', () => {
      goodbyes -= 1
    })
    const id = randomUUID()
    inside.refused('gateway-overloaded', id, socket.remoteAddress ?? '')
    closeLingering(socket, refusalText('gateway-overloaded', id))
  }

  return {
    server,
    get connections() {
      return open
    },
  }
}
