/** Moves SQLite's log into its file beside other work: on the thread that serves requests it would hold up all of them. */
import { setImmediate } from 'node:timers/promises'
import Database from 'libsql/promise'

/** Rows that are written before the log is looked after. One is a page or two of the log. */
const PASS_AFTER_ROWS = 1000
/** What the serving thread may move itself: that of fewer rows, which takes milliseconds. */
const LEFT_ROWS = 250
/** 16 MiB. A longer log is begun anew, which needs a pass that nothing is written beside. */
const LONG_LOG_PAGES = 4000

/** Passes over the log that hold up no reader and no writer (https://sqlite.org/pragma.html#pragma_wal_checkpoint, PASSIVE). */
export interface Passes {
  /** On another thread. Gives the log's length in pages. */
  elsewhere(): Promise<number>
  /** On this thread, with no transaction open. */
  here(): void
}

export type Checkpoints = ReturnType<typeof createCheckpoints>

/** A failed pass is left to later ones: the log keeps everything, and what is wrong with the disk shows at the next write. */
export function createCheckpoints({ elsewhere, here }: Passes) {
  let written = 0
  let seen = 0
  let running: Promise<void> | undefined

  async function run(): Promise<void> {
    try {
      let pages: number
      do {
        seen = written
        // Changes of this turn are in the log in the next one.
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
    /** Counts rows that were written. */
    wrote(rows: number): void {
      written += rows
      if (written - seen >= PASS_AFTER_ROWS) running ??= run()
    },
    /** Fulfilled when no pass is under way. */
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
      // Of the driver's calls that give rows, only this one does not block the caller.
      const [{ log }] = (await statement.all()) as [{ log: number }]
      return log
    },
    close: (): void => open?.close(),
  }
}
