const second = 1000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour

/**
 * Waits after the first, second, … failed attempt at an event; if the attempt after the last wait fails, it becomes a
 * dead letter.
 */
const waits = [
  ...[2 * second, 5 * second, 15 * second, minute, 5 * minute, 30 * minute],
  ...[2 * hour, 6 * hour, 12 * hour, 24 * hour],
]

/**
 * How long an event may queue behind others of a failing receiver before it becomes a dead letter without an attempt.
 */
const patience = 7 * day
/** The receiver says that it will never accept this event. */
const gone = 410

/** How long events stay in the feed, and dead letters remain available for replay. */
export const retentionMs = 30 * day

/**
 * The wait (ms) after that many failed attempts: spread, so that many directories with one dead receiver do not return
 * together.
 */
export function backOff(failures: number): number {
  const wait = waits[failures - 1] ?? 0
  return wait * (0.75 + Math.random() / 2)
}

/** True when an event has had its last attempt. */
export const isFinal = (failures: number, status: number | undefined): boolean =>
  failures > waits.length || status === gone

/** True for an event that is too old to keep waiting for a failing receiver. */
export const isStale = (created: string, now: number): boolean => now - Date.parse(created) > patience
