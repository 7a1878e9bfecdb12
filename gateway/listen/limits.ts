/** What a client's connection may cost, whatever version of HTTP it speaks. */

/** Bytes of a request head; also bounds the target and the number of fields. */
export const MAX_HEAD = 16 * 1024
/** Beyond MAX_HEAD a head of HTTP/1.1 is still read, so that it can be answered; beyond this the connection ends. */
export const MAX_HEAD_READ = 32 * 1024
/** A whole request: long enough for a large upload over a slow line, whose pauses the upstream's `idle` bounds. */
export const REQUEST_TIMEOUT_MS = 3_600_000
/** Longer than the usual 60 s of load balancers, so that they, not we, close an idle connection. */
export const KEEP_ALIVE_MS = 65_000
