/** Overrides on the admin port: the most recent ones of all gateways on one Redis, or of this process. */
import { randomUUID } from 'node:crypto'
import type { LiveOverride } from '../admin/live-snapshot.js'
import type { OverrideReason } from '../admin/settable.js'
import type { Log } from '../types.js'
import { quotaPath } from './quota-id.js'
import type { Contents, OverrideChange, OverrideStore } from './store.js'
import { type Ending, isPast } from './until.js'

/** Plain data, fit for JSON. */
export interface StoredOverride extends Ending {
  readonly id: string
  readonly kind: LiveOverride['kind']
  /** A sentence. */
  readonly what: string
  /** ISO 8601. */
  readonly at: string
  /** Who asked for it: a name, or else the address. */
  readonly by: string
  /** The address that the request came from. */
  readonly from: string
  readonly why?: string
  /** Id of the entry, mode or limit it set, which may be removed again. */
  readonly set?: string
  /**
   * One more than that of the previous override, whichever gateway performed it: clocks may differ, and two overrides may share a
   * millisecond.
   */
  readonly order?: number
}

const MOST_OVERRIDES = 200

/** By kind: where it is stored, and the path that undoes it. */
const UNDONE_BY = {
  mode: ['modes', (id: string) => `/rules/${id}/mode`],
  access: ['access', (id: string) => `/access/${id}`],
  quota: ['quotas', quotaPath],
} as const

/** A new override, requested from the address `from`. */
export function newOverride(
  kind: StoredOverride['kind'],
  what: string,
  { by, why, from, until, set }: OverrideReason & Ending & { readonly from: string; readonly set?: string },
): StoredOverride {
  const at = new Date().toISOString()
  const more = { ...(why && { why }), ...(until && { until }), ...(set && { set }) }
  return { id: randomUUID(), kind, what, at, by: by ?? from, from, ...more }
}

/** Stores the override and drops the oldest beyond 200; overrides that can be undone are dropped last. */
export function changesFor(override: StoredOverride, contents: Contents): OverrideChange[] {
  const overrides = newestFirst(contents.overrides.values())
  const order = (overrides[0]?.order ?? 0) + 1
  const canBeUndone = (one: StoredOverride) => pathToUndo(one, contents) !== undefined
  const mostUseful = [...overrides.filter(canBeUndone), ...overrides.filter(one => !canBeUndone(one))]
  const dropped = mostUseful
    .slice(MOST_OVERRIDES - 1)
    .map(({ id }): OverrideChange => ({ collection: 'overrides', id }))
  return [{ collection: 'overrides', id: override.id, value: { ...override, order } }, ...dropped]
}

/** Adds to the list of overrides what has nothing else to store: the reset of a counter. */
export interface OverrideJournal {
  /** @throws {Unreachable} when it cannot be stored now */
  record(override: StoredOverride): Promise<void>
  /** What was recorded did not come to pass. */
  withdraw(id: string): Promise<void>
}

export function journalIn(store: Pick<OverrideStore, 'change'>): OverrideJournal {
  return {
    record: override =>
      store.change(contents => ({ changes: changesFor(override, contents), result: undefined })),
    withdraw: id => store.change(() => ({ changes: [{ collection: 'overrides', id }], result: undefined })),
  }
}

/** The stored overrides, the newest first. */
export function reportOverrides(contents: Contents): LiveOverride[] {
  return newestFirst(contents.overrides.values()).map(override => reportOverride(override, contents))
}

/** Logs an override as a warning, so that it appears at every usual log level. */
export function logOverride(
  log: Log,
  audit: string,
  { id: override, by, from }: StoredOverride,
  said: object,
  message: string,
): void {
  log.warn({ audit, ...said, by, from, override }, message)
}

/** An override as the admin port reports it. */
export function reportOverride(override: StoredOverride, contents: Contents): LiveOverride {
  const { id, kind, what, at, by, from, why, until } = override
  const path = pathToUndo(override, contents)
  return {
    id,
    kind,
    what,
    at,
    by,
    from,
    why: why ?? null,
    until: until ?? null,
    /** False when it has been undone, has expired, or was replaced by another override. */
    undo: path !== undefined,
    undo_call: path === undefined ? null : `DELETE ${path}`,
  }
}

/** Undefined when what the override set is no longer there. */
function pathToUndo({ id, kind, set }: StoredOverride, contents: Contents): string | undefined {
  if (set === undefined || kind === 'reset') return undefined
  const [collection, pathOf] = UNDONE_BY[kind]
  const there = contents[collection].get(set)
  if (there === undefined || isPast(there, Date.now())) return undefined
  return there.override === id ? pathOf(set) : undefined
}

/** Newest first, in the order in which they were stored, which is the same on all gateways. */
export function newestFirst(overrides: Iterable<StoredOverride>): StoredOverride[] {
  const earlier = (a: StoredOverride, b: StoredOverride) => (a.at < b.at ? 1 : a.at > b.at ? -1 : 0)
  return [...overrides].sort((a, b) => (b.order ?? 0) - (a.order ?? 0) || earlier(a, b))
}
