/** Names that no bucket, rule or access entry may have because logs and metrics use them for something else. */
import { ownerOfTrial } from './share.js'

/** The metrics label of all access entries added by the admin port together. */
export const RUNTIME_SERIES = 'run-time-access'

/** Why this name is reserved, as a sentence; undefined when it is not. */
export function reservedNameFault(name: string): string | undefined {
  if (name === RUNTIME_SERIES) {
    return `"${name}" is what metrics call the access entries of the admin port: choose another name.`
  }
  const owner = ownerOfTrial(name)
  return owner === undefined
    ? undefined
    : `"${name}" is what logs and metrics call the trial of "${owner}": choose a name that does not end in ".trial".`
}
