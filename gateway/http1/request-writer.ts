import type { Socket } from 'node:net'
import type { RequestFraming } from '../outgoing-request.js'
import { readBeforeWriteErrors } from './early-response.js'
import { chunkPrefix, lastChunk } from './head-text.js'

/** A body chunk up to this size is appended to the pending text: copying it costs less than a write of its own. */
const JOINED = 4 * 1024
/** Pending text beyond this size is written at once, because only a write shows whether the upstream takes it. */
const GATHERED = 16 * 1024

/** Writes requests to one socket, each with as few writes as possible. */
export class RequestWriter {
  readonly #socket: Socket
  /** Latin-1 text not yet written. */
  #text = ''
  #isHeld = false
  #isChunked = false
  /** Bytes of a body of announced length that are still to come. */
  #left = 0
  #readsBeforeErrors = false

  constructor(socket: Socket) {
    this.#socket = socket
  }

  /** Begins a request. `flush` sends it; body pieces written after that are sent without another `flush`. */
  begin(head: string, { kind, bytes }: RequestFraming): void {
    this.#text = head
    this.#isHeld = true
    this.#isChunked = kind === 'chunked'
    this.#left = kind === 'length' ? bytes : 0
    if (kind === 'none' || this.#readsBeforeErrors) return
    this.#readsBeforeErrors = true
    readBeforeWriteErrors(this.#socket)
  }

  /** A piece of the body, which must not change any more. False when it exceeds the announced length. */
  write(chunk: Buffer): boolean {
    if (chunk.length === 0) return true
    if (this.#isChunked) this.#text += chunkPrefix(chunk.length)
    else {
      this.#left -= chunk.length
      if (this.#left < 0) return false
    }
    const behind = this.#isChunked ? '\r\n' : ''
    if (chunk.length > JOINED) this.#writeApart(chunk, behind)
    else {
      this.#text += chunk.toString('latin1') + behind
      if (this.#text.length > GATHERED) this.flush()
      else if (!this.#isHeld) this.#flushSoon()
    }
    return true
  }

  /** The end of the body; flat `trailers` are sent after chunks only. False if the announced length was not reached. */
  end(trailers: readonly string[]): boolean {
    if (this.#left > 0) return false
    if (this.#isChunked) this.#text += lastChunk(trailers)
    this.flush()
    return true
  }

  /** Writes the pending text. */
  flush(): void {
    this.#isHeld = false
    if (this.#text === '') return
    const text = this.#text
    this.#text = ''
    // Text that waits for the upstream would stay in the pieces it was joined from, each many times as large as its bytes.
    if (this.#socket.writableLength > 0) this.#socket.write(Buffer.from(text, 'latin1'))
    else this.#socket.write(text, 'latin1')
  }

  /** True while the upstream must read first; the socket's `drain` event follows. */
  get blocked(): boolean {
    return this.#socket.writableNeedDrain
  }

  /** Thousands of small pieces may arrive at once, and a write for each would delay all other requests. */
  #flushSoon(): void {
    this.#isHeld = true
    process.nextTick(flush, this)
  }

  #writeApart(chunk: Buffer, behind: string): void {
    this.#socket.cork()
    this.flush()
    this.#socket.write(chunk)
    if (behind !== '') this.#socket.write(behind, 'latin1')
    this.#socket.uncork()
  }
}

function flush(writer: RequestWriter): void {
  writer.flush()
}
