import { buildConnector, Client, type Dispatcher, Pool } from 'undici'
import { hideContinue, type ReadingState } from './interim.js'
import { hearLastWords } from './last-words.js'
import { type UpstreamSettings, verificationOf } from './transport.js'

/** What undici does not tell its handlers of the connection they are on. */
export interface ConnectionState extends ReadingState {
  /** Requests begun on the present socket. */
  requests: number
}

/** A request's handler, which learns what connection it is on. */
export abstract class Rider {
  connection: ConnectionState | undefined
}

/** A request as undici takes it. */
export type Outgoing = Dispatcher.DispatchOptions & { servername?: string }

/** The connections to one address of an upstream, at most one for each request under way. */
export interface Connections {
  dispatch(request: Outgoing, rider: Rider & Dispatcher.DispatchHandler): void
  /** For second attempts: on a connection of its own, which cannot be stale. */
  dispatchFresh(request: Outgoing, rider: Rider & Dispatcher.DispatchHandler): void
  close(): Promise<void>
}

/** Opens connections to `origin` as they are needed. */
export function openConnections(
  origin: URL,
  { connections, timeouts, ca }: Pick<UpstreamSettings, 'timeouts' | 'ca'> & { connections: number },
  onUnreachable: (error: Error) => void,
): Connections {
  const { servername, ...verification } = verificationOf(origin, ca)
  const open = buildConnector({ timeout: timeouts.connectMs, ...verification })
  const connector: buildConnector.connector = (target, done) =>
    open({ ...target, servername }, (...outcome) => {
      if (outcome[0] !== null) onUnreachable(outcome[0])
      done(...outcome)
    })
  const options = {
    connections,
    headersTimeout: timeouts.headMs,
    bodyTimeout: timeouts.idleMs,
    factory: (target: URL, given: object) => new Connection(target, given as Client.Options, connector),
  }
  const pool = new Pool(origin.origin, options)
  const fresh = new Pool(origin.origin, { ...options, pipelining: 0 })
  // One name for all requests: undici would take the client's Host for it, and open a new connection for each.
  const named = (options: Outgoing): Outgoing => {
    options.servername = origin.hostname
    return options
  }
  return {
    dispatch(options, rider) {
      pool.dispatch(named(options), rider)
    },
    dispatchFresh(options, rider) {
      fresh.dispatch(named(options), rider)
    },
    async close() {
      await Promise.all([pool.destroy(), fresh.destroy()])
    },
  }
}

class Connection extends Client {
  readonly #state: ConnectionState

  constructor(origin: URL, options: Client.Options, connector: buildConnector.connector) {
    const state: ConnectionState = { answering: false, requests: 0 }
    super(origin, {
      ...options,
      connect: (target: buildConnector.Options, done: buildConnector.Callback) =>
        connector(target, (error, socket) => {
          if (error !== null) return done(error, null)
          state.requests = 0
          hideContinue(socket, state)
          hearLastWords(socket)
          done(null, socket)
        }),
    })
    this.#state = state
  }

  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    if (handler instanceof Rider) handler.connection = this.#state
    return super.dispatch(options, handler)
  }
}
