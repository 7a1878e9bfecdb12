/**
 * A lock is a folder with one file in it, into which its holder writes the new content. To take the lock away is to
 * remove that file: then the holder, stopped for however long, has nothing to put in place of the old content.
 */
import { randomUUID } from 'node:crypto'
import { mkdirSync, readdirSync, renameSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Who holds a lock for so long was killed or is stopped. Measured here: the clock of a file server may be wrong. */
const STALE_MS = 10_000
const LOOK_MS = 50

/** Waits for the lock. Returns the path of its file. */
export function takeLock(lock: string): string {
  let holder: string | undefined
  let since = 0
  for (;;) {
    const found = holderOf(lock)
    if (found === undefined) {
      const draft = tryLock(lock)
      if (draft !== undefined) return draft
    } else if (found !== holder) {
      holder = found
      since = performance.now()
    } else if (performance.now() - since > STALE_MS) {
      rmSync(join(lock, holder), { force: true })
      continue
    }
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LOOK_MS)
  }
}

export function releaseLock(lock: string, draft: string): void {
  rmSync(draft, { force: true })
  try {
    rmdirSync(lock)
  } catch {} // Another command has it.
}

/** An empty folder is a lock that nobody holds. */
function holderOf(lock: string): string | undefined {
  try {
    return readdirSync(lock)[0]
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** The folder comes into place with its file in it, unless another command was faster. */
function tryLock(lock: string): string | undefined {
  const id = randomUUID()
  const made = `${lock}.${id}`
  mkdirSync(made)
  try {
    writeFileSync(join(made, id), '', { mode: 0o644 })
    renameSync(made, lock)
    return join(lock, id)
  } catch (error) {
    rmSync(made, { recursive: true, force: true })
    if (!['ENOTEMPTY', 'EEXIST'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
    return undefined
  }
}
