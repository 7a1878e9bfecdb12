/** Gathers a head from the pieces it comes in. */
import { CR, LF, SPACE, TAB } from './grammar.js'
import { WireError } from './message.js'

const END = Buffer.from('\r\n\r\n')
const NOTHING = Buffer.alloc(0)
/** Clients of old put an empty line behind a body (RFC 9112 section 2.2). */
const MAX_EMPTY_LINES = 4
const FIRST_ROOM = 1024

export interface GatheredHead {
  /** Latin-1, with the CRLF before the empty line. */
  readonly head: string
  /** What follows the empty line. */
  readonly rest: Buffer
}

/**
 * Takes the bytes of one head after the other, however they are cut, in linear time and no more room than twice what
 * has come. What can be no head is refused before its end: bare CR or LF, other control bytes, too many bytes.
 */
export class HeadBuffer {
  readonly #max: number
  readonly #opening: string
  #held: Buffer = NOTHING
  #size = 0
  /** The last of the held bytes. */
  #last = 0
  /** Place in `held` where the present line began. */
  #lineAt = 0
  #emptyLines = 0
  #inEmptyLine = false

  /** `opening`: what every head begins with, so that a peer who speaks of something else is not waited for. */
  constructor(maxBytes: number, opening = '') {
    this.#max = maxBytes
    this.#opening = opening
  }

  /** True once a byte of a head has come that is not complete. */
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
        // A line of nothing but its CRLF.
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
      const room = Buffer.allocUnsafe(Math.min(Math.max(FIRST_ROOM, 2 * size), this.#max))
      this.#held.copy(room, 0, 0, this.#size)
      this.#held = room
    }
    bytes.copy(this.#held, this.#size)
    this.#size = size
  }

  /** A client must hear 414 of a target (RFC 9112 section 3). */
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
