import type { OldSecret } from './model.js'

/** Of replaced secrets, those that are still good now. */
export const goodOnes = (secrets: readonly OldSecret[] = []): OldSecret[] =>
  secrets.filter(({ until }) => Date.parse(until) > Date.now())

/** The end of the one that lasts longest, as answers tell it; nothing when none is good any more. */
export function overlapOf(secrets: readonly OldSecret[] = []): { old_secret_valid_until?: string } {
  const ends = goodOnes(secrets).map(({ until }) => until)
  const last = ends.sort().at(-1)
  return last === undefined ? {} : { old_secret_valid_until: last }
}
