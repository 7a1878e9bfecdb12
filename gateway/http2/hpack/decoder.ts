/** Decodes the header blocks of a connection, in their order (RFC 7541 sections 3 and 6). */
import { BlockReader } from './block-reader.js'
import { CompressionBomb, CompressionError } from './compression-error.js'
import { DynamicTable } from './dynamic-table.js'
import { HeaderField } from './header-field.js'
import { FIRST_DYNAMIC, STATIC_TABLE } from './static-table.js'

/** What of a block is kept. */
export interface BlockLimits {
  readonly fields: number
  /** By `HeaderField.size`. */
  readonly bytes: number
}

export interface DecodedBlock {
  readonly fields: readonly HeaderField[]
  /** False if there were more fields or bytes than the limits allow: those are left out. */
  readonly isWhole: boolean
}

/** Of a block beyond its limits, what is decoded for the table's sake: a few bytes may stand for a table's entry each time. */
const MOST_DECODED_BYTES = 256 * 1024
/** RFC 7541 section 4.2: the smallest of the sizes meanwhile, and the last. */
const MOST_UPDATES = 2

/** First bytes (RFC 7541 section 6). */
const INDEXED = 0x80
const INSERTED = 0x40
const SIZE_UPDATE = 0x20

export class HeaderDecoder {
  readonly #table = new DynamicTable()
  readonly #reader = new BlockReader()

  /** @throws {CompressionError} */
  decode(block: Buffer, limits: BlockLimits): DecodedBlock {
    const reader = this.#reader
    reader.begin(block)
    this.#readSizeUpdates()
    const fields: HeaderField[] = []
    let isWhole = true
    let bytes = 0
    // A cookie may come in any number of pieces, which become one field (RFC 9113 section 8.2.3).
    let pieces = 0
    while (!reader.isAtEnd) {
      const field = this.#field(reader.byte())
      bytes += field.size
      if (bytes > MOST_DECODED_BYTES) throw new CompressionBomb('a block that decodes to too much')
      if (field.name === 'cookie') pieces += 1
      const others = fields.length - Math.max(0, pieces - 1)
      if (isWhole && others < limits.fields && bytes <= limits.bytes) fields.push(field)
      else isWhole = false
    }
    reader.end()
    return { fields, isWhole }
  }

  /** They come only at the beginning of a block. */
  #readSizeUpdates(): void {
    const reader = this.#reader
    for (let updates = 0; (reader.peek() & 0xe0) === SIZE_UPDATE; updates += 1) {
      if (updates === MOST_UPDATES) throw new CompressionError('too many changes of the table’s size')
      this.#table.resize(reader.integer(reader.byte(), 0x1f))
    }
  }

  #field(first: number): HeaderField {
    if (first >= INDEXED) return this.#entry(this.#reader.integer(first, 0x7f))
    if (first >= INSERTED) {
      const field = this.#literal(first, 0x3f)
      this.#table.insert(field)
      return field
    }
    if (first >= SIZE_UPDATE) throw new CompressionError('a change of the table’s size behind a field')
    return this.#literal(first, 0x0f)
  }

  /** @param mask the bits of the name's index; 0 if the name is written out */
  #literal(first: number, mask: number): HeaderField {
    const reader = this.#reader
    const index = reader.integer(first, mask)
    if (index === 0) return new HeaderField(reader.string(), reader.string())
    const { name, nameKind } = this.#entry(index)
    return new HeaderField(name, reader.string(), nameKind)
  }

  #entry(index: number): HeaderField {
    if (index >= FIRST_DYNAMIC) return this.#table.at(index - FIRST_DYNAMIC)
    const field = STATIC_TABLE[index]
    if (field === undefined) throw new CompressionError('the index 0')
    return field
  }
}
