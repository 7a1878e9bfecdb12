/** Gathers the header block of a HEADERS frame and its CONTINUATION frames (RFC 9113 sections 4.3, 6.2 and 6.10). */
import { ConnectionError, floodError } from './errors.js'
import { uint32At } from './frame-reader.js'
import { MOST_BLOCK_BYTES } from './hpack/block-reader.js'
import {
  END_HEADERS,
  END_STREAM,
  FRAME_SIZE_ERROR,
  HAS_PRIORITY,
  MAX_31_BITS,
  PADDED,
  PROTOCOL_ERROR,
} from './protocol.js'

/** A head takes one frame, or very few: beyond that are floods (CVE-2024-27316). */
export const MOST_CONTINUATIONS = 8

export interface HeaderBlock {
  readonly stream: number
  readonly endsStream: boolean
  /** It names itself as the stream that it depends on (RFC 7540 section 5.3.1). */
  readonly dependsOnItself: boolean
  /** Valid only until the next frame is read. */
  readonly bytes: Buffer
}

export class HeaderBlocks {
  #begun: HeaderBlock | undefined
  readonly #parts: Buffer[] = []
  #length = 0

  /** True while CONTINUATION frames must follow, and nothing else. */
  get isOpen(): boolean {
    return this.#begun !== undefined
  }

  /** Takes the payload of a HEADERS frame; returns the block if it is whole. @throws {ConnectionError} */
  begin(flags: number, stream: number, bytes: Buffer, from: number, to: number): HeaderBlock | undefined {
    let at = from
    let end = to
    if ((flags & PADDED) !== 0) {
      if (at === end) throw new ConnectionError(FRAME_SIZE_ERROR, 'no length of the padding')
      end -= bytes[at] as number
      at += 1
      if (end < at) throw new ConnectionError(PROTOCOL_ERROR, 'too much padding')
    }
    let dependsOnItself = false
    if ((flags & HAS_PRIORITY) !== 0) {
      if (end - at < 5) throw new ConnectionError(FRAME_SIZE_ERROR, 'a priority cut short')
      dependsOnItself = (uint32At(bytes, at) & MAX_31_BITS) === stream
      at += 5
    }
    const endsStream = (flags & END_STREAM) !== 0
    const block = { stream, endsStream, dependsOnItself, bytes: bytes.subarray(at, end) }
    if ((flags & END_HEADERS) !== 0) return block
    this.#begun = block
    this.#add(block.bytes)
    return undefined
  }

  /** Takes the payload of a CONTINUATION frame; returns the block if it is whole. @throws {ConnectionError} */
  continue(flags: number, stream: number, payload: Buffer): HeaderBlock | undefined {
    const begun = this.#begun
    if (begun?.stream !== stream) throw new ConnectionError(PROTOCOL_ERROR, 'CONTINUATION out of place')
    this.#add(payload)
    if ((flags & END_HEADERS) !== 0) {
      const bytes = Buffer.concat(this.#parts, this.#length)
      this.#begun = undefined
      this.#parts.length = 0
      this.#length = 0
      return { ...begun, bytes }
    }
    if (this.#parts.length > MOST_CONTINUATIONS) throw floodError('continuations')
    return undefined
  }

  /** Copies, since the bytes of a read are not kept. */
  #add(payload: Buffer): void {
    this.#length += payload.length
    if (this.#length > MOST_BLOCK_BYTES) throw floodError('continuations')
    this.#parts.push(Buffer.from(payload))
  }
}
