import type { DirectoryEvent } from '../schemas/events.js'

/** Receives each event after its change is stored; the service waits for it to return. */
export type EventCallback = (event: DirectoryEvent) => unknown
