import type { DirectoryEvent } from '../schemas/events.js'

/** Receives each event after its change is stored; the change waits for it. */
export type EventCallback = (event: DirectoryEvent) => unknown
