/**
 * The lock of a file of keys. Its holder writes the new content into the lock's own file: when the lock is taken away, the
 * holder, stopped for however long, has nothing to put in place of the old content.
 */
import { LockWatch } from '../../config/file-lock.js'

/** Who holds a lock for so long was killed or is stopped. */
const STALE_MS = 10_000
const LOOK_MS = 50

/** Waits for the lock. Returns the path of its file. */
export function takeLock(lock: string): string {
  const watch = new LockWatch(lock, STALE_MS)
  for (;;) {
    const draft = watch.tryLock()
    if (draft !== undefined) return draft
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LOOK_MS)
  }
}
