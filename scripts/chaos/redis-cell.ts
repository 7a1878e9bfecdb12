/** One fault of one form of Redis: measured before, during and after it, against what is promised. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Seen, startLoad } from './load.js'
import type { At, RedisFault } from './redis-faults.js'
import type { RedisForm } from './redis-forms.js'
import { DEADLINE_MS, type Gateways, hostOf, QUOTA, SLOTS, type WorkingApp } from './redis-setup.js'
import { type Cell, cell, type Measured, timeCell } from './row.js'

const BEFORE_MS = 1_200
const LASTS_MS = 2_000
const AFTER_MS = 1_200
const LOOK_EVERY_MS = 100
/**
 * How soon after a fault both gateways must count in Redis again: a probe every 250 ms, a new connection every second.
 */
const BACK_WITHIN_MS = 5_000
/** Allowed for a response besides the deadline and the time for which the run itself waited for a core. */
const SLACK_MS = 250

export interface CellRun {
  readonly fault: RedisFault
  readonly form: RedisForm
  readonly gateways: Gateways
  readonly app: WorkingApp
  /** Gives a project that has had no requests yet. */
  readonly nextProject: () => string
}

export interface MeasuredCell extends Measured {
  /** How many requests were sent. */
  readonly sent: number
  /** What the gateways should not have logged. */
  readonly complaints: readonly string[]
  /** Repairs what the fault left behind. */
  mend(): Promise<void>
}

export async function runCell({ fault, form, gateways, app, nextProject }: CellRun): Promise<MeasuredCell> {
  const project = nextProject()
  const at = { form, project, node: await form.master() }
  const { failed } = await gateways.state()
  const complained = gateways.complaints().length
  const waited = gateways.waitedMs()
  const load = startLoad(
    gateways.each.map(({ url }) => url),
    project,
  )
  const watch = watchAway(gateways)
  const measuring = goThrough(fault, at, gateways, nextProject)
  // Both end also when the fault could not be brought about.
  await measuring.catch(() => undefined)
  const [awayMs, seen] = await Promise.all([watch.stop(), load.stop()])
  const back = await measuring
  const lateMs = gateways.waitedMs() - waited
  const hasFailed = (await gateways.state()).failed > failed
  // On a busy machine Redis can seem late, so that calls fail that the promise expects to be counted.
  const isExcused = hasFailed && lateMs > DEADLINE_MS
  const mostPercent = isExcused ? Math.max(fault.promise.overPercent, 50) : fault.promise.overPercent
  const slots = app.most.get(hostOf(project)) ?? 0
  const complaints = gateways.complaints().slice(complained)
  return {
    sent: seen.sent,
    lateMs,
    complaints,
    mend: async () => void (await fault.after?.(at)),
    cells: cellsOf({ ...seen, ...back, awayMs, lateMs, mostPercent, slots, complaints }),
  }
}

interface Back {
  /** Whether both gateways recovered. */
  readonly isBack: boolean
  readonly backMs: number
  /** The limit of it. */
  readonly withinMs: number
}

async function goThrough(
  fault: RedisFault,
  at: At,
  gateways: Gateways,
  nextProject: () => string,
): Promise<Back> {
  const { lastsMs = LASTS_MS } = fault
  const withinMs = fault.backWithinMs ?? at.form.backWithinMs ?? BACK_WITHIN_MS
  const waited = gateways.waitedMs()
  await sleep(BEFORE_MS)
  const begun = performance.now()
  await fault.begin(at)
  const isSelfHealing = fault.end === undefined
  if (fault.end) {
    await sleep(lastsMs - (performance.now() - begun))
    await fault.end(at)
  }
  const ended = isSelfHealing ? begun : performance.now()
  const until = () => ended + withinMs + Math.min(gateways.waitedMs() - waited, withinMs)
  const isBack = await comeBack(gateways, nextProject, until, isSelfHealing)
  const backMs = performance.now() - ended
  await sleep(AFTER_MS)
  return { isBack, backMs, withinMs }
}

interface All extends Seen, Back {
  readonly awayMs: number
  readonly lateMs: number
  readonly mostPercent: number
  readonly slots: number
  readonly complaints: readonly string[]
}

function cellsOf(seen: All): Cell[] {
  const { admitted, slots, awayMs, longestMs, lateMs, complaints } = seen
  const overPercent = (Math.max(0, admitted - QUOTA) / QUOTA) * 100
  const strange = [...seen.strange].map(([status, times]) => `${times} × ${status}`)
  if (seen.unanswered > 0) strange.push(`${seen.unanswered} never answered`)
  const patience = DEADLINE_MS + SLACK_MS
  const over = `${admitted} of ${QUOTA}: ${overPercent.toFixed(1)} %`
  const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`
  return [
    cell(over, `${seen.mostPercent} %`, overPercent <= seen.mostPercent),
    // Those in Redis, and the share of each gateway beside them.
    cell(`${slots} of ${SLOTS}`, SLOTS * 2, slots <= SLOTS * 2),
    { text: seconds(awayMs), holds: true },
    cell(seen.isBack ? seconds(seen.backMs) : 'not back', `${seen.withinMs / 1000} s`, seen.isBack),
    cell(strange.join(', ') || 'none', 'none', strange.length === 0),
    timeCell(longestMs, patience, lateMs),
    cell(complaints.length, 0, complaints.length === 0),
  ]
}

/** The columns of `cells`. */
export const COLUMNS = [
  'admitted',
  'concurrent slots',
  'counted locally',
  'back after',
  'statuses other than 200 and 429',
  'longest response',
  'warnings and errors',
]

/**
 * Whether both gateways count together again before `until`. A fault that heals by itself first gets time to take
 * effect.
 */
async function comeBack(
  gateways: Gateways,
  nextProject: () => string,
  until: () => number,
  isSelfHealing: boolean,
): Promise<boolean> {
  if (isSelfHealing) await sleep(500)
  while (performance.now() < until()) {
    if (!(await gateways.state()).isAway && (await gateways.countTogether(nextProject()))) return true
    await sleep(LOOK_EVERY_MS)
  }
  return false
}

/** Adds up for how long a gateway counts locally. */
function watchAway(gateways: Gateways): { stop(): Promise<number> } {
  let isOn = true
  let sum = 0
  const watching = (async () => {
    let last = performance.now()
    while (isOn) {
      const { isAway } = await gateways.state()
      const now = performance.now()
      if (isAway) sum += now - last
      last = now
      await sleep(LOOK_EVERY_MS)
    }
  })()
  return {
    async stop() {
      isOn = false
      await watching
      return sum
    },
  }
}
