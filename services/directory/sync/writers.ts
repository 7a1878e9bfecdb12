import type { ServiceLog } from '../../log.js'
import { createMutex } from '../../storage/mutex.js'
import type { Directory } from '../model.js'
import type { Store } from '../store/contract.js'
import type { QueuedEvent } from '../store/event-contract.js'
import { createChanger } from './change.js'
import { createGroupSync } from './groups.js'
import type { ResourceSync } from './resources.js'
import { createUserSync } from './users.js'

/** Everything that writes users and groups. */
export interface Writers {
  readonly users: ResourceSync
  readonly groups: ResourceSync
}

/** Called with the events of each change once they are committed. */
export type Committed = (directory: Directory, events: readonly QueuedEvent[]) => void

/** Makes writers, each with its own listener; those of one process run one after the other. */
export type WriterFactory = (committed?: Committed) => Writers

/** Writers on a store; `always` is called for every change, whoever makes it. */
export function createWriters(store: Store, log: ServiceLog, always: Committed): WriterFactory {
  const mutex = createMutex()
  return committed => {
    const notify: Committed = (directory, events) => {
      always(directory, events)
      committed?.(directory, events)
    }
    const change = createChanger(store, notify, mutex)
    return { users: createUserSync(store, change), groups: createGroupSync(store, change, log) }
  }
}
