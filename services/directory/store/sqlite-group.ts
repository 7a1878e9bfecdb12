/** Changes that are flushed to the disk together, which is what a change costs most. */
export interface Group {
  /** Makes the change at once, all of it or nothing. It is on the disk when `kept` is fulfilled. */
  join<Result>(work: () => Result): { readonly result: Result; readonly kept: Promise<void> }
  /** Flushes what was made so far. Anything else that writes has to call it first. */
  flush(): void
}

interface Open {
  readonly kept: Promise<void>
  readonly keep: () => void
  readonly lose: (error: unknown) => void
}

/**
 * One transaction for all changes of a turn of the event loop, each after the first in a savepoint of its own. Later changes
 * of a turn see the earlier ones and may build on them: if the flush fails, all are undone and none is kept.
 */
export function createGroup(exec: (sql: string) => void): Group {
  let open: Open | undefined

  function begin(): Open {
    exec('BEGIN IMMEDIATE')
    setImmediate(flush)
    let keep: Open['keep'] = () => undefined
    let lose: Open['lose'] = () => undefined
    const kept = new Promise<void>((resolve, reject) => {
      keep = resolve
      lose = reject
    })
    // Each change waits for it by itself; a failure is no surprise to the process.
    kept.catch(() => undefined)
    return { kept, keep, lose }
  }

  function flush(): void {
    const group = open
    if (!group) return
    open = undefined
    try {
      exec('COMMIT')
      group.keep()
    } catch (error) {
      rollBack()
      group.lose(error)
    }
  }

  function rollBack(): void {
    try {
      exec('ROLLBACK')
    } catch {
      // After some errors, as a full disk, SQLite has done so by itself.
    }
  }

  function undoAll(error: unknown): void {
    const group = open
    open = undefined
    rollBack()
    group?.lose(error)
  }

  function undoLast(error: unknown): void {
    try {
      exec('ROLLBACK TO change; RELEASE change')
    } catch {
      undoAll(error)
    }
  }

  return {
    flush,
    join(work) {
      // The first change of a group has no other beside it to spare.
      const alone = open === undefined
      open ??= begin()
      const { kept } = open
      if (!alone) exec('SAVEPOINT change')
      try {
        const result = work()
        if (!alone) exec('RELEASE change')
        return { result, kept }
      } catch (error) {
        if (alone) undoAll(error)
        else undoLast(error)
        throw error
      }
    },
  }
}
