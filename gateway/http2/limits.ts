/** Limits of a connection in HTTP/2, of whichever side; those of floods are in flood.ts. */
import { DEFAULT_WINDOW } from './protocol.js'

/** Requests that may be open at a time. */
export const MAX_STREAMS = 100
/** Bytes of one body that the peer may send before they are read: the default, which needs no announcement. */
export const STREAM_WINDOW = DEFAULT_WINDOW
/** How often a connection in use is looked at. */
export const LOOK_MS = 1_000
/** Silence, while requests are in progress, before the peer is asked whether it is still there. */
export const QUIET_MS = 10_000
/** Time for it to reply. */
export const PATIENCE_MS = 20_000
