/** The integers and strings of a header block (RFC 7541 section 5). */
import { CompressionError } from './compression-error.js'
import { decodeHuffman } from './huffman.js'

/** The largest header block that is read, in bytes; a longer one must be refused before. */
export const MOST_BLOCK_BYTES = 64 * 1024
/** Shortest code: 5 bits a byte. Shared, since each string is copied out at once. */
const decoded = Buffer.allocUnsafeSlow(Math.ceil((MOST_BLOCK_BYTES * 8) / 5))
/** Up to here a loop is faster than the call of a native function. */
const SHORT = 12
/** Integers of up to four bytes after the first: 28 bits, far more than any valid length or index. */
const MOST_SHIFT = 21
const NOTHING = Buffer.alloc(0)

export class BlockReader {
  #bytes: Buffer = NOTHING
  #at = 0
  #end = 0

  begin(block: Buffer): void {
    if (block.length > MOST_BLOCK_BYTES) throw new RangeError(`a block of ${block.length} bytes`)
    this.#bytes = block
    this.#at = 0
    this.#end = block.length
  }

  /** Lets go of the block, whose memory an idle connection would keep. */
  end(): void {
    this.#bytes = NOTHING
    this.#at = 0
    this.#end = 0
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#end
  }

  /** The next byte, which stays; -1 at the end. */
  peek(): number {
    return this.#at < this.#end ? (this.#bytes[this.#at] as number) : -1
  }

  /** @throws {CompressionError} */
  byte(): number {
    if (this.#at >= this.#end) throw new CompressionError('a block that ends early')
    return this.#bytes[this.#at++] as number
  }

  /** The integer that begins with `first`, in its bits of `mask` (RFC 7541 section 5.1). @throws {CompressionError} */
  integer(first: number, mask: number): number {
    let value = first & mask
    if (value < mask) return value
    for (let shift = 0; shift <= MOST_SHIFT; shift += 7) {
      const byte = this.byte()
      value += (byte & 0x7f) << shift
      if (byte < 0x80) return value
    }
    throw new CompressionError('an integer that is too large')
  }

  /** The next string, a character for each byte. @throws {CompressionError} */
  string(): string {
    const first = this.byte()
    const length = this.integer(first, 0x7f)
    const from = this.#at
    const to = from + length
    if (to > this.#end) throw new CompressionError('a string that ends early')
    this.#at = to
    if (first < 0x80) return textOf(this.#bytes, from, to)
    return textOf(decoded, 0, decodeHuffman(this.#bytes, from, to, decoded))
  }
}

function textOf(bytes: Buffer, from: number, to: number): string {
  if (to - from > SHORT) return bytes.toString('latin1', from, to)
  let text = ''
  for (let i = from; i < to; i++) text += String.fromCharCode(bytes[i] as number)
  return text
}
