/** The differences between two configurations, as plain data. */
import { isDeepStrictEqual } from 'node:util'

export interface FieldChange {
  readonly field: string
  /** Null when it was not, or is no longer, there. */
  readonly old: unknown
  readonly new: unknown
}

export interface Change {
  readonly name: string
  readonly change: 'added' | 'removed' | 'changed'
  /** All settings of what is added or removed. */
  readonly fields: readonly FieldChange[]
}

export type FieldValues = Readonly<Record<string, unknown>>

/** The fields whose values differ, in the order in which they first appear. */
export function changedFields(before: FieldValues, after: FieldValues): FieldChange[] {
  const names = new Set([...Object.keys(before), ...Object.keys(after)])
  return [...names]
    .filter(name => !isDeepStrictEqual(before[name], after[name]))
    .map(field => ({ field, old: before[field] ?? null, new: after[field] ?? null }))
}

/** What was added, removed and changed among named things. */
export function changesOf(
  before: ReadonlyMap<string, FieldValues>,
  after: ReadonlyMap<string, FieldValues>,
): Change[] {
  return changesBy(before, after, (old = {}, now = {}) => changedFields(old, now))
}

/** The same for things whose fields `changed` compares. */
export function changesBy<T>(
  before: ReadonlyMap<string, T>,
  after: ReadonlyMap<string, T>,
  changed: (old: T | undefined, now: T | undefined) => FieldChange[],
): Change[] {
  const names = new Set([...before.keys(), ...after.keys()])
  return [...names].flatMap((name): Change[] => {
    const [old, now] = [before.get(name), after.get(name)]
    const fields = changed(old, now)
    if (old === undefined) return [{ name, change: 'added', fields }]
    if (now === undefined) return [{ name, change: 'removed', fields }]
    return fields.length === 0 ? [] : [{ name, change: 'changed', fields }]
  })
}
