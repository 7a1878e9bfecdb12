/**
 * Moves SQLite's log into the database file on another thread: on the thread that serves requests it would block all
 * of them.
 */
import { setImmediate } from 'node:timers/promises'
import Database from 'libsql/promise'

/** Rows that are written before the next pass. A row takes a page or two of the log. */
const PASS_AFTER_ROWS = 1000
/** Fewer new rows than this are left to a later pass, or to the serving thread, which moves them in milliseconds. */
const LEFT_ROWS = 250
/** 16 MiB. Restarting a longer log needs a pass during which nothing is written. */
const LONG_LOG_PAGES = 4000

/**
 * Passes over the log that block no reader and no writer (https://sqlite.org/pragma.html#pragma_wal_checkpoint,
 * PASSIVE).
 */
export interface Passes {
  /** On another thread. Returns the log's length in pages. */
  elsewhere(): Promise<number>
  /** On this thread, with no transaction open. */
  here(): void
}

export type Checkpoints = ReturnType<typeof createCheckpoints>

/** A failed pass is left to later ones: the log keeps everything, and a fault of the disk shows at the next write. */
export function createCheckpoints({ elsewhere, here }: Passes) {
  let written = 0
  let seen = 0
  let running: Promise<void> | undefined

  async function run(): Promise<void> {
    try {
      let pages: number
      do {
        seen = written
        // Changes of this turn of the event loop are in the log in the next one.
        await setImmediate()
        pages = await elsewhere()
      } while (written - seen >= LEFT_ROWS)
      if (pages > LONG_LOG_PAGES) here()
    } catch {
      // See above.
    } finally {
      running = undefined
    }
  }

  return {
    wrote(rows: number): void {
      written += rows
      if (written - seen >= PASS_AFTER_ROWS) running ??= run()
    },
    /** Fulfilled when no pass is running. */
    async settled(): Promise<void> {
      await running
    },
  }
}

/** A connection for passes on another thread, opened with the first one. */
export function otherConnection(file: string) {
  let open: Database | undefined
  return {
    async pass(): Promise<number> {
      open ??= new Database(file, {})
      const statement = await open.prepare('PRAGMA wal_checkpoint(PASSIVE)')
      // Of the driver's calls that return rows, only this one does not block the caller.
      const [{ log }] = (await statement.all()) as [{ log: number }]
      return log
    },
    close: (): void => open?.close(),
  }
}
