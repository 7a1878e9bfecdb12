/** A row of the page: what was measured, with the promise beside it. */
import { say } from '../lib/run.mjs'

/** One cell; `isKept` says whether `told` is as promised. */
export const kept = (told, promise, isKept) => ({ told, promise, isKept })

/** Says how it went. */
export function verdictRow(part, name, cells, more = '') {
  const isKept = cells.every(cell => cell.isKept)
  say(`${isKept ? 'kept  ' : 'BROKEN'} ${part} / ${name}: ${cells.map(({ told }) => told).join('; ')}${more}`)
  return { name, cells }
}
