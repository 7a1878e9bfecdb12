/** A pool of connections to a scripted upstream, and a client of the pool. */
import type { Test } from 'tap'
import { Deadlines } from '../../../gateway/http1/deadlines.js'
import { ConnectionPool } from '../../../gateway/http1/pool.js'
import type { Fields } from '../../../gateway/message.js'
import type {
  ConnectionFault,
  OutgoingRequest,
  RequestFraming,
  ResponseHandler,
  ResponseHead,
  WaitingTimes,
} from '../../../gateway/outgoing-request.js'
import { GET, type RawPeer, type RawUpstream, rawUpstream } from '../../helpers/raw.js'
import { waitUntil } from '../../helpers/wait.js'

const TIMES = { connectMs: 1000, headMs: 5000, idleMs: 5000 }

/** Sends one request, and records what it gets. */
export class Listener implements ResponseHandler {
  /** Every event in order, each in a few words. */
  readonly heard: string[] = []
  readonly trailers: string[] = []
  readonly chunks: Buffer[] = []
  connection: OutgoingRequest | undefined
  head: ResponseHead | undefined
  error: Error | undefined
  sendable = 0
  over = false
  readonly #method: string
  readonly #text: string
  readonly #framing: RequestFraming

  constructor(text = GET, framing: RequestFraming = { kind: 'none', bytes: 0 }) {
    this.#text = text
    this.#framing = framing
    this.#method = text.slice(0, text.indexOf(' '))
  }

  get body(): string {
    return Buffer.concat(this.chunks).toString('latin1')
  }

  onConnection(connection: OutgoingRequest): void {
    this.connection = connection
    connection.ask(this, this.#method, this.#text, this.#framing)
  }

  onSendable(): void {
    this.sendable += 1
  }

  onInterim(status: number, _fields: Fields): void {
    this.heard.push(`interim ${status}`)
  }

  onHead(head: ResponseHead): void {
    this.head = head
    this.heard.push(`head ${head.status}`)
  }

  onData(chunk: Buffer): void {
    this.chunks.push(chunk)
  }

  onReadEnd(): void {}

  onEnd(trailers: readonly string[]): void {
    this.trailers.push(...trailers)
    this.heard.push('end')
    this.over = true
  }

  onFault(fault: ConnectionFault, error: Error, heard: boolean): void {
    this.error = error
    this.heard.push(heard ? `${fault}, heard` : fault)
    this.over = true
  }

  onCrash(error: Error): void {
    throw error
  }

  async end(): Promise<this> {
    await waitUntil('the end of an answer', () => this.over)
    return this
  }
}

export interface Scene {
  readonly upstream: RawUpstream
  readonly pool: ConnectionPool
  /** Why connections could not be opened. */
  readonly unreachable: Error[]
  /** Sends one request and waits until it is over. */
  asked(text?: string): Promise<Listener>
}

export async function scene(
  t: Test,
  script?: (peer: RawPeer) => unknown,
  times: Partial<WaitingTimes> = {},
): Promise<Scene> {
  const upstream = await rawUpstream(script)
  const unreachable: Error[] = []
  const address = { host: '127.0.0.1', port: upstream.port }
  const pool = new ConnectionPool(address, { ...TIMES, ...times }, new Deadlines(), error =>
    unreachable.push(error),
  )
  t.teardown(async () => {
    pool.close()
    await upstream.stop()
  })
  const asked = (text?: string): Promise<Listener> => {
    const listener = new Listener(text)
    pool.take(listener)
    return listener.end()
  }
  return { upstream, pool, unreachable, asked }
}

/** A script that answers every request with these pieces, with pauses between them. */
export function inPieces(...pieces: readonly string[]): (peer: RawPeer) => void {
  return peer => {
    peer.socket.on('data', () => {
      pieces.forEach((piece, i) => {
        setTimeout(() => peer.send(piece), 15 * i)
      })
    })
  }
}
