/** An upstream that parses HTTP/1.1 strictly, records every request, and tolerates nothing. */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'

export interface SeenRequest {
  /** The id in the query; '' when there is none. */
  readonly id: string
  readonly requestId: string
  /** False until the whole body has arrived, and forever when it was cut. */
  whole: boolean
}

export interface StrictUpstream {
  readonly url: string
  /** Requests by the id that the gateway gave them, which no client can forge. */
  readonly seen: ReadonlyMap<string, SeenRequest>
  /** Violations by the gateway: bytes that are not exactly one valid request after the other. */
  readonly faults: readonly string[]
  stop(): Promise<void>
}

const REQUEST_LINE = /^[A-Z]+ \/[\x21-\x7e]* HTTP\/1\.1$/
// biome-ignore lint/suspicious/noControlCharactersInRegex: finding control characters is the point
const FIELD = /^([\w!#$%&'*+.^`|~-]+):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*)$/
const REQUEST_ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** Answers each request with its id in `X-Saw`, the gateway's own in `X-Request`, and both as content. */
export async function strictUpstream(): Promise<StrictUpstream> {
  const seen = new Map<string, SeenRequest>()
  const faults: string[] = []
  const sockets = new Set<Socket>()
  const server = createServer({ noDelay: true }, socket => {
    sockets.add(socket)
    const reader = new Reader(socket, seen)
    socket.on('data', bytes => {
      try {
        reader.read(bytes.toString('latin1'))
      } catch (error) {
        faults.push((error as Error).message)
        socket.destroy()
      }
    })
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    faults,
    async stop() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

/** Reads one connection. Throws at the first byte that is not valid in its place. */
class Reader {
  private readonly socket: Socket
  private readonly seen: Map<string, SeenRequest>
  private unread = ''
  private request: SeenRequest | undefined
  private method = ''
  private chunked = false
  /** Bytes to come of the body, or of the current chunk with its line end; -1 when a chunk size is next. */
  private left = 0

  constructor(socket: Socket, seen: Map<string, SeenRequest>) {
    this.socket = socket
    this.seen = seen
  }

  read(bytes: string): void {
    this.unread += bytes
    while (this.request === undefined ? this.head() : this.body()) {}
  }

  private head(): boolean {
    const end = this.unread.indexOf('\r\n\r\n')
    if (end === -1) return false
    const [line = '', ...lines] = this.take(end + 4)
      .slice(0, -4)
      .split('\r\n')
    if (!REQUEST_LINE.test(line)) throw new Error(`request line ${JSON.stringify(line.slice(0, 200))}`)
    const fields = lines.map(text => {
      const [, name, value] = FIELD.exec(text) ?? []
      if (name === undefined) throw new Error(`field ${JSON.stringify(text.slice(0, 200))}`)
      return [name.toLowerCase(), value as string] as const
    })
    const all = (name: string): string[] => fields.filter(([key]) => key === name).map(([, value]) => value)
    const [requestId = '', ...forged] = all('x-sluice-request-id')
    if (!REQUEST_ID.test(requestId) || forged.length > 0 || this.seen.has(requestId)) {
      throw new Error(`a request that the gateway did not make: ${JSON.stringify(line)} ${requestId}`)
    }
    if (all('host').length !== 1 || all('via').length === 0) throw new Error(`Host or Via of ${line}`)
    this.frame(line, all('content-length'), all('transfer-encoding'))
    const id = /[?&]id=([^ &]*)/.exec(line)?.[1] ?? ''
    this.method = line.slice(0, line.indexOf(' '))
    this.request = { id, requestId, whole: false }
    this.seen.set(requestId, this.request)
    return true
  }

  private frame(line: string, lengths: string[], codings: string[]): void {
    if (lengths.length + codings.length > 1) throw new Error(`framed twice: ${line}`)
    if (lengths[0] !== undefined && !/^(?:0|[1-9]\d{0,14})$/.test(lengths[0])) {
      // A length with leading zeros is valid (RFC 9110 section 8.6), and forwarded unchanged.
      if (!/^0\d{1,14}$/.test(lengths[0])) throw new Error(`Content-Length ${lengths[0]}`)
    }
    if (codings[0] !== undefined && codings[0] !== 'chunked')
      throw new Error(`Transfer-Encoding ${codings[0]}`)
    this.chunked = codings.length > 0
    this.left = this.chunked ? -1 : Number(lengths[0] ?? 0)
  }

  private body(): boolean {
    if (!this.chunked) {
      this.left -= this.take(this.left).length
      return this.left === 0 && this.answer()
    }
    if (this.left === -1) {
      const end = this.unread.indexOf('\r\n')
      if (end === -1) return false
      const size = this.take(end + 2).slice(0, -2)
      if (!/^[0-9a-f]{1,8}$/i.test(size)) throw new Error(`chunk size ${JSON.stringify(size.slice(0, 100))}`)
      this.left = Number.parseInt(size, 16) + 2
    }
    if (this.unread.length < this.left) return false
    const chunk = this.take(this.left)
    if (!chunk.endsWith('\r\n')) throw new Error('a chunk without its end')
    const isLast = this.left === 2
    this.left = -1
    return !isLast || this.answer()
  }

  private answer(): true {
    const { id, requestId } = this.request as SeenRequest
    ;(this.request as SeenRequest).whole = true
    const body = `${id} ${requestId}`
    const head = `HTTP/1.1 200 OK\r\nX-Saw: ${id}\r\nX-Request: ${requestId}\r\nContent-Length: ${body.length}\r\n`
    this.socket.write(
      `${head}X-Method: ${this.method}\r\n\r\n${this.method === 'HEAD' ? '' : body}`,
      'latin1',
    )
    this.request = undefined
    return true
  }

  private take(count: number): string {
    const taken = this.unread.slice(0, count)
    this.unread = this.unread.slice(count)
    return taken
  }
}
