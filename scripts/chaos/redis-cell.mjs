/** One fault of one form of Redis: measured before, during and after it, against what is promised. */
import { setTimeout as sleep } from 'node:timers/promises'
import { startLoad } from './load.mjs'
import { kept, keptInTime } from './row.mjs'
import { DEADLINE_MS, hostOf, QUOTA, SLOTS } from './settings.mjs'

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

/**
 * @param projects returns a project that has had no requests yet
 * @returns what was measured, each with its promise (`cells` of `told`, `promise` and `isKept`); how many requests were
 *   `sent`; how long the run waited for a core (`lateMs`); what the gateways should not have logged (`complaints`); and
 *   `mend`, which repairs what the fault left behind
 */
export async function runCell({ fault, form, gateways, app, projects }) {
  const project = projects.next()
  const at = { form, project, node: await form.master() }
  const { failed } = await gateways.state()
  const complained = gateways.complaints().length
  const waited = gateways.waitedMs()
  const load = startLoad(
    gateways.each.map(({ url }) => url),
    project,
  )
  const watch = watchAway(gateways)
  let back
  let seen
  let awayMs
  try {
    back = await goThrough(fault, at, gateways, projects)
  } finally {
    ;[awayMs, seen] = await Promise.all([watch.stop(), load.stop()])
  }
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
    mend: async () => fault.after?.(at),
    cells: cellsOf({ ...seen, ...back, awayMs, lateMs, mostPercent, slots, complaints }),
  }
}

/**
 * Runs the fault; returns whether both gateways recovered (`isBack`), after how long (`backMs`), and the limit
 * (`withinMs`).
 */
async function goThrough(fault, at, gateways, projects) {
  const { lastsMs = LASTS_MS } = fault
  const withinMs = fault.backWithinMs ?? at.form.backWithinMs ?? BACK_WITHIN_MS
  const waited = gateways.waitedMs()
  await sleep(BEFORE_MS)
  const begun = performance.now()
  await fault.begin(at)
  const isSelfHealing = fault.end === undefined
  if (!isSelfHealing) {
    await sleep(lastsMs - (performance.now() - begun))
    await fault.end(at)
  }
  const ended = isSelfHealing ? begun : performance.now()
  const until = () => ended + withinMs + Math.min(gateways.waitedMs() - waited, withinMs)
  const isBack = await comeBack(gateways, projects, until, isSelfHealing)
  const backMs = performance.now() - ended
  await sleep(AFTER_MS)
  return { isBack, backMs, withinMs }
}

function cellsOf(seen) {
  const { admitted, slots, awayMs, longestMs, lateMs, complaints } = seen
  const overPercent = (Math.max(0, admitted - QUOTA) / QUOTA) * 100
  const strange = [...seen.strange].map(([status, times]) => `${times} × ${status}`)
  if (seen.unanswered > 0) strange.push(`${seen.unanswered} never answered`)
  const patience = DEADLINE_MS + SLACK_MS
  const over = `${admitted} of ${QUOTA}: ${overPercent.toFixed(1)} %`
  const seconds = ms => `${(ms / 1000).toFixed(1)} s`
  return [
    kept(over, `${seen.mostPercent} %`, overPercent <= seen.mostPercent),
    // Those in Redis, and the share of each gateway beside them.
    kept(`${slots} of ${SLOTS}`, SLOTS * 2, slots <= SLOTS * 2),
    { told: seconds(awayMs), isKept: true },
    kept(seen.isBack ? seconds(seen.backMs) : 'not back', `${seen.withinMs / 1000} s`, seen.isBack),
    kept(strange.join(', ') || 'none', 'none', strange.length === 0),
    keptInTime(longestMs, patience, lateMs),
    kept(complaints.length, 0, complaints.length === 0),
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
async function comeBack(gateways, projects, until, isSelfHealing) {
  if (isSelfHealing) await sleep(500)
  while (performance.now() < until()) {
    if (!(await gateways.state()).isAway && (await gateways.countTogether(projects.next()))) return true
    await sleep(LOOK_EVERY_MS)
  }
  return false
}

/** Adds up for how long a gateway counts locally. */
function watchAway(gateways) {
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
