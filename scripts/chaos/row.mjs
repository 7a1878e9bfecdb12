/** A row of the page: what was measured, with the promise beside it. */
import { say } from '../lib/run.mjs'

/** One cell; `isKept` says whether `told` is as promised. */
export const kept = (told, promise, isKept) => ({ told, promise, isKept })

/** A time in milliseconds, up to `lateMs` of which may have been spent waiting for a core. */
export function keptInTime(ms, withinMs, lateMs) {
  const late = ms > withinMs ? `, plus ${Math.round(lateMs)} ms without a core` : ''
  return kept(`${Math.round(ms)} ms`, `${withinMs} ms${late}`, ms - lateMs <= withinMs)
}

/** After this long without a core, the result may reflect the machine. */
const LATE_MS = 1_000
const TRIES = 3

/**
 * Measures a fault and reports the verdict. A broken promise is measured anew when the machine had no core for the run;
 * when the waits add up to more than the run itself, the verdict is unknown (`isUnknown`).
 *
 * @param measure resolves to `cells`, `lateMs`, and `more` to report
 */
export async function verdictRow(part, name, measure) {
  for (let tries = 1; ; tries += 1) {
    const begun = performance.now()
    const { cells, lateMs, more = '' } = await measure()
    const isKept = cells.every(cell => cell.isKept)
    const isAgain = !isKept && lateMs > LATE_MS && tries < TRIES
    const isUnknown = !isKept && !isAgain && lateMs > performance.now() - begun
    const verdict = isKept ? 'kept   ' : isAgain ? 'again  ' : isUnknown ? 'unknown' : 'BROKEN '
    const late = `${Math.round(lateMs)} ms waiting for a core`
    say(`${verdict} ${part} / ${name}: ${cells.map(({ told }) => told).join('; ')} (${more}${late})`)
    if (!isAgain) return { name, cells, isUnknown }
  }
}
