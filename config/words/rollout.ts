/** Gradual rollout: a trial beside a quota, and a rule that is enforced for a share of its keys. */
import { fractionOf } from './key-fraction.js'

const TRIAL = '.trial'

/** The name that a bucket's trial has in records, metrics and reports. */
export function trialName(bucket: string): string {
  return `${bucket}${TRIAL}`
}

/** The bucket whose trial has this name; undefined when it is not the name of a trial. */
export function bucketOfTrial(name: string): string | undefined {
  return name.endsWith(TRIAL) ? name.slice(0, -TRIAL.length) : undefined
}

/**
 * True when `key` belongs to this percentage of all keys. A hash decides, so the result is the same on every gateway
 * and after every reload, and a larger share contains every smaller one.
 */
export function isInside(percent: number, key: string): boolean {
  return fractionOf(key) * 100 < percent
}
