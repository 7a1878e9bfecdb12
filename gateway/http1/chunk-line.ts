/** The line before a chunk: its size in hex, and extensions, which are ignored (RFC 9112 section 7.1). */
import { BACKSLASH, CR, EQUALS, LF, QUOTE, SEMICOLON, TEXT, TOKEN } from './grammar.js'
import { WireError } from './message.js'

/** As many hex digits as a number holds exactly, leading zeros included. */
const MAX_DIGITS = 13
const MAX_EXTENSIONS = 1024

/** What the next byte belongs to. */
type Place = 'size' | 'name' | 'value' | 'token' | 'quoted' | 'escaped' | 'quoted-end' | 'lf' | 'behind'

/**
 * Reads one line after another, byte by byte. Whitespace outside quotes is rejected: the grammar allows it, but
 * parsers have disagreed on it, and no sender needs it.
 */
export class ChunkLine {
  #place: Place = 'size'
  #size = 0
  #digits = 0
  #extensions = 0
  /** Bytes of the current extension name. */
  #name = 0

  get complete(): boolean {
    return this.#place === 'behind'
  }

  /** Returns the size of a complete line, and gets ready for the next line. */
  take(): number {
    const size = this.#size
    this.#place = 'size'
    this.#size = this.#digits = this.#extensions = 0
    return size
  }

  /** Reads from `at` to the end of the line or of the bytes, and returns that position. Throws `bad-framing`. */
  read(bytes: Buffer, at: number): number {
    let i = at
    while (i < bytes.length && this.#place !== 'behind') {
      const byte = bytes[i++] as number
      if (this.#place === 'size') this.#digit(byte)
      else if (this.#place === 'lf') {
        if (byte !== LF) throw malformed()
        this.#place = 'behind'
      } else if (++this.#extensions > MAX_EXTENSIONS) throw malformed()
      else this.#extension(byte)
    }
    return i
  }

  #digit(byte: number): void {
    const value = hexValue(byte)
    if (value !== -1) {
      if (++this.#digits > MAX_DIGITS) throw malformed()
      this.#size = this.#size * 16 + value
    } else if (this.#digits === 0) throw malformed()
    else this.#next(byte)
  }

  #extension(byte: number): void {
    switch (this.#place) {
      case 'name':
        if (TOKEN[byte] === 1) this.#name++
        else if (this.#name === 0) throw malformed()
        else if (byte === EQUALS) this.#place = 'value'
        else this.#next(byte)
        break
      case 'value':
        if (byte === QUOTE) this.#place = 'quoted'
        else if (TOKEN[byte] === 1) this.#place = 'token'
        else throw malformed()
        break
      case 'token':
        if (TOKEN[byte] !== 1) this.#next(byte)
        break
      case 'quoted':
        if (byte === QUOTE) this.#place = 'quoted-end'
        else if (byte === BACKSLASH) this.#place = 'escaped'
        else if (TEXT[byte] !== 1) throw malformed()
        break
      case 'escaped':
        if (TEXT[byte] !== 1) throw malformed()
        this.#place = 'quoted'
        break
      default:
        this.#next(byte)
    }
  }

  /** After a size or an extension: another extension, or the end of the line. */
  #next(byte: number): void {
    this.#name = 0
    if (byte === SEMICOLON) this.#place = 'name'
    else if (byte === CR) this.#place = 'lf'
    else throw malformed()
  }
}

function hexValue(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const letter = byte | 0x20
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1
}

function malformed(): WireError {
  return new WireError('bad-framing', 'the line before a chunk')
}
