/** What is sent on a connection: all frames of one turn of the event loop leave in one write. */
import type { Socket } from 'node:net'
import { FRAME_HEAD_BYTES, MAX_PAYLOAD } from './protocol.js'

/** Room for the largest frame. */
const LARGEST_FRAME = FRAME_HEAD_BYTES + MAX_PAYLOAD
/** Four of the largest frames. */
const BUFFER_BYTES = 4 * LARGEST_FRAME
/** Buffers that are kept for reuse, of all connections. */
const MOST_SPARE = 64
/** Full buffers of control frames that wait for a peer that does not read. Others are not written meanwhile. */
const MOST_WAITING = 2

const spare: Buffer[] = []

function takeBuffer(): Buffer {
  return spare.pop() ?? Buffer.allocUnsafeSlow(BUFFER_BYTES)
}

function giveBack(buffer: Buffer): void {
  if (spare.length < MOST_SPARE) spare.push(buffer)
}

/** Outputs with something to write at the end of this turn. */
let due: Output[] = []

function flushAll(): void {
  const all = due
  due = []
  for (const output of all) output.flush()
}

export interface OutputOwner {
  /** A write was completed, so there is room for frames again. */
  onRoom(): void
  /** The peer leaves too many control frames unread. */
  onUnread(): void
}

export class Output {
  readonly #socket: Socket
  readonly #owner: OutputOwner
  /** Takes the next frames; undefined while there are none, so that an idle connection holds no buffer. */
  #filling: Buffer | undefined
  #at = 0
  /** Full buffers, behind the one that is being written. */
  readonly #waiting: Buffer[] = []
  /** Being written, until the operating system has taken it. */
  #inFlight: Buffer | undefined
  /** When the write in flight began, by `performance.now()`. */
  #writtenAt = 0
  #isDue = false
  #isOver = false

  constructor(socket: Socket, owner: OutputOwner) {
    this.#socket = socket
    this.#owner = owner
  }

  /** True while frames of streams must wait: the peer, or the network, is slower than what is sent. */
  get isFull(): boolean {
    if (this.#inFlight === undefined) return false
    return (
      this.#waiting.length > 0 || (this.#filling !== undefined && this.#at + LARGEST_FRAME > BUFFER_BYTES)
    )
  }

  get isEmpty(): boolean {
    return this.#inFlight === undefined && this.#at === 0
  }

  /** Since when the peer has taken nothing, although something waits for it; undefined if nothing does. */
  get stalledSince(): number | undefined {
    return this.#inFlight === undefined ? undefined : this.#writtenAt
  }

  /** Writes what comes before the first frame. */
  preface(bytes: Buffer): void {
    this.#makeRoom(bytes.length)
    this.bytes(bytes, 0, bytes.length)
    this.#plan()
  }

  /** Writes the head of a frame with `length` bytes of payload, which the caller must write next. */
  frame(length: number, type: number, flags: number, stream: number): void {
    // Behind the last bytes nothing is sent.
    if (this.#isOver) this.#at = 0
    this.#makeRoom(FRAME_HEAD_BYTES + length)
    const to = this.#filling as Buffer
    const at = this.#at
    to[at] = length >>> 16
    to[at + 1] = length >>> 8
    to[at + 2] = length
    to[at + 3] = type
    to[at + 4] = flags
    this.#at = at + 5
    this.uint32(stream)
    this.#plan()
  }

  uint16(value: number): void {
    const to = this.#filling as Buffer
    to[this.#at] = value >>> 8
    to[this.#at + 1] = value
    this.#at += 2
  }

  uint32(value: number): void {
    this.uint16(value >>> 16)
    this.uint16(value & 0xffff)
  }

  /** Copies `bytes` from `at` to `end`. */
  bytes(bytes: Buffer, at: number, end: number): void {
    this.#at += bytes.copy(this.#filling as Buffer, this.#at, at, end)
  }

  /** Writes what there is, unless a write is in progress. */
  flush(): void {
    this.#isDue = false
    if (this.#inFlight !== undefined || this.#isOver) return
    const next = this.#waiting.shift()
    if (next !== undefined) this.#write(next, next.length)
    else if (this.#at > 0) {
      const buffer = this.#filling as Buffer
      const length = this.#at
      this.#filling = undefined
      this.#at = 0
      this.#write(buffer, length)
    }
  }

  /** Writes everything, behind what is being written: the last bytes of the connection. */
  finish(): void {
    if (this.#isOver) return
    for (const buffer of this.#waiting.splice(0)) this.#socket.write(buffer)
    if (this.#at > 0) this.#socket.write((this.#filling as Buffer).subarray(0, this.#at))
    this.#filling = undefined
    this.#at = 0
    this.#isOver = true
  }

  /** The connection is closed. */
  close(): void {
    this.#isOver = true
    this.#waiting.length = 0
    if (this.#filling !== undefined) giveBack(this.#filling)
    this.#filling = undefined
    this.#at = 0
  }

  #makeRoom(bytes: number): void {
    if (this.#isTooFullFor(bytes)) this.flush()
    // It may have written a buffer that waited, or none.
    if (this.#isTooFullFor(bytes)) {
      // Only control frames come here: those of streams wait while this is full.
      this.#waiting.push((this.#filling as Buffer).subarray(0, this.#at))
      this.#filling = undefined
      this.#at = 0
      if (this.#waiting.length > MOST_WAITING) this.#owner.onUnread()
    }
    this.#filling ??= takeBuffer()
  }

  #isTooFullFor(bytes: number): boolean {
    return this.#filling !== undefined && this.#at + bytes > BUFFER_BYTES
  }

  #plan(): void {
    if (this.#isDue || this.#isOver) return
    this.#isDue = true
    if (due.length === 0) setImmediate(flushAll)
    due.push(this)
  }

  #write(buffer: Buffer, length: number): void {
    this.#inFlight = buffer
    this.#writtenAt = performance.now()
    this.#socket.write(length === buffer.length ? buffer : buffer.subarray(0, length), this.#onWritten)
  }

  readonly #onWritten = (error?: Error | null): void => {
    const buffer = this.#inFlight
    this.#inFlight = undefined
    if (error || this.#isOver || buffer === undefined) return
    if (buffer.length === BUFFER_BYTES) giveBack(buffer)
    // What waits goes first: there is room only behind it.
    this.flush()
    this.#owner.onRoom()
    this.flush()
  }
}
