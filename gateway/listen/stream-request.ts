import { type IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { IncomingHttpHeaders as PseudoHeaders, ServerHttp2Stream } from 'node:http2'
import type { Socket } from 'node:net'

/**
 * A request of an HTTP/2 stream, with its fields as HTTP/1.1 would carry them (RFC 9113 section 8.3): Host for
 * `:authority`, one Cookie, a framing field when a body follows. All that is done with requests holds for it.
 */
export class StreamRequest extends IncomingMessage {
  readonly #stream: ServerHttp2Stream
  #reading = false

  /** `joined` and `raw` are the stream's fields as Node gives them: by name, and flat. */
  constructor(stream: ServerHttp2Stream, socket: Socket, joined: PseudoHeaders, raw: readonly string[]) {
    super(socket)
    this.#stream = stream
    this.httpVersion = '2.0'
    this.httpVersionMajor = 2
    this.httpVersionMinor = 0
    this.method = joined[':method'] ?? ''
    this.url = joined[':path'] ?? ''
    this.rawHeaders = asHttp1(joined, raw)
    this.headers = withoutPseudo(joined)
    if (stream.endAfterHeaders) this.#onEnd()
    else if (joined['content-length'] === undefined) {
      this.rawHeaders.push('transfer-encoding', 'chunked')
      this.headers['transfer-encoding'] = 'chunked'
    }
    // Node tells of the end of an empty body at once, whether or not somebody reads.
    stream.on('end', () => this.#onEnd())
    stream.on('aborted', () => this.destroy()).on('close', () => this.destroy())
  }

  override _read(): void {
    if (this.complete) return
    if (!this.#reading) {
      this.#reading = true
      this.#stream.on('data', (chunk: Buffer) => this.#onData(chunk))
    }
    this.#stream.resume()
  }

  /** Its connection has other requests to carry. */
  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    if (!this.complete) this.aborted = true
    done(error)
  }

  #onData(chunk: Buffer): void {
    if (!this.push(chunk)) this.#stream.pause()
  }

  #onEnd(): void {
    // Node ends the body of a stream that its client has reset, too.
    if (this.complete || this.#stream.closed) return
    this.complete = true
    this.push(null)
  }
}

function asHttp1(joined: PseudoHeaders, raw: readonly string[]): string[] {
  const authority = joined[':authority']
  const fields = authority === undefined ? [] : ['host', authority]
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i] as string
    const value = raw[i + 1] as string
    if (name[0] === ':' || name === 'cookie') continue
    // Once is enough where both say the same; where they do not, two Host fields are refused (section 8.3.1).
    if (name === 'host' && value.toLowerCase() === authority?.toLowerCase()) continue
    fields.push(name, value)
  }
  if (joined.cookie !== undefined) fields.push('cookie', joined.cookie)
  return fields
}

function withoutPseudo(joined: PseudoHeaders): IncomingHttpHeaders {
  const headers: IncomingHttpHeaders = Object.create(null)
  for (const [name, value] of Object.entries(joined)) if (name[0] !== ':') headers[name] = value
  if (joined[':authority'] !== undefined) headers.host = joined[':authority']
  return headers
}
