/**
 * The entries, modes, negotiated limits and overrides of the admin port, stored in this process, or in Redis for all gateways that
 * share it.
 */
import type { RuntimeEntry } from './access-entry.js'
import type { ModeOverride } from './mode.js'
import type { StoredOverride } from './override.js'
import type { StoredQuota } from './quota.js'

/** What is stored, by id. Plain data, fit for JSON. */
export interface Contents {
  readonly access: ReadonlyMap<string, RuntimeEntry>
  /** By the rule's id. */
  readonly modes: ReadonlyMap<string, ModeOverride>
  /** Negotiated limits, by `quotaId`. */
  readonly quotas: ReadonlyMap<string, StoredQuota>
  readonly overrides: ReadonlyMap<string, StoredOverride>
}
export type Collection = keyof Contents

/** Stores a value under an id; without a value, deletes it. */
export interface OverrideChange {
  readonly collection: Collection
  readonly id: string
  readonly value?: RuntimeEntry | ModeOverride | StoredQuota | StoredOverride
}

export interface OverrideStore {
  /** Everything, as last known. */
  readonly contents: Contents
  /**
   * Makes all changes that `plan` returns, or none, and resolves to its result. `plan` gets the latest contents; it is
   * called again when another gateway changes them meanwhile. Errors that it throws are passed on.
   *
   * @throws {Unreachable} when they cannot be stored now
   */
  change<Result>(plan: (contents: Contents) => Planned<Result>): Promise<Result>
  /** Resolves when changes made elsewhere by now are known, or cannot be found out. */
  refresh(): Promise<void>
  close(): void
}

export interface Planned<Result> {
  readonly changes: readonly OverrideChange[]
  readonly result: Result
}

export const EMPTY: Contents = {
  access: new Map(),
  modes: new Map(),
  quotas: new Map(),
  overrides: new Map(),
}

/** Stores them in this process, for as long as it lives. `changed` is called after each change. */
export function memoryOverrideStore(changed: () => void): OverrideStore {
  let contents = EMPTY
  return {
    get contents() {
      return contents
    },
    async change(plan) {
      const { changes, result } = plan(contents)
      contents = changedBy(contents, changes)
      changed()
      return result
    },
    async refresh() {},
    close() {},
  }
}

function changedBy(contents: Contents, changes: readonly OverrideChange[]): Contents {
  const next: Record<Collection, Map<string, unknown>> = {
    access: new Map(contents.access),
    modes: new Map(contents.modes),
    quotas: new Map(contents.quotas),
    overrides: new Map(contents.overrides),
  }
  for (const { collection, id, value } of changes) {
    if (value === undefined) next[collection].delete(id)
    else next[collection].set(id, value)
  }
  return next as Record<Collection, Map<string, never>>
}
