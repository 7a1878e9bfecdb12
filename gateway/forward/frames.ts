/** Tracks WebSocket frames as they pass, since a frame of ours may only go between two of them (RFC 6455 section 5). */
import { randomBytes } from 'node:crypto'

const LONG = 126
const LONGER = 127
export const MASKED = 0x80

const CLOSE = 0x88

/** A final Close frame with status 1001, "going away". */
export const GOING_AWAY = closeFrame(1001)

/** A Close frame to a client. `reason` is ASCII of at most 123 characters. */
export function closeFrame(status: number, reason = ''): Buffer {
  const payload = Buffer.from(`  ${reason}`, 'latin1')
  payload.writeUInt16BE(status)
  return Buffer.concat([Buffer.from([CLOSE, payload.length]), payload])
}

/** A Close frame with status 1001 to an upstream, which gets masked frames only (RFC 6455 section 5.3). */
export function clientGoingAway(): Buffer {
  const mask = randomBytes(4)
  const payload = GOING_AWAY.subarray(2).map((byte, i) => byte ^ (mask[i] as number))
  return Buffer.concat([Buffer.from([CLOSE, MASKED | payload.length]), mask, payload])
}

export class FrameFollower {
  /** Header bytes of the current frame received so far. */
  readonly #head: number[] = []
  /** Bytes of its masking key and payload still to come. */
  #left = 0

  get betweenFrames(): boolean {
    return this.#left === 0 && this.#head.length === 0
  }

  /** Follows the next bytes of the stream. */
  pass(bytes: Buffer): void {
    let at = 0
    while (at < bytes.length) {
      if (this.#left > 0) {
        const skipped = Math.min(this.#left, bytes.length - at)
        this.#left -= skipped
        at += skipped
      } else {
        this.#head.push(bytes[at++] as number)
        if (this.#head.length !== sizeOf(this.#head)) continue
        this.#left = payloadOf(this.#head)
        this.#head.length = 0
      }
    }
  }
}

/** Size of a frame header without the masking key; undefined until its second byte is known. */
export function sizeOf([, second]: readonly number[]): number | undefined {
  if (second === undefined) return undefined
  const length = second & 0x7f
  return length === LONGER ? 10 : length === LONG ? 4 : 2
}

/** Bytes that follow the header: masking key and payload. */
export function payloadOf(head: readonly number[]): number {
  const second = head[1] as number
  return lengthOf(head) + (second & MASKED ? 4 : 0)
}

/** Length of the payload by the whole header; inexact above 2^53. */
export function lengthOf(head: readonly number[]): number {
  const extended = head.slice(2).reduce((sum, byte) => sum * 256 + byte, 0)
  return head.length === 2 ? (head[1] as number) & 0x7f : extended
}
