/** Acts on the admin port: the most recent ones of all gateways on one Redis, or of this process. */
import { randomUUID } from 'node:crypto'
import type { Wished } from '../../admin/wish.js'
import type { Log } from '../../types.js'
import type { Contents, KeptChange } from './kept.js'
import { type Ending, isPast } from './until.js'

/** Plain data, fit for JSON. */
export interface KeptAct extends Ending {
  readonly id: string
  readonly kind: 'mode' | 'access' | 'reset'
  /** A sentence. */
  readonly what: string
  /** ISO 8601. */
  readonly at: string
  /** Who asked for it: a name, or else the address. */
  readonly by: string
  /** The address that the request came from. */
  readonly from: string
  readonly why?: string
  /** Id of the entry or mode it set, which may be removed again. */
  readonly set?: string
  /**
   * One more than that of the previous act, whichever gateway performed it: clocks may differ, and two acts may share a
   * millisecond.
   */
  readonly order?: number
}

/** An act as the admin port reports it. */
export type ToldAct = ReturnType<typeof toldAct>

const MOST_ACTS = 200

const PATHS = { mode: (id: string) => `/rules/${id}/mode`, access: (id: string) => `/access/${id}` }

/** A new act, requested from the address `from`. */
export function actOf(
  kind: KeptAct['kind'],
  what: string,
  { by, why, from, until, set }: Wished & Ending & { readonly from: string; readonly set?: string },
): KeptAct {
  const at = new Date().toISOString()
  const more = { ...(why && { why }), ...(until && { until }), ...(set && { set }) }
  return { id: randomUUID(), kind, what, at, by: by ?? from, from, ...more }
}

/** Stores the act and drops the oldest beyond 200; acts that can be undone are dropped last. */
export function changesFor(act: KeptAct, contents: Contents): KeptChange[] {
  const acts = newestFirst(contents.acts.values())
  const order = (acts[0]?.order ?? 0) + 1
  const canBeUndone = (one: KeptAct) => pathToUndo(one, contents) !== undefined
  const worthKeeping = [...acts.filter(canBeUndone), ...acts.filter(one => !canBeUndone(one))]
  const dropped = worthKeeping.slice(MOST_ACTS - 1).map(({ id }): KeptChange => ({ shelf: 'acts', id }))
  return [{ shelf: 'acts', id: act.id, value: { ...act, order } }, ...dropped]
}

/** The stored acts, the newest first. */
export function toldActs(contents: Contents): ToldAct[] {
  return newestFirst(contents.acts.values()).map(act => toldAct(act, contents))
}

/** Logs an act as a warning, so that it appears at every usual log level. */
export function logAct(
  log: Log,
  audit: string,
  { id: act, by, from }: KeptAct,
  said: object,
  message: string,
): void {
  log.warn({ audit, ...said, by, from, act }, message)
}

export function toldAct(act: KeptAct, contents: Contents) {
  const { id, kind, what, at, by, from, why, until } = act
  const path = pathToUndo(act, contents)
  return {
    id,
    kind,
    what,
    at,
    by,
    from,
    why: why ?? null,
    until: until ?? null,
    /** False when it has been undone, has expired, or was replaced by another act. */
    undo: path !== undefined,
    undo_call: path === undefined ? null : `DELETE ${path}`,
  }
}

/** Undefined when what the act set is no longer there. */
function pathToUndo({ id, kind, set, at }: KeptAct, { access, modes }: Contents): string | undefined {
  if (set === undefined || kind === 'reset') return undefined
  const there = kind === 'mode' ? modes.get(set) : access.get(set)
  if (there === undefined || isPast(there, Date.now())) return undefined
  // Values stored by an earlier release have no act id.
  const isBy = there.act === undefined ? there.at === at : there.act === id
  return isBy ? PATHS[kind](set) : undefined
}

/** Newest first, in the order in which they were stored, which is the same on all gateways. */
export function newestFirst(acts: Iterable<KeptAct>): KeptAct[] {
  const earlier = (a: KeptAct, b: KeptAct) => (a.at < b.at ? 1 : a.at > b.at ? -1 : 0)
  return [...acts].sort((a, b) => (b.order ?? 0) - (a.order ?? 0) || earlier(a, b))
}
