/** Faults of the policy files. */
import { type Pattern, PatternError, parsePattern } from './pattern.js'

/** Something wrong at a place in a file. */
export interface Fault {
  readonly file: string
  readonly path: readonly (string | number)[]
  readonly message: string
}

/** Something wrong within one entry of a file; the path is relative to the entry. */
export type FaultHere = Omit<Fault, 'file'>

/** Parses a pattern; for an invalid one adds a fault and returns undefined. */
export function readPattern(
  text: string,
  file: string,
  path: readonly (string | number)[],
  faults: Fault[],
): Pattern | undefined {
  try {
    return parsePattern(text)
  } catch (error) {
    if (!(error instanceof PatternError)) throw error
    faults.push({ file, path, message: error.message })
    return undefined
  }
}
