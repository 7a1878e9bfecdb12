/** Pages waiting in the log at which they are moved: 8 MiB. */
const mostWaiting = 2000
/** While changes go on, each pass leaves the few that came meanwhile. */
const passes = 4

export interface CheckpointParts {
  /** Pages that wait in the log. */
  waiting(): number
  /** Moves those that are there, in another thread. */
  move(): Promise<void>
  /** Hears of a failure; what was not moved stays in the log. */
  failed(error: unknown): void
}

export interface Checkpoints {
  /** To be called after changes. Returns at once. */
  changed(): void
  /** Fulfilled when none is under way. */
  settled(): Promise<void>
}

/**
 * Moves pages from the log into the database file beside other work. SQLite begins the log anew only once all are moved, so
 * passes follow each other until none came meanwhile; its own checkpoint, which holds up this thread, is left to a log that
 * has grown all the same.
 */
export function createCheckpoints({ waiting, move, failed }: CheckpointParts): Checkpoints {
  let running: Promise<void> | undefined

  async function run(): Promise<void> {
    try {
      for (let pass = 0; pass < passes && waiting() > 0; pass++) await move()
    } catch (error) {
      failed(error)
    } finally {
      running = undefined
    }
  }

  return {
    changed() {
      if (!running && waiting() >= mostWaiting) running = run()
    },
    async settled() {
      await running
    },
  }
}
