/** Gradual rollout: a trial beside a quota, and a rule that is enforced for a share of its keys. */

const TRIAL = '.trial'

/** The name that the trial of a bucket or rule has in records, metrics and reports. */
export function trialName(owner: string): string {
  return `${owner}${TRIAL}`
}

/** The bucket or rule whose trial has this name; undefined when it is not the name of a trial. */
export function ownerOfTrial(name: string): string | undefined {
  return name.endsWith(TRIAL) ? name.slice(0, -TRIAL.length) : undefined
}

/**
 * True when `key` belongs to this percentage of all keys. A hash decides, so the result is the same on every gateway
 * and after every reload, and a larger share contains every smaller one.
 */
export function isInside(percent: number, key: string): boolean {
  return fractionOf(key) * 100 < percent
}

const FNV_BASIS = 0x811c9dc5
const FNV_PRIME = 0x01000193

/**
 * A number from 0 to below 1 that is the same for a key in every process: FNV-1a with the final mix of MurmurHash3, so that
 * similar keys are spread evenly too.
 */
export function fractionOf(key: string): number {
  let hash = FNV_BASIS
  for (let i = 0; i < key.length; i += 1) hash = Math.imul(hash ^ key.charCodeAt(i), FNV_PRIME)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32
}
