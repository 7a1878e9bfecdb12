import type { Mutex } from '../../storage/mutex.js'
import { type Happenings, toEvents } from '../events/event.js'
import type { Directory } from '../model.js'
import { ScimError } from '../scim/error.js'
import { type AppliedChange, DirectoryStoreUnavailable, type Store, type Write } from '../store/contract.js'
import type { QueuedEvent } from '../store/event-contract.js'
import type { Committed } from './writers.js'

/** The result of a request, with its writes and happenings; both are empty if nothing changes. */
export interface ChangePlan<Result> {
  readonly result: Result
  readonly writes: readonly Write[]
  readonly happenings: Happenings
}

/** Reads what it needs and plans the change; may run more than once. `now` is ISO 8601. */
export type Planner<Result> = (now: string) => Promise<ChangePlan<Result>>

/**
 * Changes a directory's users and groups; nothing else writes them. Throws Unavailable when other changes keep coming
 * first.
 */
export type Changer = <Result>(directory: Directory, planner: Planner<Result>) => Promise<Result>

const maxAttempts = 20

/**
 * Every change is computed from a head and committed only if the directory is still at that head; otherwise it is
 * computed again. Changes of one process run one after the other per directory, so attempts are lost only to other processes and to
 * changes of the directory itself.
 */
export function createChanger(store: Store, committed: Committed, mutex: Mutex): Changer {
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
