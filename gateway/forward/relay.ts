import type { OutgoingResponse } from '../message.js'
import { passedTrailers } from './trailers.js'

/** Small pieces are gathered up to this size: thousands may come at once, and a write each would hold up everybody else. */
const GATHERED = 4 * 1024

/** The client's head: flat `fields`, as `writeHead` takes them. */
export interface AnswerHead {
  readonly status: number
  readonly reason: string
  readonly fields: readonly string[]
}

/** An upstream's answer on its way to the client, at the pace at which that reads. */
export class Relay {
  /** Its head is written: it can no longer be another answer. */
  begun = false
  readonly #res: OutgoingResponse
  readonly #head: AnswerHead
  readonly #idleMs: number
  /** What came last is kept until it is known whether the end comes with it: then both leave together. */
  #kept: Buffer | undefined
  /** Small pieces behind it. */
  #behind: Buffer[] = []
  /** Bytes of all that is kept. */
  #size = 0

  /** A client that reads nothing for `idleMs` while something waits for it will be cut. */
  constructor(res: OutgoingResponse, head: AnswerHead, idleMs: number) {
    this.#res = res
    this.#head = head
    this.#idleMs = idleMs
  }

  /** False when the client must read first. */
  write(chunk: Buffer): boolean {
    const size = this.#size + chunk.length
    if (this.#kept !== undefined && size <= GATHERED) {
      this.#behind.push(chunk)
      this.#size = size
      return true
    }
    const before = this.#takeKept()
    this.#kept = chunk
    this.#size = chunk.length
    return before === undefined || this.#send(before)
  }

  /** Sends what has come so far. False when the client must read first. */
  flush(): boolean {
    const kept = this.#takeKept()
    if (kept !== undefined) return this.#send(kept)
    this.#begin()
    this.#res.flush()
    return true
  }

  onDrain(): void {
    this.#res.limitReader(0)
  }

  end(trailers: readonly string[]): void {
    this.#begin()
    this.#res.end(this.#takeKept(), passedTrailers(trailers))
    if (!this.#res.closed) this.#res.limitReader(this.#idleMs)
  }

  cut(): void {
    this.#res.cut()
  }

  #takeKept(): Buffer | undefined {
    const kept = this.#kept
    this.#kept = undefined
    if (kept === undefined || this.#behind.length === 0) return kept
    const pieces = this.#behind
    this.#behind = []
    return Buffer.concat([kept, ...pieces], this.#size)
  }

  #begin(): void {
    if (this.begun) return
    this.begun = true
    const { status, reason, fields } = this.#head
    this.#res.writeHead(status, reason, fields)
  }

  #send(chunk: Buffer): boolean {
    this.#begin()
    if (this.#res.write(chunk)) return true
    this.#res.limitReader(this.#idleMs)
    return false
  }
}
