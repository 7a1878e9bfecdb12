/** Reads the frames of a connection (RFC 9113 sections 3.4 and 4.1). */
import { ConnectionError } from './errors.js'
import {
  DATA,
  FRAME_HEAD_BYTES,
  FRAME_SIZE_ERROR,
  MAX_31_BITS,
  MAX_PAYLOAD,
  PADDED,
  PREFACE,
  PROTOCOL_ERROR,
} from './protocol.js'

export interface FrameSink {
  /** A whole frame, except DATA. Its payload is in `bytes` from `at` to `end`, and valid only during this call. */
  onFrame(type: number, flags: number, stream: number, bytes: Buffer, at: number, end: number): void
  /** A DATA frame begins: `length` bytes of flow control, of which `content` bytes are content. */
  onData(flags: number, stream: number, length: number, content: number): void
  /** A piece of its content, which may be kept. */
  onContent(bytes: Buffer): void
  /** The DATA frame is complete. */
  onDataEnd(): void
}

/** The first allocation for a frame that arrives in parts: its head promises more than may ever come. */
const FIRST_GATHERED = 1024

/**
 * Hands over each frame as soon as all of it has arrived, without a copy if it came in one read. Of a DATA frame each
 * piece is handed over as it arrives.
 */
export class FrameReader {
  readonly #sink: FrameSink
  /** Bytes of the preface that have yet to arrive. */
  #prefaceLeft: number
  /** The beginning of a frame whose rest has yet to arrive. */
  #part: Buffer | undefined
  #partLength = 0
  /** Bytes of the current DATA frame that have yet to arrive. */
  #contentLeft = 0
  #paddingLeft = 0
  #inData = false
  #stopped = false

  /** @param hasPreface whether the frames come behind a client's preface */
  constructor(sink: FrameSink, hasPreface: boolean) {
    this.#sink = sink
    this.#prefaceLeft = hasPreface ? PREFACE.length : 0
  }

  /** True while a frame other than DATA has arrived in part. */
  get isWithinFrame(): boolean {
    return this.#partLength > 0
  }

  /** From now on nothing is read. */
  stop(): void {
    this.#stopped = true
    this.#part = undefined
  }

  /** Takes the bytes of one read. @throws {ConnectionError} */
  push(bytes: Buffer): void {
    let at = this.#prefaceLeft > 0 ? this.#readPreface(bytes) : 0
    while (at < bytes.length && !this.#stopped) {
      if (this.#inData) at = this.#continueData(bytes, at)
      else if (this.#partLength > 0) at = this.#gather(bytes, at)
      else at = this.#begin(bytes, at)
    }
  }

  #readPreface(bytes: Buffer): number {
    let at = 0
    while (at < bytes.length && this.#prefaceLeft > 0) {
      const expected = PREFACE[PREFACE.length - this.#prefaceLeft--]
      if (bytes[at++] !== expected) throw new ConnectionError(PROTOCOL_ERROR, 'no preface')
    }
    return at
  }

  #begin(bytes: Buffer, at: number): number {
    const have = bytes.length - at
    const needed = neededBytes(bytes, at, have)
    if (have >= needed) return this.#take(bytes, at, needed)
    this.#part = Buffer.allocUnsafe(Math.min(needed, Math.max(have, FIRST_GATHERED)))
    this.#partLength = bytes.copy(this.#part, 0, at)
    return bytes.length
  }

  #gather(bytes: Buffer, at: number): number {
    const part = this.#part as Buffer
    const needed = neededBytes(part, 0, this.#partLength)
    const missing = Math.min(needed - this.#partLength, bytes.length - at)
    const whole = grown(part, this.#partLength, this.#partLength + missing, needed)
    this.#part = whole
    bytes.copy(whole, this.#partLength, at, at + missing)
    this.#partLength += missing
    // More may be needed than was known before the frame's head was complete.
    if (this.#partLength === neededBytes(whole, 0, this.#partLength)) {
      this.#part = undefined
      this.#partLength = 0
      this.#take(whole, 0, needed)
    }
    return at + missing
  }

  /** Handles a frame, or the head of a DATA frame, of `length` bytes; returns its end. */
  #take(bytes: Buffer, at: number, length: number): number {
    const end = at + length
    const type = bytes[at + 3] as number
    const flags = bytes[at + 4] as number
    const stream = uint32At(bytes, at + 5) & MAX_31_BITS
    if (type !== DATA) this.#sink.onFrame(type, flags, stream, bytes, at + FRAME_HEAD_BYTES, end)
    else this.#beginData(flags, stream, payloadLength(bytes, at), bytes[at + FRAME_HEAD_BYTES] as number)
    return end
  }

  #beginData(flags: number, stream: number, length: number, firstByte: number): void {
    const isPadded = (flags & PADDED) !== 0
    if (isPadded && firstByte >= length) throw new ConnectionError(PROTOCOL_ERROR, 'too much padding')
    this.#paddingLeft = isPadded ? firstByte : 0
    this.#contentLeft = isPadded ? length - 1 - firstByte : length
    this.#inData = true
    this.#sink.onData(flags, stream, length, this.#contentLeft)
    this.#endData()
  }

  #continueData(bytes: Buffer, at: number): number {
    const content = Math.min(this.#contentLeft, bytes.length - at)
    if (content > 0) {
      this.#contentLeft -= content
      this.#sink.onContent(bytes.subarray(at, at + content))
    }
    const padding = Math.min(this.#paddingLeft, bytes.length - at - content)
    this.#paddingLeft -= padding
    this.#endData()
    return at + content + padding
  }

  #endData(): void {
    if (this.#contentLeft > 0 || this.#paddingLeft > 0) return
    this.#inData = false
    this.#sink.onDataEnd()
  }
}

/** How many bytes, of which there are `have`, are needed to go on with the frame at `at`. */
function neededBytes(bytes: Buffer, at: number, have: number): number {
  if (have < FRAME_HEAD_BYTES) return FRAME_HEAD_BYTES
  const length = payloadLength(bytes, at)
  if (length > MAX_PAYLOAD) throw new ConnectionError(FRAME_SIZE_ERROR, `a frame of ${length} bytes`)
  if (bytes[at + 3] !== DATA) return FRAME_HEAD_BYTES + length
  const isPadded = ((bytes[at + 4] as number) & PADDED) !== 0
  if (isPadded && length === 0) throw new ConnectionError(FRAME_SIZE_ERROR, 'no length of the padding')
  return isPadded ? FRAME_HEAD_BYTES + 1 : FRAME_HEAD_BYTES
}

function payloadLength(bytes: Buffer, at: number): number {
  return ((bytes[at] as number) << 16) | ((bytes[at + 1] as number) << 8) | (bytes[at + 2] as number)
}

/** `part`, or a copy of its first `length` bytes with room for `wanted`; never larger than `most`. */
function grown(part: Buffer, length: number, wanted: number, most: number): Buffer {
  if (wanted <= part.length) return part
  const larger = Buffer.allocUnsafe(Math.min(most, Math.max(wanted, 2 * part.length)))
  part.copy(larger, 0, 0, length)
  return larger
}

export function uint32At(bytes: Buffer, at: number): number {
  const high = ((bytes[at] as number) << 24) | ((bytes[at + 1] as number) << 16)
  return (high | ((bytes[at + 2] as number) << 8) | (bytes[at + 3] as number)) >>> 0
}
