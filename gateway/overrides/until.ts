/** When an entry or mode of the admin port ends. */
import { endOf, isDayOrInstant } from '../../config/formats.js'

/** A day or a moment; without one it lasts until it is undone. */
export interface Ending {
  readonly until?: string
}

/** True once it has expired. */
export function isPast({ until }: Ending, now: number): boolean {
  return until !== undefined && endOf(until) <= now
}

/** Why this is not a valid end, as a sentence; undefined if it is. */
export function untilFault({ until }: Ending): string | undefined {
  if (until === undefined) return undefined
  if (!isDayOrInstant(until)) {
    return `"until" must be a day such as 2026-12-31 or a moment such as 2026-12-31T18:00:00Z, but it is "${until}".`
  }
  return isPast({ until }, Date.now()) ? `"until" is in the past: ${until}.` : undefined
}
