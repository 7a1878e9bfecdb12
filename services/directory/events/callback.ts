import type { DirectoryEvent } from '../schemas/events.js'

/** Is given each event after its change is stored, and waited for. */
export type EventCallback = (event: DirectoryEvent) => unknown
