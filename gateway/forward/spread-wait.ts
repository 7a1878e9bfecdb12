/** Spreads the waits of refused clients, so that those who were refused together do not come back in one second. */

const MOST_ADDED_MS = 60_000

/**
 * A wait that is longer by up to `jitter` of it (0 to 1), and by at most 60 s. How much is told by the key alone, so that
 * every gateway tells a client the same, and it may come back no sooner by asking again.
 */
export function spreadWait(ms: number, key: string, jitter: number): number {
  return jitter === 0 ? ms : ms + Math.min(ms * jitter, MOST_ADDED_MS) * fractionOf(key)
}

/** From 0 to 1: FNV-1a of the text, mixed (the finalizer of MurmurHash3), since the last letters alone tell many keys apart. */
function fractionOf(text: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i += 1) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return ((hash ^ (hash >>> 16)) >>> 0) / 0x1_0000_0000
}
