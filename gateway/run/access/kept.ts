/** What keeps the access entries of the admin port: this process, or Redis for all gateways that share it. */
import type { RuntimeEntry } from './entry.js'

export interface Kept {
  /** Everything, as last known. */
  readonly entries: ReadonlyMap<string, RuntimeEntry>
  /** Keeps one and drops others, in one step. Rejects with Unreachable, having changed nothing, when that cannot be. */
  change(put: RuntimeEntry | undefined, dropped: readonly string[]): Promise<void>
  close(): void
}

/** Keeps them as long as the process lives. `changed` hears of each change. */
export function keptHere(changed: () => void): Kept {
  const entries = new Map<string, RuntimeEntry>()
  return {
    entries,
    async change(put, dropped) {
      for (const id of dropped) entries.delete(id)
      if (put !== undefined) entries.set(put.id, put)
      changed()
    },
    close() {},
  }
}
