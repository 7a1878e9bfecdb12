/** What has to be undone: by a test at its end, or by a script without one. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A tap test is one. */
export interface Scope {
  teardown(end: () => unknown): unknown
}

/** Does `work`, then all that its scope has to undo, newest first; throws the first failure once all of it has run. */
export async function scoped<T>(work: (t: Scope) => Promise<T>): Promise<T> {
  const ends: (() => unknown)[] = []
  const failures: unknown[] = []
  const result = await work({ teardown: end => ends.push(end) }).catch(error => {
    failures.push(error)
  })
  for (const end of ends.reverse()) {
    try {
      await end()
    } catch (error) {
      failures.push(error)
    }
  }
  if (failures.length > 0) throw failures[0]
  return result as T
}

/** A new folder, removed at the end. */
export function temporaryFolder(t: Scope, name: string): string {
  const folder = mkdtempSync(join(tmpdir(), `sluice-${name}-`))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}
