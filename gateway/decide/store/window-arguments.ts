/** Windows as the scripts take them: quota, length in microseconds, algorithm, … */
import type { Algorithm, Window } from '../../types.js'

const LETTERS: Record<Algorithm, string> = { 'sliding-window': 's', 'fixed-window': 'f', 'token-bucket': 't' }

export function windowArguments(windows: readonly Window[]): (string | number)[] {
  const values: (string | number)[] = []
  for (const { quota, ms, algorithm } of windows) values.push(quota, ms * 1000, LETTERS[algorithm])
  return values
}
