/** An HTTP exchange with a client, whatever version of HTTP carries it: what is read of it, and what is written to it. */
import type { Socket } from 'node:net'
import type { ErrorCode } from './errors.js'

export type HttpVersion = '1.0' | '1.1' | '2.0'

/** The fields of a message in the order they came, repeats apart. */
export class Fields {
  /** Flat name, value, … list as sent; bytes beyond ASCII as Latin-1. */
  readonly raw: readonly string[]
  /** The names in lower case, one for each pair of `raw`. */
  readonly names: readonly string[]

  constructor(raw: readonly string[], names: readonly string[]) {
    this.raw = raw
    this.names = names
  }

  has(name: string): boolean {
    return this.names.includes(name)
  }

  /** The value of the field with this lower-case name; repeats are joined (RFC 9110 section 5.3, of Cookie RFC 6265). */
  get(name: string): string | undefined {
    const first = this.names.indexOf(name)
    if (first === -1) return undefined
    let value = this.raw[2 * first + 1] as string
    for (let i = this.names.indexOf(name, first + 1); i !== -1; i = this.names.indexOf(name, i + 1)) {
      value += `${name === 'cookie' ? '; ' : ', '}${this.raw[2 * i + 1]}`
    }
    return value
  }
}

/** JA3 as its MD5 in hex, JA4 as FoxIO writes it (`t13d1516h2_8daaf6152771_02713d6af862`). */
export interface Fingerprints {
  readonly ja3: string
  readonly ja4: string
}

/** The other end of a client's connection. */
export interface Peer {
  /** As the socket has it: IPv4 clients of an IPv6 listener are `::ffff:1.2.3.4`. */
  readonly address: string
  /** The port it connected to. */
  readonly localPort: number
  /** True when TLS ends here. */
  readonly encrypted: boolean
  /** Of the TLS that ends here. */
  readonly fingerprints: Fingerprints | undefined
}

/** The head of a request: all that rules look at but its body. */
export interface RequestHead {
  /** Given here, to tell it apart: never the client's own. */
  readonly id: string
  readonly method: string
  /** As it was sent: a path with its query, an absolute URL, or `*` (RFC 9112 section 3.2). */
  readonly target: string
  readonly version: HttpVersion
  readonly fields: Fields
  /** True when it asks for a WebSocket, the one protocol that is switched to. */
  readonly upgrade: boolean
  readonly peer: Peer
}

export interface IncomingRequest extends RequestHead {
  /** Undefined when none follows the head. */
  readonly body: CountedBody | undefined
}

/** A body that comes at its reader's pace. Nothing flows, and no 100 is sent, before the first `read`. */
export interface IncomingBody {
  /** As announced, in bytes; undefined when it is chunked. */
  readonly length: number | undefined
  /** True once the last byte has been given to a reader, or dropped. */
  readonly complete: boolean
  /**
   * From now on `reader` gets what comes, beginning with what nobody has had: some of it may come before this returns.
   * Resumes. A body that nobody reads before the final head of the answer is sent is dropped.
   */
  read(reader: BodyReader): void
  /** At most what is on its way already still arrives. */
  pause(): void
  resume(): void
}

export interface CountedBody extends IncomingBody {
  /** Bytes of it that have come so far. */
  readonly received: number
}

export interface BodyReader {
  /** `chunk` is the reader's to keep. */
  onData(chunk: Buffer): void
  /** Flat list of the trailer section, which is often empty (RFC 9110 section 6.5). */
  onEnd(trailers: readonly string[]): void
  /** The client left, or what it sent ceased to be a body. Nothing follows. */
  onAbort(): void
}

/** The answer to one request. After `end` or `cut`, or once the client has left, writes are dropped. */
export interface OutgoingResponse {
  /** Of the final head; 0 until that is written. */
  readonly status: number
  /** The answer is sent whole or cut, or its client has left. */
  readonly closed: boolean
  /** Bytes of the body that were written so far. */
  readonly sent: number
  /** Tells `watcher` too of what happens. Of a closed one nobody hears. */
  watch(watcher: ResponseWatcher): void
  /** Sends an interim answer such as 103 where the client can take it now (RFC 9110 section 15.2). Flat `fields`. */
  sendInterim(status: number, fields: readonly string[]): void
  /**
   * The final head, with flat `fields` but without connection fields: framing is added here, unless there is a
   * Content-Length. Leaves with the first bytes of the body, or with `flush`.
   */
  writeHead(status: number, reason: string, fields: readonly string[]): void
  /** `chunk` may no longer change. False when the client must read first: `onDrain` follows. */
  write(chunk: Buffer): boolean
  /** Sends what was written so far. */
  flush(): void
  /** Ends the answer, after `last`. Trailers pass only where the client takes them (RFC 9110 section 6.5.1). */
  end(last?: Buffer | string, trailers?: readonly string[]): void
  /** Breaks the answer off, so that no client can take it for complete. */
  cut(): void
  /** This answer will be the last of its connection (where there can be others behind it). */
  closeAfter(): void
  /** Cuts when for `ms` the client reads nothing of what waits for it; 0 ends the watch. */
  limitReader(ms: number): void
}

export interface ResponseWatcher {
  /** All that was written has left. */
  onDrain?(): void
  /**
   * Once: the answer is over, or its client gone. May come before `end` returns. `refused` says how the listener has
   * answered by itself, where what followed the head was no request.
   */
  onClose?(refused?: ErrorCode): void
}

/** A connection that leaves HTTP for another protocol. */
export interface Takeover {
  readonly socket: Socket
  /** What the client sent beyond its request's head. */
  readonly head: Buffer
}
