/** HTTP by hand on both sides of the gateway: a client and an upstream that send exactly the given bytes. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { waitUntil } from './wait.js'

const LIMIT_MS = 5_000

/** A minimal response and a minimal request. */
export const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
export const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'

export interface RawMessage {
  /** Request line or status line. */
  readonly line: string
  /** Fields in the order received, names as written. */
  readonly fields: readonly (readonly [name: string, value: string])[]
  /** Content, chunks joined; latin1, so that bytes can be compared. */
  readonly body: string
}

/** All values of a field; its name is case-insensitive. */
export function valuesOf(message: RawMessage, name: string): string[] {
  return message.fields.filter(([key]) => key.toLowerCase() === name.toLowerCase()).map(([, value]) => value)
}

/** One end of a connection. Received bytes are kept until they are read. */
export class RawPeer {
  readonly socket: Socket
  /** Received and not yet read, as latin1. */
  unread = ''
  /** The peer has sent FIN. */
  ended = false
  closed = false
  /** The code of the error the connection ended with, such as ECONNRESET. */
  error: string | undefined

  constructor(socket: Socket) {
    this.socket = socket
    socket.on('data', bytes => {
      this.unread += bytes.toString('latin1')
    })
    socket.on('end', () => {
      this.ended = true
    })
    socket.on('error', (error: NodeJS.ErrnoException) => {
      this.error = error.code
    })
    socket.on('close', () => {
      this.closed = true
    })
  }

  send(text: string): this {
    this.socket.write(text, 'latin1')
    return this
  }

  /** Reads one head up to its empty line; throws when the connection ends without one. */
  async head(): Promise<Omit<RawMessage, 'body'>> {
    const arrived = (): boolean => this.unread.includes('\r\n\r\n')
    await waitUntil('a message head', () => arrived() || this.ended || this.closed, LIMIT_MS)
    if (!arrived()) throw new Error(`the connection ended after ${JSON.stringify(this.unread)}`)
    const [line = '', ...lines] = this.take(this.unread.indexOf('\r\n\r\n') + 4).split('\r\n')
    const fields = lines.filter(Boolean).map(text => {
      const colon = text.indexOf(':')
      return [text.slice(0, colon), text.slice(colon + 1).trim()] as const
    })
    return { line, fields }
  }

  /**
   * Reads one complete message: by its chunks, by its length, or, with `tillClose`, up to the end of the connection.
   */
  async message({ bodyless = false, tillClose = false } = {}): Promise<RawMessage> {
    const head = { ...(await this.head()), body: '' }
    if (bodyless) return head
    if (tillClose) return { ...head, body: await this.rest() }
    if (valuesOf(head, 'transfer-encoding').length > 0) return { ...head, body: await this.chunks() }
    return { ...head, body: await this.bytes(Number(valuesOf(head, 'content-length')[0] ?? 0)) }
  }

  async bytes(count: number): Promise<string> {
    await waitUntil(`${count} bytes`, () => this.unread.length >= count, LIMIT_MS)
    return this.take(count)
  }

  /** Everything until the peer closes. */
  async rest(): Promise<string> {
    await waitUntil('the end of the connection', () => this.ended || this.closed, LIMIT_MS)
    return this.take(this.unread.length)
  }

  end(): void {
    this.socket.end()
  }

  reset(): void {
    this.socket.resetAndDestroy()
  }

  private async chunks(): Promise<string> {
    let body = ''
    for (;;) {
      await waitUntil('a chunk size', () => this.unread.includes('\r\n'), LIMIT_MS)
      const size = Number.parseInt(this.take(this.unread.indexOf('\r\n') + 2), 16)
      body += (await this.bytes(size + 2)).slice(0, size)
      if (size === 0) return body
    }
  }

  private take(count: number): string {
    const taken = this.unread.slice(0, count)
    this.unread = this.unread.slice(count)
    return taken
  }
}

export async function rawClient(port: number, host = '127.0.0.1'): Promise<RawPeer> {
  const socket = connect({ port, host, noDelay: true })
  await once(socket, 'connect')
  return new RawPeer(socket)
}

export interface RawUpstream {
  readonly port: number
  readonly url: string
  /** Every connection so far, in order. */
  readonly connections: readonly RawPeer[]
  /** Waits for the connection with that index. */
  connection(index: number): Promise<RawPeer>
  stop(): Promise<void>
}

/** Listens on a free loopback port. `script` handles each connection; without one the test does. */
export async function rawUpstream(script?: (peer: RawPeer) => unknown): Promise<RawUpstream> {
  const connections: RawPeer[] = []
  const server = createServer({ noDelay: true, allowHalfOpen: true }, socket => {
    const peer = new RawPeer(socket)
    connections.push(peer)
    // When a script fails, the test fails on what its client misses.
    Promise.resolve(script?.(peer)).catch(() => undefined)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    connections,
    connection: index => waitUntil(`connection ${index}`, () => connections[index], LIMIT_MS),
    async stop() {
      for (const { socket } of connections) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
