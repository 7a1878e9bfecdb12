/** Names that no bucket, rule or access entry can have: logs and metrics give them to something else. */
import { bucketOfTrial } from './rollout.js'

/** Of all entries of the admin port together in metrics. */
export const RUNTIME_SERIES = 'run-time-access'

/** Why nothing can be called this, as a sentence; undefined when it can. */
export function reservedNameFault(name: string): string | undefined {
  if (name === RUNTIME_SERIES) {
    return `"${name}" is what metrics call the access entries of the admin port: choose another name.`
  }
  const bucket = bucketOfTrial(name)
  return bucket === undefined
    ? undefined
    : `"${name}" is what logs and metrics call the trial of bucket "${bucket}": choose a name that does not end in ".trial".`
}
