const day = 24 * 60 * 60 * 1000

/**
 * How long an event may queue behind others of a failing receiver before it becomes a dead letter without an attempt.
 */
const patience = 7 * day

/** How long events stay in the feed, and dead letters remain available for replay. */
export const retentionMs = 30 * day

/** True for an event that is too old to keep waiting for a failing receiver. */
export const isStale = (created: string, now: number): boolean => now - Date.parse(created) > patience
