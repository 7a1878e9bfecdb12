/**
 * Maps a key to a number that is the same in every process, to select a share of keys or to spread them. Imports
 * nothing.
 */

const FNV_BASIS = 0x811c9dc5
const FNV_PRIME = 0x01000193

/** From 0 to below 1: FNV-1a with the final mix of MurmurHash3, so that similar keys are spread evenly too. */
export function fractionOf(key: string): number {
  let hash = FNV_BASIS
  for (let i = 0; i < key.length; i += 1) hash = Math.imul(hash ^ key.charCodeAt(i), FNV_PRIME)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32
}
