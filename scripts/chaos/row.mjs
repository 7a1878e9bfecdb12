/** A row of the page: what was measured, with the promise beside it. */
import { say } from '../lib/run.mjs'

/** One cell; `isKept` says whether `told` is as promised. */
export const kept = (told, promise, isKept) => ({ told, promise, isKept })

/** A time in milliseconds, of which the machine may have had no core for `lateMs`. */
export function keptInTime(ms, withinMs, lateMs) {
  const late = ms > withinMs ? `, and ${Math.round(lateMs)} ms without a core` : ''
  return kept(`${Math.round(ms)} ms`, `${withinMs} ms${late}`, ms - lateMs <= withinMs)
}

/** Says how it went. */
export function verdictRow(part, name, cells, more = '') {
  const isKept = cells.every(cell => cell.isKept)
  say(`${isKept ? 'kept  ' : 'BROKEN'} ${part} / ${name}: ${cells.map(({ told }) => told).join('; ')}${more}`)
  return { name, cells }
}
