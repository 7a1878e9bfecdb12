/** Limits of a client's connection, for every version of HTTP. */

/** Most bytes of a request head; this also limits the target. */
export const MAX_HEAD = 16 * 1024
/** Most fields of a request: each takes far more memory than its bytes. Browsers send each cookie as one over HTTP/2. */
export const MAX_FIELDS = 160
/** An HTTP/1.1 head above MAX_HEAD is still read, so that it gets a response; beyond this the connection ends. */
export const MAX_HEAD_READ = 32 * 1024
/** For a whole request: long enough for a large upload on a slow line. Pauses are limited by the upstream's `idle`. */
export const REQUEST_TIMEOUT_MS = 3_600_000
/** Longer than the usual 60 s of load balancers, so that they, not we, close an idle connection. */
export const KEEP_ALIVE_MS = 65_000
