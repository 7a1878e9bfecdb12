/** Identifiers whose order is the order of creation (UUID version 7, RFC 9562 section 5.7). */
import { randomBytes } from 'node:crypto'

const COUNTER_LIMIT = 0x1000

/** Makes ids that never go backwards within one process, even within a millisecond or when the clock is set back. */
export function idMaker(now: () => number): () => string {
  let last = 0
  let counter = 0
  return () => {
    const time = now()
    if (time > last) {
      last = time
      counter = 0
    } else if (++counter === COUNTER_LIMIT) {
      last += 1
      counter = 0
    }
    const bytes = randomBytes(16)
    bytes.writeUIntBE(last, 0, 6)
    bytes.writeUInt16BE(0x7000 | counter, 6)
    bytes[8] = 0x80 | ((bytes[8] ?? 0) & 0x3f)
    return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
  }
}
