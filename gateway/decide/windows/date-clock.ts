/**
 * The time since the epoch, in milliseconds, at a time of the store's clock. Only calendar windows ask for it. Times
 * that are past keep their date when the system clock is set, or when the machine has slept.
 */
export type WallClock = (at: number) => number

/** Up to this difference, the system clock counts as not having been set. */
const CLOCK_SET_MS = 100

/** Changes of the system clock that are remembered; what was before them gets the date of the oldest. */
const MOST_CHANGES = 16

/** @param now the store's clock, which is never set */
export function wallClock(now: () => number, date: () => number = Date.now): WallClock {
  let checked = now()
  const changes = [{ after: Number.NEGATIVE_INFINITY, offset: date() - checked }]

  function notice(): void {
    const time = now()
    const offset = date() - time
    if (Math.abs(offset - (changes[0]?.offset as number)) > CLOCK_SET_MS) {
      changes.unshift({ after: checked, offset })
      changes.length = Math.min(changes.length, MOST_CHANGES)
    }
    checked = time
  }

  return at => {
    notice()
    const { offset } = changes.find(({ after }) => at > after) ?? (changes.at(-1) as (typeof changes)[number])
    return at + offset
  }
}
