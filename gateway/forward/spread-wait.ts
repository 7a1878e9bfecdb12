/** Spreads the waits of refused clients, so that those who were refused together do not come back in one second. */
import { fractionOf } from '../../config/key-fraction.js'
import { seconds } from './fields.js'

const MOST_ADDED_SECONDS = 60

/**
 * Whole seconds to wait: longer by up to `jitter` of them (0 to 1), and by at most a minute; short waits stay what they are.
 * How much is told by the key alone, so that every gateway tells a client the same, and it may come back no sooner by asking
 * again.
 */
export function spreadWait(ms: number, key: string, jitter: number): number {
  const wait = seconds(ms)
  if (jitter === 0) return wait
  return wait + Math.round(Math.min(wait * jitter, MOST_ADDED_SECONDS) * fractionOf(key))
}
