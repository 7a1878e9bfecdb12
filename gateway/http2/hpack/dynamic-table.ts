/** The fields that a peer's latest blocks have added, the newest first (RFC 7541 sections 2.3.2 and 4). */
import { CompressionError } from './compression-error.js'
import type { HeaderField } from './header-field.js'

/** The protocol's default, so nothing has to be negotiated (RFC 9113 section 6.5.2). */
export const MOST_TABLE_BYTES = 4096
/** An entry counts 32 bytes at least. A power of two, so that a place in the ring is found by a mask. */
const MOST_ENTRIES = MOST_TABLE_BYTES / 32

export class DynamicTable {
  readonly #ring = new Array<HeaderField | undefined>(MOST_ENTRIES)
  #inserted = 0
  #count = 0
  #size = 0
  #capacity = MOST_TABLE_BYTES

  /** @param index from 0, the newest entry. @throws {CompressionError} */
  at(index: number): HeaderField {
    if (index >= this.#count) throw new CompressionError('an index beyond the table')
    return this.#ring[this.#place(index)] as HeaderField
  }

  /** A field larger than the table empties it (RFC 7541 section 4.4). */
  insert(field: HeaderField): void {
    this.#evictDownTo(this.#capacity - field.size)
    if (field.size > this.#capacity) return
    this.#ring[this.#inserted % MOST_ENTRIES] = field
    this.#inserted = (this.#inserted + 1) % MOST_ENTRIES
    this.#count += 1
    this.#size += field.size
  }

  /** The peer's encoder uses less of the table from now on, or all of it again. @throws {CompressionError} */
  resize(capacity: number): void {
    if (capacity > MOST_TABLE_BYTES) throw new CompressionError('a larger table than was offered')
    this.#capacity = capacity
    this.#evictDownTo(capacity)
  }

  #evictDownTo(size: number): void {
    while (this.#count > 0 && this.#size > size) {
      const oldest = this.#place(this.#count - 1)
      this.#size -= this.#ring[oldest]?.size ?? 0
      this.#ring[oldest] = undefined
      this.#count -= 1
    }
  }

  #place(index: number): number {
    return (this.#inserted - 1 - index + 2 * MOST_ENTRIES) % MOST_ENTRIES
  }
}
