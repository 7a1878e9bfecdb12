/**
 * A lock between processes, also on different machines: a folder with one file in it, whose name is its holder's. To take
 * the lock away is to remove that file.
 */
import { randomUUID } from 'node:crypto'
import { mkdirSync, readdirSync, renameSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** The folder comes into place with its file in it, whose path is returned; undefined if another was faster. */
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

/** Shows that the holder lives, for whoever waits. Returns the file's new path. Throws when the lock was taken away. */
export function refreshLock(held: string): string {
  const renamed = join(dirname(held), randomUUID())
  renameSync(held, renamed)
  return renamed
}

export function releaseLock(held: string): void {
  rmSync(held, { force: true })
  try {
    rmdirSync(dirname(held))
  } catch {} // Another process has it.
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

/** Takes a lock away from a holder that has not shown itself for too long: it was killed or is stopped. */
export class LockWatch {
  readonly #lock: string
  readonly #staleMs: number
  #holder: string | undefined
  /** Measured here: the clock of a file server may be wrong. */
  #since = 0
  #tookAway = false

  constructor(lock: string, staleMs: number) {
    this.#lock = lock
    this.#staleMs = staleMs
  }

  /** True if the last lock that was taken had been left behind by another holder. */
  get tookAway(): boolean {
    return this.#tookAway
  }

  /** The path of the lock's file if it could be taken now. */
  tryLock(): string | undefined {
    this.#tookAway = false
    const found = holderOf(this.#lock)
    if (found === undefined) return tryLock(this.#lock)
    if (found !== this.#holder) {
      this.#holder = found
      this.#since = performance.now()
    } else if (performance.now() - this.#since > this.#staleMs) {
      rmSync(join(this.#lock, found), { force: true })
      this.#tookAway = true
      return tryLock(this.#lock)
    }
    return undefined
  }
}
