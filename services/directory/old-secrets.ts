import type { OldSecret } from './model.js'

/** The replaced secrets that are still valid. */
export const goodOnes = (secrets: readonly OldSecret[] = []): OldSecret[] =>
  secrets.filter(({ until }) => Date.parse(until) > Date.now())

/** When the last valid old secret expires, as the API shows it; empty when none is valid any more. */
export function overlapOf(secrets: readonly OldSecret[] = []): { old_secret_valid_until?: string } {
  const ends = goodOnes(secrets).map(({ until }) => until)
  const last = ends.sort().at(-1)
  return last === undefined ? {} : { old_secret_valid_until: last }
}
