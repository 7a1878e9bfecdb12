/**
 * Finds where messages begin in what the client of a WebSocket sends (RFC 6455 section 5). Only the headers of frames are
 * read: what is in them, and whether it is compressed, does not matter.
 */
import { lengthOf, MASKED, payloadOf, sizeOf } from './frames.js'

const FINAL = 0x80
const CONTINUATION = 0x0
const BINARY = 0x2
const CONTROL = 0x8
const PONG = 0xa
const LONGEST_CONTROL = 125

/** Places are indices into the bytes of one call; negative ones lie in the bytes of the calls before. */
export interface Found {
  /** Where messages begin. */
  readonly starts: readonly number[]
  /** Up to here, every frame has its whole header. */
  readonly end: number
  /** Why what begins at `end` is no frame that a client may send. Nothing after it is looked at. */
  readonly fault?: string | undefined
}

export class MessageFinder {
  /** Header bytes of the current frame received so far. */
  readonly #head: number[] = []
  /** Bytes of its masking key and payload still to come. */
  #left = 0
  /** True between the first and the last fragment of a message. */
  #inMessage = false

  /** Looks at the next bytes of the stream. */
  find(bytes: Buffer): Found {
    const starts: number[] = []
    let begin = -this.#head.length
    let at = 0
    while (at < bytes.length) {
      if (this.#left > 0) {
        const skipped = Math.min(this.#left, bytes.length - at)
        this.#left -= skipped
        at += skipped
        continue
      }
      if (this.#head.length === 0) begin = at
      this.#head.push(bytes[at++] as number)
      if (this.#head.length !== sizeOf(this.#head)) continue
      const fault = faultOf(this.#head, this.#inMessage)
      if (fault !== undefined) return { starts, end: begin, fault }
      if (this.#passes(this.#head[0] as number)) starts.push(begin)
      this.#left = payloadOf(this.#head)
      this.#head.length = 0
    }
    return { starts, end: this.#head.length > 0 ? begin : bytes.length }
  }

  /** True if the frame begins a message. */
  #passes(first: number): boolean {
    const opcode = first & 0x0f
    if (opcode >= CONTROL) return false
    this.#inMessage = (first & FINAL) === 0
    return opcode !== CONTINUATION
  }
}

/**
 * Why a frame with this header is malformed, in a few words; undefined if it is not. The bits for extensions are left
 * to client and upstream, who agree on them.
 */
function faultOf(head: readonly number[], inMessage: boolean): string | undefined {
  const [first, second] = head as [number, number]
  const opcode = first & 0x0f
  if ((second & MASKED) === 0) return 'a frame is not masked'
  if (opcode >= CONTROL) {
    if (opcode > PONG) return 'an unknown opcode'
    if ((first & FINAL) === 0) return 'a control frame is fragmented'
    return head.length > 2 || lengthOf(head) > LONGEST_CONTROL ? 'a control frame is too long' : undefined
  }
  if (opcode > BINARY) return 'an unknown opcode'
  if (opcode === CONTINUATION && !inMessage) return 'a continuation of no message'
  if (opcode !== CONTINUATION && inMessage) return 'a message begins within another'
  return hasWrongLength(head) ? 'a wrong length' : undefined
}

/** A length has to be written in as few bytes as possible. Longer ones than can be counted are sent by nobody. */
function hasWrongLength(head: readonly number[]): boolean {
  const length = lengthOf(head)
  if (head.length === 4) return length < 126
  return head.length === 10 && (length < 65_536 || length > Number.MAX_SAFE_INTEGER)
}
