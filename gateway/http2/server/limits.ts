/** What the gateway tells its clients of its limits, and those that only they have. */
import { MAX_STREAMS } from '../limits.js'
import { MAX_CONCURRENT_STREAMS, MAX_HEADER_LIST_SIZE } from '../protocol.js'
import { MAX_LIST } from './request-head.js'

/** Bytes of all uploads of a connection that a client may send before they are read: the most that is held of them. */
export const CONNECTION_WINDOW = 1024 * 1024
/** Time for requests that a client sent before it knew that the connection ends (RFC 9113 section 6.8). */
export const LAST_CHANCE_MS = 250

/** Pairs of setting and value. */
export const SERVER_SETTINGS: readonly (readonly [number, number])[] = [
  [MAX_CONCURRENT_STREAMS, MAX_STREAMS],
  [MAX_HEADER_LIST_SIZE, MAX_LIST.bytes],
]
