import { buildConnector, Client, type Dispatcher, Pool } from 'undici'
import { hideContinue, type ReadingState } from './interim.js'
import { type OnUnreachable, type UpstreamSettings, verificationOf } from './transport.js'

/** More than the requests in parallel: queueing for a connection costs more than opening one. */
const CONNECTIONS = 1024

/** What undici does not tell its handlers of the connection they are on. */
export interface ConnectionState extends ReadingState {
  /** Requests begun on the present socket. */
  requests: number
}

/** A request's handler, which learns what connection it is on. */
export abstract class Rider {
  /** Undefined while all connections are taken. */
  connection: ConnectionState | undefined
  /** True when it no longer wants a connection: undici's queue cannot be left, only passed through. */
  withdrawn = false
}

/** The connections to one upstream. */
export interface Connections {
  dispatch(options: Dispatcher.DispatchOptions, rider: Rider & Dispatcher.DispatchHandler): void
  /** For second attempts: on a connection of its own, which cannot be stale. */
  dispatchFresh(options: Dispatcher.DispatchOptions, rider: Rider & Dispatcher.DispatchHandler): void
  close(): Promise<void>
}

/** Opens connections to `origin` as they are needed. */
export function openConnections(
  origin: URL,
  { connections, timeouts, ca }: Pick<UpstreamSettings, 'connections' | 'timeouts' | 'ca'>,
  onUnreachable: OnUnreachable,
): Connections {
  const { servername, ...verification } = verificationOf(origin, ca)
  const open = buildConnector({ timeout: timeouts.connectMs, ...verification })
  const connector: buildConnector.connector = (target, done) =>
    open({ ...target, servername }, (...outcome) => {
      if (outcome[0] !== null) onUnreachable(outcome[0])
      done(...outcome)
    })
  const options = {
    connections: connections ?? CONNECTIONS,
    headersTimeout: timeouts.headMs,
    bodyTimeout: timeouts.idleMs,
    factory: (target: URL, given: object) => new Connection(target, given as Client.Options, connector),
  }
  const pool = new Pool(origin.origin, options)
  const fresh = new Pool(origin.origin, { ...options, pipelining: 0 })
  return {
    dispatch(options, rider) {
      pool.dispatch(options, rider)
    },
    dispatchFresh(options, rider) {
      rider.connection = undefined
      fresh.dispatch(options, rider)
    },
    async close() {
      await Promise.all([pool.destroy(), fresh.destroy()])
    },
  }
}

class Connection extends Client {
  private readonly state: ConnectionState

  constructor(origin: URL, options: Client.Options, connector: buildConnector.connector) {
    const state: ConnectionState = { answering: false, requests: 0 }
    super(origin, {
      ...options,
      connect: (target: buildConnector.Options, done: buildConnector.Callback) =>
        connector(target, (error, socket) => {
          if (error !== null) return done(error, null)
          state.requests = 0
          hideContinue(socket, state)
          done(null, socket)
        }),
    })
    this.state = state
  }

  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    if (handler instanceof Rider) {
      if (handler.withdrawn) return true
      handler.connection = this.state
    }
    return super.dispatch(options, handler)
  }
}
