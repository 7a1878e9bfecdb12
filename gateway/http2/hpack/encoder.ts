/**
 * Encodes the header blocks of a connection, in their order (RFC 7541). Of each name the last value is kept in the table,
 * so what repeats takes a byte or two; a name whose values keep changing is no longer put there.
 */
import { MOST_TABLE_BYTES } from './dynamic-table.js'
import { sizeOf } from './header-field.js'
import { copyOf, isRepeatable, type KnownName, keptName, knownName } from './known-name.js'
import { FIRST_DYNAMIC } from './static-table.js'

/** Room for the beginning of a block, in bytes. */
export const BEGIN_ROOM = 8
/** An entry counts 32 bytes at least. */
const MOST_ENTRIES = MOST_TABLE_BYTES / 32
/** A larger field would push out many others. */
const MOST_ENTRY_BYTES = MOST_TABLE_BYTES / 4
/** Names that a connection remembers: as many as its table could have. */
const MOST_NAMES = MOST_ENTRIES
/** Values of a name that were put into the table and not sent again. */
const MOST_MISSES = 4
/** Up to here a loop is faster than the call of a native function. */
const SHORT = 24
/** Truncated to one byte, some of these characters would become line breaks. */
const BEYOND_LATIN1 = /[\u0100-\uffff]/g

/** First bytes (RFC 7541 section 6). */
const INDEXED = 0x80
const INSERTED = 0x40
const SIZE_UPDATE = 0x20
const NEVER_INDEXED = 0x10
const NOT_INDEXED = 0

/** A name that this connection has sent, and its last value while that is in the table. */
interface Kept {
  readonly name: KnownName
  value: string
  /** Insertions up to this one; 0 if there was none. */
  number: number
  misses: number
}

/** Room for a field, in bytes. */
export function fieldRoom(name: string, value: string): number {
  return name.length + value.length + 16
}

export class HeaderEncoder {
  /** By spelling. */
  readonly #kept = new Map<string, Kept>()
  /** The table, as a ring: the name and the size of each entry. */
  readonly #entries: (Kept | undefined)[] = []
  readonly #sizes = new Uint16Array(MOST_ENTRIES)
  #inserted = 0
  #evicted = 0
  #size = 0
  #capacity = MOST_TABLE_BYTES
  /** The smallest capacity since the last block, if it has changed. */
  #lowest: number | undefined

  /** The peer's SETTINGS_HEADER_TABLE_SIZE. */
  resize(bytes: number): void {
    const capacity = Math.min(bytes, MOST_TABLE_BYTES)
    if (capacity === this.#capacity) return
    this.#lowest = Math.min(this.#lowest ?? capacity, capacity)
    this.#capacity = capacity
    this.#makeRoom(0)
  }

  /** Begins a block at `at`, with BEGIN_ROOM; returns where its first field comes. */
  begin(target: Buffer, at: number): number {
    if (this.#lowest === undefined) return at
    let next = at
    if (this.#lowest < this.#capacity) next = writeInteger(target, next, SIZE_UPDATE, 0x1f, this.#lowest)
    this.#lowest = undefined
    return writeInteger(target, next, SIZE_UPDATE, 0x1f, this.#capacity)
  }

  /** Writes a field, in any letter case, with `fieldRoom`; returns where the next one comes. */
  field(target: Buffer, at: number, spelling: string, value: string): number {
    const kept = this.#kept.get(spelling)
    if (kept !== undefined) return this.#repeatable(target, at, kept, value)
    const name = knownName(spelling)
    if (!isRepeatable(name)) return writePlain(target, at, name, value)
    return this.#repeatable(target, at, this.#remember(spelling, name), value)
  }

  /** A connection with more names than its table could have begins anew. */
  #remember(spelling: string, name: KnownName): Kept {
    if (this.#kept.size >= MOST_NAMES) this.#kept.clear()
    const kept = { name: keptName(name), value: '', number: 0, misses: 0 }
    this.#kept.set(spelling === name.lower ? kept.name.lower : copyOf(spelling), kept)
    return kept
  }

  #repeatable(target: Buffer, at: number, kept: Kept, value: string): number {
    const { name } = kept
    const { lower } = name
    const index = name.indexes?.get(value)
    if (index !== undefined) return writeInteger(target, at, INDEXED, 0x7f, index)
    if (name.isSecret) return writePlain(target, at, name, value)
    const place = kept.number > this.#evicted ? FIRST_DYNAMIC + this.#inserted - kept.number : 0
    if (place > 0 && kept.value === value) {
      kept.misses = 0
      return writeInteger(target, at, INDEXED, 0x7f, place)
    }
    const size = sizeOf(lower, value)
    const isKept = kept.misses < MOST_MISSES && size <= Math.min(MOST_ENTRY_BYTES, this.#capacity)
    const nameIndex = name.index || place
    if (!isKept) return writeLiteral(target, at, NOT_INDEXED, 0x0f, nameIndex, lower, value)
    // Before the table changes: an index is as of now (RFC 7541 section 4.4).
    const next = writeLiteral(target, at, INSERTED, 0x3f, nameIndex, lower, value)
    this.#insert(kept, value, size)
    return next
  }

  #insert(kept: Kept, value: string, size: number): void {
    this.#makeRoom(size)
    this.#inserted += 1
    this.#size += size
    this.#entries[this.#inserted % MOST_ENTRIES] = kept
    this.#sizes[this.#inserted % MOST_ENTRIES] = size
    kept.value = copyOf(value.replace(BEYOND_LATIN1, '?'))
    kept.number = this.#inserted
    kept.misses += 1
  }

  #makeRoom(bytes: number): void {
    while (this.#evicted < this.#inserted && this.#size + bytes > this.#capacity) {
      this.#evicted += 1
      const place = this.#evicted % MOST_ENTRIES
      this.#size -= this.#sizes[place] as number
      const kept = this.#entries[place]
      this.#entries[place] = undefined
      if (kept?.number === this.#evicted) kept.value = ''
    }
  }
}

/** A field that is in no table. */
function writePlain(
  target: Buffer,
  at: number,
  { lower, index, isSecret }: KnownName,
  value: string,
): number {
  return writeLiteral(target, at, isSecret ? NEVER_INDEXED : NOT_INDEXED, 0x0f, index, lower, value)
}

/** A field that is written out, with the index of its name if that is known. */
function writeLiteral(
  target: Buffer,
  at: number,
  first: number,
  mask: number,
  index: number,
  name: string,
  value: string,
): number {
  const next = writeInteger(target, at, first, mask, index)
  return writeString(target, index === 0 ? writeString(target, next, name) : next, value)
}

/** An integer behind the bits of `first` (RFC 7541 section 5.1). */
function writeInteger(target: Buffer, at: number, first: number, mask: number, value: number): number {
  if (value < mask) {
    target[at] = first | value
    return at + 1
  }
  target[at] = first | mask
  let next = at + 1
  let rest = value - mask
  for (; rest >= 0x80; rest >>>= 7) target[next++] = 0x80 | (rest & 0x7f)
  target[next] = rest
  return next + 1
}

function writeString(target: Buffer, at: number, text: string): number {
  const { length } = text
  const next = writeInteger(target, at, 0, 0x7f, length)
  if (length > SHORT) return next + target.write(text.replace(BEYOND_LATIN1, '?'), next, length, 'latin1')
  for (let i = 0; i < length; i++) {
    const code = text.charCodeAt(i)
    target[next + i] = code > 0xff ? 0x3f : code
  }
  return next + length
}
