/** One fault of one Redis: before, during and after it, against what is promised. */
import { setTimeout as sleep } from 'node:timers/promises'
import { startLoad } from './load.mjs'
import { kept } from './row.mjs'
import { DEADLINE_MS, hostOf, QUOTA, SLOTS } from './settings.mjs'

const BEFORE_MS = 1_200
const LASTS_MS = 2_000
const AFTER_MS = 1_200
const LOOK_EVERY_MS = 100
/** How soon after a fault's end both count in Redis again: a probe each 250 ms, a new connection each second. */
const BACK_WITHIN_MS = 5_000
/** Of an answer, beside the deadline and what the run itself was late: a busy machine. */
const SLACK_MS = 250

/**
 * @param projects gives one that nobody has asked for yet
 * @returns what was measured, with a promise beside each: `cells` of `told`, `promise` and `isKept`; and by how much this process
 *   and the gateways ran late (`lateMs`)
 */
export async function runCell({ fault, form, gateways, app, projects }) {
  const { promise, lastsMs = LASTS_MS, backWithinMs = BACK_WITHIN_MS } = fault
  const project = projects.next()
  const at = { form, project, node: await form.master() }
  const urls = gateways.each.map(({ url }) => url)
  const complained = gateways.complaints().length
  const { failed } = await gateways.state()
  const waited = gateways.waitedMs()
  const load = startLoad(urls, project)
  await sleep(BEFORE_MS)

  const watch = watchAway(gateways)
  const begun = performance.now()
  await fault.begin(at)
  const isSelfHealing = fault.end === undefined
  if (!isSelfHealing) {
    await sleep(lastsMs - (performance.now() - begun))
    await fault.end(at)
  }
  const ended = isSelfHealing ? begun : performance.now()
  const until = () => ended + backWithinMs + gateways.waitedMs() - waited
  const isBack = await comeBack(gateways, projects, until, isSelfHealing)
  const backMs = performance.now() - ended
  await sleep(AFTER_MS)
  const awayMs = await watch.stop()
  const seen = await load.stop()
  const lateMs = gateways.waitedMs() - waited
  await fault.after?.(at)
  const hasFailed = (await gateways.state()).failed > failed
  // Where the machine let Redis seem late, a call that was expected to be counted was not.
  const mostPercent =
    hasFailed && lateMs > DEADLINE_MS ? Math.max(promise.overPercent, 50) : promise.overPercent

  const overPercent = (Math.max(0, seen.admitted - QUOTA) / QUOTA) * 100
  const slots = app.most.get(hostOf(project)) ?? 0
  const strange = [...seen.strange].map(([status, times]) => `${times} × ${status}`)
  if (seen.unanswered > 0) strange.push(`${seen.unanswered} never answered`)
  const warnings = gateways.complaints().slice(complained)
  const patience = DEADLINE_MS + SLACK_MS
  return {
    sent: seen.sent,
    lateMs,
    warnings,
    cells: [
      kept(
        `${seen.admitted} of ${QUOTA}: ${overPercent.toFixed(1)} %`,
        `${mostPercent} %`,
        overPercent <= mostPercent,
      ),
      kept(`${slots} of ${SLOTS}`, `${SLOTS * 1.5}`, slots <= SLOTS * 1.5),
      { told: `${(awayMs / 1000).toFixed(1)} s`, isKept: true },
      kept(isBack ? `${(backMs / 1000).toFixed(1)} s` : 'not back', `${backWithinMs / 1000} s`, isBack),
      kept(strange.join(', ') || 'none', 'none', strange.length === 0),
      kept(`${Math.round(seen.longestMs)} ms`, `${patience} ms`, seen.longestMs - lateMs <= patience),
      kept(warnings.length === 0 ? 'none' : `${warnings.length}`, 'none', warnings.length === 0),
    ],
  }
}

/** The columns of `cells`. */
export const COLUMNS = [
  'admitted',
  'slots at a time',
  'counted apart',
  'back after',
  'statuses beside 200 and 429',
  'longest answer',
  'warnings',
]

/** Whether both gateways count together again before `until`. Of a fault that heals by itself it must have been felt first. */
async function comeBack(gateways, projects, until, isSelfHealing) {
  if (isSelfHealing) await sleep(500)
  while (performance.now() < until()) {
    if (!(await gateways.state()).isAway && (await gateways.countTogether(projects.next()))) return true
    await sleep(LOOK_EVERY_MS)
  }
  return false
}

/** Adds up for how long a gateway counts by itself. */
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
