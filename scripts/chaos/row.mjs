/** A row of the page: what was measured, with the promise beside it. */
import { say } from '../lib/run.mjs'

/** One cell; `isKept` says whether `told` is as promised. */
export const kept = (told, promise, isKept) => ({ told, promise, isKept })

/** A time in milliseconds, of which the machine may have had no core for `lateMs`. */
export function keptInTime(ms, withinMs, lateMs) {
  const late = ms > withinMs ? `, and ${Math.round(lateMs)} ms without a core` : ''
  return kept(`${Math.round(ms)} ms`, `${withinMs} ms${late}`, ms - lateMs <= withinMs)
}

/** Longer than this without a core, and what was measured may be the machine. */
const LATE_MS = 1_000
const TRIES = 3

/**
 * Measures a fault and says how it went. One that broke a promise while the machine had no core for the run is measured anew;
 * where that was most of the time, nothing can be said of it (`isUnknown`).
 *
 * @param measure resolves to `cells`, `lateMs`, and `more` to say
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
