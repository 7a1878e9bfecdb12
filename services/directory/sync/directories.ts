import { setImmediate as yieldToOthers } from 'node:timers/promises'
import { createMutex } from '../../storage/mutex.js'
import { toEvents, viewConnection } from '../events/event.js'
import { webhookOf, webhooksOf, withWebhook } from '../events/webhook.js'
import type { Directory } from '../model.js'
import { type Announcement, DirectoryStoreUnavailable, type Store } from '../store/contract.js'
import type { Committed } from './writers.js'

const maxAttempts = 20

export type DirectoryChanger = ReturnType<typeof createDirectoryChanger>

/**
 * Changes directories themselves; a change and its event are stored in one step. `committed` is called with the events
 * once they are stored.
 */
export function createDirectoryChanger(store: Store, committed: Committed) {
  const mutex = createMutex()

  /** Repeats the step while it gives undefined, because it came too late. Undefined for an unknown directory. */
  async function tried<Result>(
    id: string,
    step: (directory: Directory) => Promise<Result | undefined>,
  ): Promise<Result | undefined> {
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      const directory = await store.directory(id)
      if (!directory) return undefined
      const result = await step(directory)
      if (result !== undefined) return result
    }
    throw new DirectoryStoreUnavailable('The directory is changing too fast; try again.')
  }

  async function events(
    directory: Directory,
    event: 'dsync.activated' | 'dsync.deactivated' | 'dsync.deleted',
  ): Promise<Announcement | undefined> {
    const head = await store.head(directory.id)
    if (!head) return undefined
    const announcement = { event, data: viewConnection(directory) }
    return { head, events: await toEvents(directory, head, [announcement], new Date().toISOString()) }
  }

  /** Events that wait for a removed webhook do not go to a later one, even if it has the same id. */
  async function withBeginnings(before: Directory, after: Directory): Promise<Directory | undefined> {
    const added = webhooksOf(after).filter(({ id }) => !webhookOf(before, id))
    if (added.length === 0) return after
    const head = await store.head(after.id)
    return head && added.reduce((all, one) => withWebhook(all, { ...one, since: head.sequence }), after)
  }

  return {
    /**
     * Changes the directory as it is at that moment, so that no concurrent change is lost. `next` may run more than
     * once. Undefined for an unknown directory. Throws what `next` throws, and Unavailable when other changes keep
     * coming first.
     */
    change: (id: string, next: (directory: Directory) => Directory) =>
      mutex(id, () =>
        tried(id, async before => {
          const after = await withBeginnings(before, next(before))
          if (!after) return undefined
          if (after.deactivated === before.deactivated) {
            return (await store.replaceDirectory(before, after)) ? after : undefined
          }
          const announcement = await events(
            after,
            after.deactivated ? 'dsync.deactivated' : 'dsync.activated',
          )
          if (!announcement || !(await store.replaceDirectory(before, after, announcement))) return undefined
          committed(after, announcement.events)
          return after
        }),
      ),
    /** False for an unknown directory. */
    remove: async (id: string): Promise<boolean> =>
      (await mutex(id, () =>
        tried(id, async directory => {
          const announcement = await events(directory, 'dsync.deleted')
          if (!announcement || !(await store.removeDirectory(id, announcement))) return undefined
          committed(directory, announcement.events)
          return true
        }),
      )) === true,
  }
}

/** Deletes the data of removed directories in pieces, yielding to other requests. */
export async function purgeRemoved(store: Store): Promise<void> {
  while (await store.purgeSome()) await yieldToOthers()
}
