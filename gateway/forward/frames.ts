/** Tracks WebSocket frames as they pass, since a frame of ours may only go between two of them (RFC 6455 section 5). */

const LONG = 126
const LONGER = 127
const MASKED = 0x80

/** A final Close frame with status 1001, "going away". */
export const GOING_AWAY = Buffer.from([0x88, 2, 0x03, 0xe9])

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
function sizeOf([, second]: readonly number[]): number | undefined {
  if (second === undefined) return undefined
  const length = second & 0x7f
  return length === LONGER ? 10 : length === LONG ? 4 : 2
}

/** Bytes that follow the header: masking key and payload. */
function payloadOf(head: readonly number[]): number {
  const second = head[1] as number
  const extended = head.slice(2).reduce((sum, byte) => sum * 256 + byte, 0)
  return (head.length === 2 ? second & 0x7f : extended) + (second & MASKED ? 4 : 0)
}
