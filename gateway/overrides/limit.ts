/** Limits how many entries, modes and negotiated limits may be set at the same time, across all gateways. */
import { Taken } from '../errors.js'
import type { Contents, OverrideChange } from './store.js'
import { isPast } from './until.js'

const MOST = 1000
const NAMES = {
  access: ['entries', 'a policy file'],
  modes: ['modes', 'a policy file'],
  quotas: ['negotiated limits', 'projects.yaml'],
} as const

/** Drops what has expired, to make room for one more. @throws {Taken} when there is none */
export function dropExpired(
  collection: keyof typeof NAMES,
  id: string,
  contents: Contents,
): OverrideChange[] {
  const values = contents[collection]
  const now = Date.now()
  const past = [...values].filter(([, value]) => isPast(value, now)).map(([id]) => id)
  if (!values.has(id) && values.size - past.length >= MOST) {
    const [what, file] = NAMES[collection]
    throw new Taken(
      `There are ${MOST} ${what}, the most there may be: remove some, or write them into ${file}.`,
    )
  }
  return past.filter(one => one !== id).map(one => ({ collection, id: one }))
}
