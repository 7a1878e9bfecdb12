/** What the gateway tells an upstream of its limits, and how much it puts up with. */
import { MAX_STREAMS, STREAM_WINDOW } from '../limits.js'
import { ENABLE_PUSH } from '../protocol.js'

/**
 * Bytes of all responses of a connection that an upstream may send before they are read. Enough for all streams, so
 * that clients that do not read never keep others on the same connection waiting; and twice that, because it is
 * replenished only when half of it was read.
 */
export const CONNECTION_WINDOW = 2 * MAX_STREAMS * STREAM_WINDOW
/**
 * Frames that change nothing, in a window: WINDOW_UPDATE and PING mostly. More than of a client, because some upstreams
 * send them for each message of a gRPC stream.
 */
export const MOST_IDLE_FRAMES = 50_000

/** Pairs of setting and value. */
export const CLIENT_SETTINGS: readonly (readonly [number, number])[] = [[ENABLE_PUSH, 0]]
