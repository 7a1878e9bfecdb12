import type { ServiceLog } from '../../log.js'
import type { Mutex } from '../../storage/mutex.js'
import { createMutex } from '../../storage/mutex.js'
import { type Happenings, toEvents } from '../events/event.js'
import type { Directory } from '../model.js'
import { ScimError } from '../scim/error.js'
import { type AppliedChange, DirectoryStoreUnavailable, type Store, type Write } from '../store/contract.js'
import type { QueuedEvent } from '../store/event-contract.js'
import { createGroupSync } from './groups.js'
import type { ResourceSync } from './resources.js'
import { createUserSync } from './users.js'

/** The result of a request, with its writes and happenings; both are empty if nothing changes. */
export interface ChangePlan<Result> {
  readonly result: Result
  readonly writes: readonly Write[]
  readonly happenings: Happenings
}

/** Reads what it needs and plans the change; may run more than once. `now` is ISO 8601. */
type Planner<Result> = (now: string) => Promise<ChangePlan<Result>>

/**
 * Changes a directory's users and groups; nothing else writes them. Throws Unavailable when other changes keep coming
 * first.
 */
export type Changer = <Result>(directory: Directory, planner: Planner<Result>) => Promise<Result>

const maxAttempts = 20

/**
 * Every change is computed from a head and committed only if the directory is still at that head; otherwise it is
 * computed again. Changes of one process run one after the other per directory, so attempts are lost only to other processes and
 * to changes of the directory itself.
 */
function createChanger(store: Store, committed: Committed, mutex: Mutex): Changer {
  async function change<Result>(
    directory: Directory,
    planner: Planner<Result>,
  ): Promise<{ result: Result; made?: AppliedChange; events: readonly QueuedEvent[] }> {
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      const head = await store.head(directory.id)
      if (!head) throw new ScimError(404, 'There is no directory with this id.')
      const now = new Date().toISOString()
      const { result, writes, happenings } = await planner(now)
      if (writes.length === 0) return { result, events: [] }
      const events = await toEvents(directory, head, happenings, now)
      const made = await store.commit(directory.id, head, { writes, events })
      if (made) return { result, made, events }
    }
    throw new DirectoryStoreUnavailable('The directory is changing too fast; try again.')
  }

  return async (directory, planner) => {
    const { result, made, events } = await mutex(directory.id, () => change(directory, planner))
    // The next change already has its turn, so that one flush covers several.
    await made?.durable
    if (events.length > 0) committed(directory, events)
    return result
  }
}

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
