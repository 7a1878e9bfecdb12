/** What one instance may spend by itself while Redis is away, and how its answers report that. */
import type { Demand, Window } from '../../demand.js'
import { type Answer, type Ask, type Count, costOf, counted, isLifetimeAt } from '../store/store.js'
import type { LastAnswer } from './last-answers.js'

/** One instance's part of a quota, with room for at least one request. */
export function partOf(whole: number, instances: number, cost = 1): number {
  return Math.max(Math.min(cost, whole), Math.floor(whole / instances))
}

/**
 * The ask with this instance's part of the quota or, while Redis's last answer still counts, its part of what was left
 * then, which may be 0.
 */
export function shareOf(ask: Ask, instances: number, last: LastAnswer | undefined): Ask {
  const { demand } = ask
  if (demand.kind === 'slots') {
    return { ...ask, demand: { ...demand, max: partOf(demand.max, instances) } }
  }
  if (demand.kind === 'meter') {
    const quota = shareLeft(demand, costOf(demand), instances, last, 0, true)
    // With a quota of 0, this process admits no request that could begin a block.
    const blockMs = quota === 0 ? 0 : demand.blockMs
    return { ...ask, demand: { ...demand, quota, blockMs } }
  }
  const windows = demand.windows.map((window, i) => ({
    ...window,
    quota: window.lifetime
      ? lifetimeShareLeft(window, instances, last?.counts[i])
      : shareLeft(window, costOf(demand), instances, last, i, window.calendar !== undefined),
  }))
  return { ...ask, demand: { ...demand, windows } }
}

/**
 * The answer for this instance's share, in terms of its part of the quota: what others may have spent counts as used.
 */
export function localAnswer(
  ask: Ask,
  answer: Answer,
  instances: number,
  last: LastAnswer | undefined,
): Answer {
  const { demand } = ask
  if (demand.kind === 'slots') return answer
  const cost = costOf(demand)
  const counts = answer.counts.map((count, i): Count => {
    const { quota: whole } = windowOf(demand, i)
    if (isLifetimeAt(demand, i)) return lifetimeCount(count, whole, instances, last?.counts[i]?.credit)
    const quota = partOf(whole, instances, cost)
    const used = quota - (count.left ?? 0)
    const resetMs = count.violated ? Math.max(count.resetMs, lockedMs(last, i, count, cost)) : count.resetMs
    return counted(quota, Math.max(used, count.used ?? 0), count.violated, resetMs, count.windowMs)
  })
  return { ...answer, counts }
}

function shareLeft(
  { quota, ms }: Pick<Window, 'quota' | 'ms'>,
  cost: number,
  instances: number,
  last: LastAnswer | undefined,
  i: number,
  endsWhole: boolean,
): number {
  const count = last?.counts[i]
  const whole = partOf(quota, instances, cost)
  if (count?.used === undefined || last === undefined) return whole
  // In calendar windows and meters, tokens count until the period, window or block ends; elsewhere for the window's
  // length at most.
  if (last.elapsedMs >= (endsWhole ? count.resetMs : ms)) return whole
  return Math.min(whole, Math.floor(Math.max(0, quota - count.used) / instances))
}

/**
 * A lifetime window never begins anew, so what was spent of it is known from Redis alone: without an answer there is
 * nothing to share.
 */
function lifetimeShareLeft({ quota }: Window, instances: number, count: Count | undefined): number {
  if (count?.used === undefined) return 0
  return Math.floor(Math.max(0, quota + (count.credit ?? 0) - count.used) / instances)
}

/** @param credit by Redis's last answer */
function lifetimeCount(count: Count, whole: number, instances: number, credit: number | undefined): Count {
  const quota = Math.max(count.quota, Math.floor((whole + (credit ?? 0)) / instances))
  return { ...counted(quota, quota - (count.left ?? 0), count.violated, 0), credit }
}

/**
 * Milliseconds until Redis's last answer promised a reset, if the share has no room even for one request: waiting for
 * this process's own window would not help.
 */
function lockedMs(last: LastAnswer | undefined, i: number, { quota }: Count, cost: number): number {
  if (last === undefined || quota >= cost) return 0
  return Math.max(0, (last.counts[i]?.resetMs ?? 0) - last.elapsedMs)
}

function windowOf(demand: Exclude<Demand, { kind: 'slots' }>, i: number): Pick<Window, 'quota' | 'ms'> {
  return demand.kind === 'meter' ? demand : (demand.windows[i] as Window)
}
