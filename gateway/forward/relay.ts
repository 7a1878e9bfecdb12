import { awaitReader, cutAnswer } from './reader.js'
import type { Exchange } from './transport.js'

const NOTHING = Buffer.alloc(0)
const REASON = /^[\t\x20-\x7e]*$/

/** An upstream's answer on its way to the client, at the pace at which that reads. */
export class Relay {
  /** True when the answer is over with its head, whatever its fields say (RFC 9112 section 6.3). */
  readonly bodyless: boolean
  readonly #exchange: Exchange
  readonly #idleMs: number
  #wrote = false

  /** Sends the head, with its flat `fields`. A client that reads nothing for `idleMs` will be cut. */
  constructor(exchange: Exchange, idleMs: number, status: number, reason: string, fields: string[]) {
    const { req, res } = exchange
    this.#exchange = exchange
    this.#idleMs = idleMs
    this.bodyless = status === 204 || status === 304 || req.method === 'HEAD'
    res.writeHead(status, REASON.test(reason) ? reason : undefined, fields)
    process.nextTick(flushHead, this)
  }

  /** False when the client must read first; `resume` is called when it has. */
  write(chunk: Buffer, resume: (() => void) | undefined): boolean {
    this.#wrote = true
    if (this.#exchange.res.write(chunk)) return true
    awaitReader(this.#exchange, 'drain', this.#idleMs, resume)
    return false
  }

  end(): void {
    const { res } = this.#exchange
    this.#wrote = true
    res.end()
    if (res.writableLength > 0) awaitReader(this.#exchange, 'finish', this.#idleMs)
  }

  cut(): void {
    cutAnswer(this.#exchange)
  }

  /** The head must not wait for a body that is slow to come. An empty write, unlike flushHeaders, keeps bytes. */
  flushHead(): void {
    const { res } = this.#exchange
    if (!this.#wrote && !res.destroyed) res.write(NOTHING)
  }
}

function flushHead(relay: Relay): void {
  relay.flushHead()
}
