/** Assembles a message head from the pieces it arrives in. */
import { CR, LF, SPACE, TAB } from './grammar.js'
import { WireError } from './message.js'

const END = Buffer.from('\r\n\r\n')
const NOTHING = Buffer.alloc(0)
/** Some old clients send an empty line after a body (RFC 9112 section 2.2). */
const MAX_EMPTY_LINES = 4
const FIRST_SIZE = 1024

export interface GatheredHead {
  /** Latin-1, up to and including the CRLF before the empty line. */
  readonly head: string
  /** The bytes after the empty line. */
  readonly rest: Buffer
}

/**
 * Reads one head after another, however its bytes are split, in linear time and with a buffer of at most twice the
 * bytes received (or 1 KiB). Bare CR or LF, other control bytes and too many bytes are rejected before the head ends.
 */
export class HeadBuffer {
  readonly #max: number
  readonly #opening: string
  #held: Buffer = NOTHING
  #size = 0
  /** The last byte received. */
  #last = 0
  /** Position in `held` where the current line begins. */
  #lineAt = 0
  #emptyLines = 0
  #inEmptyLine = false

  /** `opening`: what every head begins with, so that a peer with another protocol is rejected at once. */
  constructor(maxBytes: number, opening = '') {
    this.#max = maxBytes
    this.#opening = opening
  }

  /** True while a head has begun but is not complete. */
  get begun(): boolean {
    return this.#size > 0
  }

  /** Undefined while the head is not complete. Throws `bad-request`, `target-too-long` or `header-too-large`. */
  add(chunk: Buffer): GatheredHead | undefined {
    if (this.#size > 0) return this.#gather(chunk)
    const bytes = this.#withoutEmptyLines(chunk)
    if (bytes.length === 0) return undefined
    this.#emptyLines = 0
    const end = bytes.indexOf(END)
    if (end === -1 || end + END.length > this.#max) return this.#gather(bytes)
    return { head: bytes.toString('latin1', 0, end + 2), rest: after(bytes, end + END.length) }
  }

  #withoutEmptyLines(bytes: Buffer): Buffer {
    let at = 0
    for (; at < bytes.length; at++) {
      if (this.#inEmptyLine) {
        if (bytes[at] !== LF || ++this.#emptyLines > MAX_EMPTY_LINES) throw malformed()
        this.#inEmptyLine = false
      } else if (bytes[at] === CR) this.#inEmptyLine = true
      else break
    }
    return at === 0 ? bytes : after(bytes, at)
  }

  #gather(bytes: Buffer): GatheredHead | undefined {
    for (let at = 0; at < bytes.length; at++) {
      const byte = bytes[at] as number
      const place = this.#size + at
      if (place === this.#max) throw this.#tooLarge()
      if (place < this.#opening.length && byte !== this.#opening.charCodeAt(place)) throw malformed()
      if (byte === LF) {
        if (this.#last !== CR) throw malformed()
        // An empty line.
        if (this.#lineAt === place - 1) return this.#complete(bytes, at + 1)
        this.#lineAt = place + 1
      } else if (this.#last === CR || (byte < SPACE && byte !== CR && byte !== TAB)) throw malformed()
      this.#last = byte
    }
    this.#hold(bytes)
    return undefined
  }

  #complete(bytes: Buffer, end: number): GatheredHead {
    const rest = after(bytes, end)
    this.#hold(bytes.subarray(0, end))
    const head = this.#held.toString('latin1', 0, this.#size - 2)
    this.#held = NOTHING
    this.#size = this.#last = this.#lineAt = 0
    return { head, rest }
  }

  #hold(bytes: Buffer): void {
    const size = this.#size + bytes.length
    if (size > this.#held.length) {
      const grown = Buffer.allocUnsafe(Math.min(Math.max(FIRST_SIZE, 2 * size), this.#max))
      this.#held.copy(grown, 0, 0, this.#size)
      this.#held = grown
    }
    bytes.copy(this.#held, this.#size)
    this.#size = size
  }

  /** A target that is too long gets 414, not 431 (RFC 9112 section 3). */
  #tooLarge(): WireError {
    return this.#lineAt === 0
      ? new WireError('target-too-long', 'the request line')
      : new WireError('header-too-large', 'the fields')
  }
}

function after(bytes: Buffer, at: number): Buffer {
  return at === bytes.length ? NOTHING : bytes.subarray(at)
}

function malformed(): WireError {
  return new WireError('bad-request', 'a line of the head')
}
