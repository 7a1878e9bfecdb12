/** Changes that are flushed to the disk together, which is what a change costs most. */
export interface Group {
  /** Makes the change at once, all of it or nothing. It is on the disk when `kept` is fulfilled. */
  join<Result>(work: () => Result): { readonly result: Result; readonly kept: Promise<void> }
  /** Does what is no change of users or groups: it is on the disk on return, and so are all changes before it. */
  alone<Result>(work: () => Result): Result
  /** Brings all changes made so far to the disk. What tells of changes has to call it first. */
  flush(): void
  /**
   * Does what makes the log worthy of trust again after a flush that failed: what it did not bring to the disk need not come
   * with the next one, though that one says so.
   */
  mend(work: () => void): void
  /** Fulfilled when no flush is under way any more. */
  settled(): Promise<void>
}

/** Brings what is committed to the disk: beside other work, or before returning. */
export interface Disk {
  flush(): Promise<void>
  flushNow(): void
}

interface Open {
  readonly kept: Promise<void>
  readonly keep: () => void
  readonly lose: (error: unknown) => void
}

/**
 * One transaction for all changes of a turn of the event loop, each after the first in a savepoint of its own. Its flush is
 * another thread's work, so that this one serves other requests meanwhile. Later changes see the earlier ones and may
 * build on them: if the commit fails, all are undone and none is kept. If the disk fails after it, none is confirmed, and none is made until `mend`.
 */
export function createGroup(exec: (sql: string) => void, disk: Disk): Group {
  let open: Open | undefined
  let waiting: Open[] = []
  let flushing: Promise<void> | undefined
  let isAlone = false
  let broken: { readonly error: unknown } | undefined

  function begin(): Open {
    exec('BEGIN IMMEDIATE')
    setImmediate(() => {
      const group = commit()
      if (!group) return
      waiting.push(group)
      flushing ??= flushWaiting()
    })
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

  function commit(): Open | undefined {
    const group = open
    if (!group) return undefined
    open = undefined
    try {
      refuseBroken()
      exec('COMMIT')
      return group
    } catch (error) {
      rollBack()
      group.lose(error)
      return undefined
    }
  }

  /** What is committed while a flush is under way shares the next one. */
  async function flushWaiting(): Promise<void> {
    while (waiting.length > 0) {
      const groups = waiting
      waiting = []
      try {
        refuseBroken()
        await disk.flush()
        for (const { keep } of groups) keep()
      } catch (error) {
        broken ??= { error }
        for (const { lose } of groups) lose(error)
      }
    }
    flushing = undefined
  }

  function flush(): void {
    if (isAlone) return
    const group = commit()
    refuseBroken()
    if (!group && !flushing) return
    try {
      flushNow()
      group?.keep()
    } catch (error) {
      group?.lose(error)
      throw error
    }
  }

  function flushNow(): void {
    try {
      disk.flushNow()
    } catch (error) {
      broken ??= { error }
      throw error
    }
  }

  function refuseBroken(): void {
    if (broken) throw broken.error
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
    alone(work) {
      if (isAlone) return work()
      flush()
      isAlone = true
      try {
        return work()
      } finally {
        isAlone = false
        flushNow()
      }
    },
    mend(work) {
      if (!broken) return
      work()
      broken = undefined
    },
    async settled() {
      await flushing
    },
    join(work) {
      refuseBroken()
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
