/** HTTP/2 connections that begin as usual ones and are then changed at random. The same seed gives the same bytes. */
import {
  ACK,
  CONTINUATION,
  code,
  DATA,
  END_HEADERS,
  END_STREAM,
  fields,
  frame,
  GOAWAY,
  HEADERS,
  hpackText,
  PADDED,
  PING,
  PREFACE,
  PRIORITY,
  RST_STREAM,
  requestFields,
  SETTINGS,
  settings,
  WINDOW_UPDATE,
} from '../../listen/frames.js'

/** A number from 0 to below `below`. */
export type Dice = (below: number) => number

/** Mulberry32. */
export function dice(seed: number): Dice {
  let state = seed | 0
  return below => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below)
  }
}

const PATHS = ['/', '/never', '/stuck', '/early', '/bytes/0', '/bytes/70000', '/bytes/1000000']
const METHODS = ['GET', 'GET', 'POST', 'POST', 'HEAD', 'OPTIONS', 'CONNECT']
/** In Huffman code, from the table, and put into it (RFC 7541 appendix C). */
const CODED = Buffer.from('828684418cf1e3c2e5f23a6ba0ab90f4ff58086e6f2d6361636865', 'hex')
const INSERTED = Buffer.concat([Buffer.from([0x40]), hpackText('x-kept'), hpackText('v'.repeat(200))])

/** Bytes of a connection that may come in small pieces: more would take long. */
const MOST_SMALL = 1_500

/** What one connection sends, in the pieces that it sends it in. */
export function mutatedConnection(roll: Dice): Buffer[] {
  const first = [Buffer.from(PREFACE), settings([4, roll(2) === 0 ? roll(200) : 65_535])]
  const sent = new Conversation(roll)
  const bytes = Buffer.concat([...first, ...Array.from({ length: 1 + roll(60) }, () => sent.next())])
  for (let changes = roll(4); changes > 0; changes--) {
    bytes[PREFACE.length + roll(bytes.length - PREFACE.length)] = roll(256)
  }
  const end = roll(8) === 0 ? roll(bytes.length) : bytes.length
  return cut(roll, bytes.subarray(0, end))
}

/** Into small pieces at the beginning, which is where heads are cut. */
function cut(roll: Dice, bytes: Buffer): Buffer[] {
  const pieces: Buffer[] = []
  const most = [1 + roll(40), 5_000, 100_000][roll(3)] as number
  for (let at = 0; at < bytes.length; ) {
    const size = at < MOST_SMALL ? 1 + roll(most) : 50_000
    pieces.push(bytes.subarray(at, at + size))
    at += size
  }
  return pieces
}

class Conversation {
  readonly #roll: Dice
  #stream = -1

  constructor(roll: Dice) {
    this.#roll = roll
  }

  /** One frame, or a head of several. Most belong to streams that are open. */
  next(): Buffer {
    const roll = this.#roll
    switch (roll(14)) {
      case 0:
      case 1:
      case 2:
        return this.#head(this.#open())
      case 3:
        return this.#head(this.#any())
      case 4:
      case 5:
        return frame(
          DATA,
          roll(4) === 0 ? END_STREAM : 0,
          this.#any(),
          Buffer.alloc(roll(3) === 0 ? 16_384 : roll(300)),
        )
      case 6:
        return frame(DATA, PADDED, this.#any(), Buffer.alloc(1 + roll(60), roll(30)))
      case 7:
        return frame(
          WINDOW_UPDATE,
          0,
          roll(2) === 0 ? 0 : this.#any(),
          code(roll(3) === 0 ? roll(2 ** 31) : roll(70_000)),
        )
      case 8:
        return frame(RST_STREAM, 0, this.#any(), code(roll(14)))
      case 9:
        return settings([1 + roll(6), roll(2) === 0 ? roll(70_000) : roll(2 ** 32)])
      case 10:
        return frame(PING, roll(2) === 0 ? ACK : 0, 0, Buffer.alloc(8))
      case 11:
        return frame(PRIORITY, 0, this.#any(), Buffer.concat([code(roll(9)), Buffer.from([1])]))
      case 12:
        return roll(6) === 0 ? frame(GOAWAY, 0, 0, Buffer.alloc(8)) : frame(SETTINGS, ACK, 0)
      default:
        return frame(roll(12), roll(256), roll(9), Buffer.alloc(roll(40), roll(256)))
    }
  }

  #open(): number {
    this.#stream += 2
    return this.#stream
  }

  #any(): number {
    return Math.max(1, this.#stream - 2 * this.#roll(4))
  }

  #head(stream: number): Buffer {
    const roll = this.#roll
    const pick = <T>(list: readonly T[]): T => list[roll(list.length)] as T
    const length = roll(4) === 0 ? ([['content-length', String(roll(400))]] as const) : []
    const blocks = [
      requestFields(pick(PATHS), length, pick(METHODS)),
      requestFields(pick(PATHS), length, pick(METHODS)),
      CODED,
      Buffer.concat([requestFields('/'), INSERTED, Buffer.from([0xbe, 0xbf])]),
      Buffer.concat([requestFields('/'), Buffer.from(Array.from({ length: roll(60) }, () => roll(256)))]),
      fields([['x-trailer', '1']]),
    ]
    const block = pick(blocks)
    const endStream = roll(2) === 0 ? END_STREAM : 0
    if (roll(3) > 0) return frame(HEADERS, END_HEADERS | endStream, stream, block)
    const at = roll(block.length + 1)
    return Buffer.concat([
      frame(HEADERS, endStream, stream, block.subarray(0, at)),
      frame(CONTINUATION, END_HEADERS, stream, block.subarray(at)),
    ])
  }
}
