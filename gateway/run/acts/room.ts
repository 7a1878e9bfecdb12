/** Limits how many entries and modes may be set at the same time, across all gateways. */
import { Taken } from '../../admin/refusals.js'
import type { Contents, KeptChange } from './kept.js'
import { isPast } from './until.js'

const MOST = 1000
const NAMES = { access: 'entries', modes: 'modes' }

/** Drops what has expired, to make room for one more. @throws {Taken} when there is none */
export function roomFor(shelf: keyof typeof NAMES, id: string, contents: Contents): KeptChange[] {
  const values = contents[shelf]
  const now = Date.now()
  const past = [...values].filter(([, value]) => isPast(value, now)).map(([id]) => id)
  if (!values.has(id) && values.size - past.length >= MOST) {
    throw new Taken(
      `There are ${MOST} ${NAMES[shelf]}, the most there may be: remove some, or write them into a policy file.`,
    )
  }
  return past.filter(one => one !== id).map(one => ({ shelf, id: one }))
}
