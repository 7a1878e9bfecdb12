/** Limits of a client's connection in HTTP/2; those of floods are in flood.ts. */
import { DEFAULT_WINDOW } from './protocol.js'

/** Requests that may be open at a time. */
export const MAX_STREAMS = 100
/** Bytes of one upload that a client may send before they are read: the default, which needs no announcement. */
export const STREAM_WINDOW = DEFAULT_WINDOW
/** The same for all uploads of a connection together. This is also the most that is held of them. */
export const CONNECTION_WINDOW = 1024 * 1024
/** What the client must be told of it: how much larger it is than the default. */
export const OPENING_INCREMENT = CONNECTION_WINDOW - DEFAULT_WINDOW
/** Silence, while requests are in progress, before the client is asked whether it is still there. */
export const QUIET_MS = 10_000
/** Time for it to reply. */
export const PATIENCE_MS = 20_000
/** Time for requests that a client sent before it knew that the connection ends (RFC 9113 section 6.8). */
export const LAST_CHANCE_MS = 250
