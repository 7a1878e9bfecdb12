/** Reads the beginning of a body that is forwarded unchanged. */

import { Prefix } from '../http1/prefix.js'
import type { BodyReader, IncomingBody } from '../message.js'

/** The beginning of a body that is forwarded unchanged. */
export interface Peeked {
  readonly prefix: Buffer
  /** True if neither the limit nor the end of the body was reached in time. */
  readonly isLate: boolean
  /** Yields all of the body. */
  readonly body: IncomingBody
}

/** The memory for bodies of one client that are waited for. */
export interface Memory {
  /** False, and nothing is taken, when there is no more. */
  take(bytes: number): boolean
  giveBack(bytes: number): void
}

/**
 * Waits for the first `limitBytes` of a body, or fewer if it ends, `timeoutMs` pass or the `memory` is used up first.
 * The returned `body` then yields exactly the bytes the client sends, prefix included. Rejects if the client leaves
 * meanwhile.
 */
export function peekBody(
  body: IncomingBody,
  limitBytes: number,
  timeoutMs: number,
  memory: Memory,
): Promise<Peeked> {
  return new Promise((resolve, reject) => {
    let isLate = false
    let taken = 0
    const giveUp = () => {
      isLate = true
      seen.stop()
    }
    const timer = setTimeout(giveUp, timeoutMs)
    const onPiece = (bytes: number) => {
      if (memory.take(bytes)) taken += bytes
      else giveUp()
    }
    const seen = new SeenBody(body, limitBytes, onPiece, prefix => {
      clearTimeout(timer)
      memory.giveBack(taken)
      if (prefix === undefined) reject(new Error('the client left while its body was read'))
      else resolve({ prefix, isLate, body: seen })
    })
    seen.start()
  })
}

/**
 * Begins to read a body that nobody wants yet, up to `limitBytes` and as far as the `memory` allows: over HTTP/1.1 a client
 * that leaves is only noticed when everything before has been read. The returned body yields all of it.
 */
export function readAhead(body: IncomingBody, limitBytes: number, memory: Memory): IncomingBody {
  let taken = 0
  const onPiece = (bytes: number) => {
    if (memory.take(bytes)) taken += bytes
    else seen.stop()
  }
  const seen = new SeenBody(body, limitBytes, onPiece, () => memory.giveBack(taken))
  seen.start()
  return seen
}

/** A body whose first bytes are read before it has a reader. */
class SeenBody implements IncomingBody, BodyReader {
  readonly #source: IncomingBody
  readonly #prefix: Prefix
  /** Called with the size of each piece that is kept while more is waited for. */
  readonly #onPiece: (bytes: number) => void
  /** Called once: with the prefix, or undefined if the client left. */
  readonly #onSeen: (prefix: Buffer | undefined) => void
  #waits = true
  #reader: BodyReader | undefined
  #paused = false
  /** Undefined until the source has ended. */
  #trailers: readonly string[] | undefined
  #aborted = false
  complete = false

  constructor(
    source: IncomingBody,
    limit: number,
    onPiece: (bytes: number) => void,
    onSeen: (prefix: Buffer | undefined) => void,
  ) {
    this.#source = source
    this.#prefix = new Prefix(limit)
    this.#onPiece = onPiece
    this.#onSeen = onSeen
  }

  get length(): number | undefined {
    return this.#source.length
  }

  start(): void {
    this.#source.read(this)
  }

  /** Stops waiting and reports what has arrived. */
  stop(): void {
    if (!this.#waits) return
    this.#waits = false
    this.#source.pause()
    this.#onSeen(this.#prefix.start())
  }

  read(reader: BodyReader): void {
    this.#reader = reader
    this.resume()
  }

  pause(): void {
    this.#paused = true
    this.#source.pause()
  }

  /** Delivers the buffered bytes first, and continues only if the reader still takes more. */
  resume(): void {
    const reader = this.#reader
    this.#paused = false
    if (reader === undefined || this.complete) return
    const seen = this.#prefix.takeAll()
    if (seen.length > 0) reader.onData(seen)
    if (this.#paused) return
    if (this.#aborted) reader.onAbort()
    else if (this.#trailers === undefined) this.#source.resume()
    else {
      this.complete = true
      reader.onEnd(this.#trailers)
    }
  }

  /** Called by the source. */
  onData(chunk: Buffer): void {
    if (this.#reader !== undefined && this.#prefix.isEmpty) this.#reader.onData(chunk)
    else {
      this.#prefix.add(chunk)
      if (this.#prefix.isFull) this.stop()
      else if (this.#waits) this.#onPiece(chunk.length)
    }
  }

  /** Called by the source. */
  onEnd(trailers: readonly string[]): void {
    this.#trailers = trailers
    this.stop()
    if (this.#reader !== undefined && this.#prefix.isEmpty) {
      this.complete = true
      this.#reader.onEnd(trailers)
    }
  }

  /** Called by the source. */
  onAbort(): void {
    this.#aborted = true
    if (this.#waits) {
      this.#waits = false
      this.#onSeen(undefined)
    } else this.#reader?.onAbort()
  }
}

/**
 * Like `peekBody`, but without waiting: the returned body streams on, and `onPrefix` is called once, when `limitBytes`
 * have passed or the body has ended. It is not called if the client leaves before that.
 */
export function tapBody(
  body: IncomingBody,
  limitBytes: number,
  onPrefix: (prefix: Buffer) => void,
): IncomingBody {
  return new TappedBody(body, new Prefix(limitBytes), onPrefix)
}

class TappedBody implements IncomingBody, BodyReader {
  readonly #source: IncomingBody
  readonly #onPrefix: (prefix: Buffer) => void
  #prefix: Prefix | undefined
  #reader: BodyReader | undefined

  constructor(source: IncomingBody, prefix: Prefix, onPrefix: (prefix: Buffer) => void) {
    this.#source = source
    this.#prefix = prefix
    this.#onPrefix = onPrefix
  }

  get length(): number | undefined {
    return this.#source.length
  }

  get complete(): boolean {
    return this.#source.complete
  }

  read(reader: BodyReader): void {
    this.#reader = reader
    this.#source.read(this)
  }

  pause(): void {
    this.#source.pause()
  }

  resume(): void {
    this.#source.resume()
  }

  /** Called by the source. */
  onData(chunk: Buffer): void {
    this.#prefix?.add(chunk)
    if (this.#prefix?.isFull) this.#decide()
    this.#reader?.onData(chunk)
  }

  /** Called by the source. */
  onEnd(trailers: readonly string[]): void {
    this.#decide()
    this.#reader?.onEnd(trailers)
  }

  /** Called by the source. */
  onAbort(): void {
    this.#reader?.onAbort()
  }

  #decide(): void {
    const prefix = this.#prefix
    this.#prefix = undefined
    if (prefix !== undefined) this.#onPrefix(prefix.start())
  }
}
