/** Accepts client connections up to a limit in total and per client, so that no client can use up all of them. */
import { randomUUID } from 'node:crypto'
import { createServer, type Server, type Socket } from 'node:net'
import type { ErrorCode } from '../errors.js'
import { closeLingering } from '../http1/lingering-close.js'
import { refusalText } from '../http1/refusal.js'
import { clientBehind, type TrustedProxies } from './client.js'
import { type Cap, Shares } from './client-shares.js'
import { readProxyHeader } from './proxy-protocol.js'

/** Most refused connections at a time that get an error response; any more are just closed. */
const MOST_CLOSING = 256
/** Most connections of balancers that have yet to say whose they are. */
const MOST_WAITING = 1024

export interface DoorSettings {
  readonly maxConnections: number
  /** Counted by IPv4 address or IPv6 /64. */
  readonly maxConnectionsPerClient: number
  /** Trusted proxies carry the connections of many clients, so they have no limit per client. */
  trustedProxies(): TrustedProxies
  /** True if trusted proxies begin their connections with the PROXY protocol. */
  readonly proxyProtocol: boolean
  /** A connection, or an HTTP/2 request, was refused. */
  turnedAway?(cap: Cap): void
  /** A connection of this trusted proxy was closed: it does not begin with the PROXY protocol. */
  lacksHeader?(proxy: string): void
}

export interface Door {
  readonly server: Server
  /** Number of admitted connections that are open. */
  readonly connections: number
}

interface Inside {
  /** Takes an admitted connection, of the client at this address. */
  enter(socket: Socket, address: string): void
  /** Closes a connection that is idle; false if there is none. */
  closeIdle(): boolean
  /** A client was refused with an error response. */
  refused(code: ErrorCode, id: string, peer: string): void
}

/** A TCP server in front of HTTP, or of the TLS handshakes if `isTls`. */
export function createDoor(settings: DoorSettings, isTls: boolean, inside: Inside): Door {
  const open = new Shares(settings.maxConnections, settings.maxConnectionsPerClient)
  let closing = 0
  let waiting = 0
  // A client may close its side before it has received all of the response.
  const server = createServer({ noDelay: true, allowHalfOpen: !isTls })
  server.on('connection', socket => {
    const { remoteAddress } = socket
    // The client has already reset the connection. Its request could still be read, but no rule could tell whose it is.
    if (remoteAddress === undefined) socket.destroy()
    else if (settings.proxyProtocol && isTrusted(remoteAddress)) awaitHeader(socket)
    else admit(socket, remoteAddress)
  })

  const isTrusted = (address: string) => clientBehind(address, settings.trustedProxies()) === undefined

  /** A balancer is admitted without a limit of its own, and then its client with it. */
  function awaitHeader(socket: Socket): void {
    if (waiting >= MOST_WAITING) {
      socket.destroy()
      return
    }
    waiting += 1
    const ignore = () => {}
    socket.on('error', ignore)
    const { remoteAddress = '' } = socket
    readProxyHeader(socket).then(read => {
      waiting -= 1
      socket.off('error', ignore)
      if (read === 'malformed') settings.lacksHeader?.(remoteAddress)
      if (typeof read === 'string' || socket.destroyed) socket.on('error', ignore).destroy()
      else admit(socket, read.client)
    })
  }

  function admit(socket: Socket, address: string): void {
    const cap = takePlace(socket, address)
    if (cap === undefined) inside.enter(socket, address)
    else refuse(socket, address, cap)
  }

  /** Counts a connection, or returns the limit that is reached. */
  function takePlace(socket: Socket, address: string): Cap | undefined {
    const client = clientBehind(address, settings.trustedProxies())
    const cap = open.capOf(client)
    if (cap === 'client' || (cap === 'all' && !inside.closeIdle())) return cap
    open.take(client)
    socket.once('close', () => open.giveBack(client))
    return undefined
  }

  function refuse(socket: Socket, address: string, cap: Cap): void {
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
    inside.refused('gateway-overloaded', id, address)
    closeLingering(socket, refusalText('gateway-overloaded', id))
  }

  return {
    server,
    get connections() {
      return open.taken
    },
  }
}
