/**
 * Passes what the client of a WebSocket sends on to the upstream, message by message: each has to be admitted first. While
 * one is not, the client is not read.
 */
import type { Socket } from 'node:net'
import { CLOSING_MS } from '../http1/lingering-close.js'
import type { Admission, MessageGate } from '../verdict.js'
import { type Found, MessageFinder } from './message-finder.js'

/** How long a message waits for room before the WebSocket is closed. */
const HOLD_MS = 1000
/** Messages that are asked about at a time. */
const AT_ONCE = 128
/** After so many in one read, the next read is left to a later turn. */
const MANY = 256
/** A wait that a store understates must not become a busy loop. */
const SHORTEST_WAIT_MS = 5

const NOTHING: Buffer = Buffer.alloc(0)

/** Close statuses (RFC 6455 section 7.4.1, and the IANA registry). */
const PROTOCOL_ERROR = 1002
const POLICY_VIOLATION = 1008
const TRY_AGAIN_LATER = 1013

export class CountedMessages {
  readonly #gate: MessageGate
  readonly #client: Socket
  readonly #upstream: Socket
  readonly #onRefused: (status: number, reason: string) => void
  readonly #finder = new MessageFinder()
  readonly #onData = (bytes: Buffer): void => this.#take(bytes)
  readonly #onDrain = (): void => this.#readOn()
  /** The beginning of a header whose rest has not come yet; it is passed on with that. */
  #carried = NOTHING
  /** What the client has sent last, and what was found in it. */
  #bytes = NOTHING
  #found: Found = { starts: [], end: 0 }
  /** How many of the messages found in it are admitted. */
  #admitted = 0
  /** Up to where it was passed on. */
  #passed = 0
  /** True while messages wait for an answer, or for room. */
  #isHeld = false
  /** Until when the message at the front waits for room, by `performance.now()`; undefined if it does not. */
  #until: number | undefined
  #timer: NodeJS.Timeout | undefined
  #ending: NodeJS.Timeout | undefined
  /** There may be room since it was asked. */
  #isWoken = false
  #isStopped = false
  #hasEnded = false

  /** @param onRefused called once, if a message is refused or a frame is malformed. Nothing is read after that. */
  constructor(
    gate: MessageGate,
    client: Socket,
    upstream: Socket,
    onRefused: (status: number, reason: string) => void,
  ) {
    this.#gate = gate
    this.#client = client
    this.#upstream = upstream
    this.#onRefused = onRefused
    gate.onTurn = () => this.#tryNow()
    client.on('data', this.#onData).on('end', () => this.#end())
    upstream.on('drain', this.#onDrain)
  }

  /** Passes nothing on any more. */
  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
    clearTimeout(this.#ending)
    this.#gate.leave()
    this.#client.off('data', this.#onData)
    this.#upstream.off('drain', this.#onDrain)
  }

  #take(bytes: Buffer): void {
    this.#bytes = bytes
    this.#found = this.#finder.find(bytes)
    this.#admitted = 0
    this.#passed = -this.#carried.length
    this.#isHeld = true
    // The rest of a message that is admitted, and control frames, wait for nobody.
    this.#pass(this.#found.starts[0] ?? this.#found.end)
    this.#goOn()
    if (this.#isHeld) this.#client.pause()
    else if (this.#found.starts.length > MANY) {
      // Others must have their turn: many reads of tiny messages come in one turn of the event loop.
      this.#client.pause()
      setImmediate(() => this.#readOn())
    }
  }

  /** The client sends no more. That may show while messages wait, even if it is not read meanwhile. */
  #end(): void {
    this.#hasEnded = true
    if (this.#isStopped) return
    if (!this.#isHeld) this.#upstream.end()
    // Nobody is left who could be slowed down.
    else this.#ending = setTimeout(() => this.#giveUp(), CLOSING_MS)
  }

  /** The client has left, and what it has sent still waits. */
  #giveUp(): void {
    this.stop()
    this.#upstream.end()
  }

  /** Asks for the messages that are not admitted yet, a part of them at a time. */
  #goOn(): void {
    while (this.#admitted < this.#found.starts.length) {
      const count = Math.min(this.#found.starts.length - this.#admitted, AT_ONCE)
      const isLast = this.#until !== undefined && performance.now() >= this.#until
      const admission = this.#gate.admit(count, isLast)
      if (admission instanceof Promise) {
        void admission.then(late => {
          if (!this.#isStopped && this.#admit(late, count)) this.#goOn()
        })
        return
      }
      if (!this.#admit(admission, count)) return
    }
    this.#complete()
  }

  /** There may be room for the message at the front before its time. */
  #tryNow(): void {
    if (this.#isStopped) return
    this.#isWoken = this.#timer === undefined
    if (this.#isWoken) return
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#goOn()
  }

  /** True if all that were asked about are admitted. */
  #admit({ admitted, waitMs = HOLD_MS }: Admission, count: number): boolean {
    const { starts, end } = this.#found
    this.#admitted += admitted
    if (admitted > 0) {
      this.#until = undefined
      this.#pass(starts[this.#admitted] ?? end)
    }
    if (admitted === count) return true
    const now = performance.now()
    this.#until ??= now + HOLD_MS
    const leftMs = this.#until - now
    if (leftMs <= 0) {
      if (this.#gate.refuse() === 'limited') this.#refuse(POLICY_VIOLATION, 'too many messages')
      else this.#refuse(TRY_AGAIN_LATER, 'messages cannot be counted')
    } else {
      const ms = this.#isWoken ? 0 : waitMs
      this.#isWoken = false
      this.#timer = setTimeout(() => this.#tryNow(), Math.min(leftMs, Math.max(ms, SHORTEST_WAIT_MS)))
    }
    return false
  }

  /** Everything that has come was admitted. */
  #complete(): void {
    const { end, fault } = this.#found
    this.#pass(end)
    if (fault !== undefined) {
      this.#refuse(PROTOCOL_ERROR, fault)
      return
    }
    // Copied, because a few bytes would keep alive all that was read with them.
    const rest = end < 0 ? this.#bytes : this.#bytes.subarray(end)
    this.#carried = rest.length === 0 ? NOTHING : Buffer.concat(end < 0 ? [this.#carried, rest] : [rest])
    this.#bytes = NOTHING
    this.#isHeld = false
    if (this.#hasEnded) this.#upstream.end()
    else this.#readOn()
  }

  #pass(to: number): void {
    // An upstream that has ended its side is about to be closed.
    if (to <= this.#passed || !this.#upstream.writable) return
    if (this.#passed < 0) this.#upstream.write(this.#carried)
    this.#upstream.write(this.#bytes.subarray(Math.max(this.#passed, 0), to))
    this.#passed = to
  }

  /** Reads on, as soon as nothing is held and the upstream takes more. */
  #readOn(): void {
    if (this.#isHeld || this.#isStopped) return
    if (this.#upstream.writableNeedDrain) this.#client.pause()
    else this.#client.resume()
  }

  #refuse(status: number, reason: string): void {
    this.stop()
    this.#onRefused(status, reason)
  }
}
