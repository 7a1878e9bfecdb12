/**
 * Runs the work as one transaction that takes the write lock at once, so that two processes cannot block each other
 * halfway. Rethrows the original error: after a full disk SQLite has already rolled back, and the error of a second
 * rollback would hide it.
 */
export function atomically<Result>(db: { exec(sql: string): unknown }, work: () => Result): Result {
  db.exec('BEGIN IMMEDIATE')
  try {
    const result = work()
    db.exec('COMMIT')
    return result
  } catch (error) {
    try {
      db.exec('ROLLBACK')
    } catch {
      // No transaction is left to roll back.
    }
    throw error
  }
}
