import type { Socket } from 'node:net'
import { chunkPrefix, lastChunk } from './head-text.js'
import { hearLastWords } from './last-words.js'
import type { Framing } from './message.js'

/** Up to so many bytes of a body join the text before them: one write costs less than their copy. */
const JOINED = 4 * 1024
/** Beyond so much, text leaves at once: whether the other end takes it is known only then. */
const GATHERED = 16 * 1024

/** Writes requests to one socket, each with as few writes as it can be. */
export class RequestWriter {
  readonly #socket: Socket
  /** Latin-1 that has yet to leave. */
  #text = ''
  #isHeld = false
  #isChunked = false
  /** Bytes of the body still to come, where its length was announced. */
  #left = 0
  #hearsLastWords = false

  constructor(socket: Socket) {
    this.#socket = socket
  }

  /** Begins a request, which leaves with `flush`; from then on its body leaves by itself, as it comes. */
  begin(head: string, { kind, bytes }: Framing): void {
    this.#text = head
    this.#isHeld = true
    this.#isChunked = kind === 'chunked'
    this.#left = kind === 'length' ? bytes : 0
    if (kind === 'none' || this.#hearsLastWords) return
    this.#hearsLastWords = true
    hearLastWords(this.#socket)
  }

  /** A piece of the body, which may no longer change. False when that is more than was announced. */
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

  /** The end of the body; flat `trailers` pass behind chunks alone. False when less came than was announced. */
  end(trailers: readonly string[]): boolean {
    if (this.#left > 0) return false
    if (this.#isChunked) this.#text += lastChunk(trailers)
    this.flush()
    return true
  }

  /** Sends what has gathered. */
  flush(): void {
    this.#isHeld = false
    if (this.#text === '') return
    const text = this.#text
    this.#text = ''
    this.#socket.write(text, 'latin1')
  }

  /** True while the other end has yet to take what was sent; the socket's `drain` follows. */
  get blocked(): boolean {
    return this.#socket.writableNeedDrain
  }

  /** Thousands of pieces may have come at once: a write for each would hold up everybody else. */
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
