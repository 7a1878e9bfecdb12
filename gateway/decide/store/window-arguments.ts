/** Windows as the scripts take them: quota, length in microseconds, algorithm, … */
import type { Algorithm, Window } from '../../types.js'

const LETTERS: Record<Algorithm, string> = { 'sliding-window': 's', 'fixed-window': 'f', 'token-bucket': 't' }

/** A rule's windows are one object while its numbers stand, and are sent with every request. */
const known = new WeakMap<readonly Window[], readonly string[]>()

export function windowArguments(windows: readonly Window[]): readonly string[] {
  let values = known.get(windows)
  if (values === undefined) {
    values = windows.flatMap(({ quota, ms, algorithm }) => [`${quota}`, `${ms * 1000}`, LETTERS[algorithm]])
    known.set(windows, values)
  }
  return values
}
