import type { OutgoingResponse } from '../message.js'

/** Small pieces are collected up to this size: thousands may come at once, and a write for each would delay others. */
const GATHERED = 4 * 1024

/** The head for the client, with flat `fields` as `writeHead` takes them. */
export interface AnswerHead {
  readonly status: number
  readonly reason: string
  readonly fields: readonly string[]
}

/** Passes an upstream's response on to the client, as fast as the client reads. */
export class Relay {
  /** The head has been written, so no other response can be sent. */
  begun = false
  /** Since when the client must read before more is sent, in ms of `performance.now()`; undefined while it need not. */
  waitsSince: number | undefined
  readonly #res: OutgoingResponse
  readonly #head: AnswerHead
  readonly #idleMs: number
  /** The last piece is held back until more comes or the end, so that it can be sent together with the end. */
  #gathered: Buffer | undefined
  /** Small pieces that follow `#kept`. */
  #behind: Buffer[] = []
  /** Bytes held back in total. */
  #size = 0

  /** A client that reads nothing for `idleMs` while there is data for it is cut off. */
  constructor(res: OutgoingResponse, head: AnswerHead, idleMs: number) {
    this.#res = res
    this.#head = head
    this.#idleMs = idleMs
  }

  /** False when the client must read first. */
  write(chunk: Buffer): boolean {
    const size = this.#size + chunk.length
    if (this.#gathered !== undefined && size <= GATHERED) {
      this.#behind.push(chunk)
      this.#size = size
      return true
    }
    const before = this.#takeGathered()
    this.#gathered = chunk
    this.#size = chunk.length
    return before === undefined || this.#send(before)
  }

  /** Sends everything received so far. False when the client must read first. */
  flush(): boolean {
    const gathered = this.#takeGathered()
    if (gathered !== undefined) return this.#send(gathered)
    this.#begin()
    this.#res.flush()
    return true
  }

  onDrain(): void {
    this.waitsSince = undefined
    this.#res.limitReader(0)
  }

  /** @param trailers the flat list of what the client gets behind the body */
  end(trailers: readonly string[]): void {
    this.#begin()
    this.#res.end(this.#takeGathered(), trailers)
    if (!this.#res.closed) this.#res.limitReader(this.#idleMs)
  }

  cut(): void {
    this.#res.cut()
  }

  #takeGathered(): Buffer | undefined {
    const gathered = this.#gathered
    this.#gathered = undefined
    if (gathered === undefined || this.#behind.length === 0) return gathered
    const pieces = this.#behind
    this.#behind = []
    return Buffer.concat([gathered, ...pieces], this.#size)
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
    this.waitsSince ??= performance.now()
    this.#res.limitReader(this.#idleMs)
    return false
  }
}
