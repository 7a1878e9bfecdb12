/** Spreads the waits of refused clients, so that those refused together do not return in the same second. */
import { fractionOf } from '../../config/words/key-fraction.js'
import { seconds } from './fields.js'

const MOST_ADDED_SECONDS = 60

/**
 * Whole seconds to wait, extended by up to `jitter` per cent and at most a minute; short waits stay
 * as they are. The extension depends on the key alone, so every gateway tells a client the same wait, and
 * asking again does not shorten it.
 */
export function spreadWait(ms: number, key: string, jitter: number): number {
  const wait = seconds(ms)
  if (jitter === 0) return wait
  return wait + Math.round(Math.min((wait * jitter) / 100, MOST_ADDED_SECONDS) * fractionOf(key))
}
