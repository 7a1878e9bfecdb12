const second = 1000
const minute = 60 * second
const hour = 60 * minute

/** Waits (ms) after the first, second, … failed attempt at a call. */
export const RETRY_WAITS: readonly number[] = [
  ...[2 * second, 5 * second, 15 * second, minute, 5 * minute, 30 * minute],
  ...[2 * hour, 6 * hour, 12 * hour, 24 * hour],
]

/** The receiver says that it will never accept this call. */
const GONE = 410

/**
 * The wait (ms) after that many failed attempts: spread, so that many calls to one dead receiver do not return
 * together.
 */
export function backOff(failures: number): number {
  const wait = RETRY_WAITS[failures - 1] ?? 0
  return wait * (0.75 + Math.random() / 2)
}

/** True when a call has had its last attempt. */
export const isFinal = (failures: number, status: number | undefined, waits = RETRY_WAITS.length): boolean =>
  failures > waits || status === GONE
