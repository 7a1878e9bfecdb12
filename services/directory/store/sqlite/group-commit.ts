/** Groups changes that are flushed to disk together; the flush is the most expensive part of a change. */
export interface GroupCommit {
  /** Applies the change at once, all or nothing. `durable` is fulfilled when it is on disk. */
  join<Result>(work: () => Result): { readonly result: Result; readonly durable: Promise<void> }
  /** Runs work that does not change users or groups: it is on disk on return, and so are all changes before it. */
  alone<Result>(work: () => Result): Result
  /** Flushes all changes made so far. Must be called before changes are revealed. */
  flush(): void
  /**
   * Runs work that makes the log trustworthy again after a failed flush: what that flush did not write may be missing
   * even after a later flush reports success.
   */
  mend(work: () => void): void
  /** Fulfilled when no flush is running. */
  settled(): Promise<void>
}

/** Flushes what is committed: asynchronously, or before returning. */
export interface Disk {
  flush(): Promise<void>
  flushNow(): void
}

interface Open {
  readonly durable: Promise<void>
  readonly confirm: () => void
  readonly lose: (error: unknown) => void
}

/**
 * One transaction for all changes of a turn of the event loop, each after the first in its own savepoint. Another
 * thread does the flush, so that this one serves other requests meanwhile. Later changes see the earlier ones and may
 * build on them: if the commit fails, all are undone. If the flush fails after it, none is confirmed, and no change is
 * accepted until `mend`.
 */
export function createGroup(exec: (sql: string) => void, disk: Disk): GroupCommit {
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
    let confirm: Open['confirm'] = () => undefined
    let lose: Open['lose'] = () => undefined
    const durable = new Promise<void>((resolve, reject) => {
      confirm = resolve
      lose = reject
    })
    // Each change awaits it separately; this keeps a failure from being an unhandled rejection.
    durable.catch(() => undefined)
    return { durable, confirm, lose }
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

  /** Commits made during a flush share the next one. */
  async function flushWaiting(): Promise<void> {
    while (waiting.length > 0) {
      const groups = waiting
      waiting = []
      try {
        refuseBroken()
        await disk.flush()
        for (const { confirm } of groups) confirm()
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
      group?.confirm()
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
      // After some errors, such as a full disk, SQLite has already rolled back.
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
      // The first change of a group has no earlier ones to protect, so it needs no savepoint.
      const alone = open === undefined
      open ??= begin()
      const { durable } = open
      if (!alone) exec('SAVEPOINT change')
      try {
        const result = work()
        if (!alone) exec('RELEASE change')
        return { result, durable }
      } catch (error) {
        if (alone) undoAll(error)
        else undoLast(error)
        throw error
      }
    },
  }
}
