/** Reads the usage that was asked for, hour by hour. */
import { isDayOrInstant } from '../../config/formats.js'
import { Unnamed } from '../errors.js'
import { HOUR_MS, hourOf, rowsOf, type UsageRow } from './row.js'
import type { UsageStore } from './store.js'

/** Days and moments as text. */
export interface UsageAsked {
  /** Default: 24 hours ago. */
  readonly from?: string
  /** Not contained. Default: now, with the present hour as far as it has been counted. */
  readonly to?: string
  /** Only of this project. */
  readonly project?: string
}

/** The rows of the hours from the one that contains `from` up to `to`. @throws {Unnamed} {Unreachable} */
export async function* usageRows(
  store: Pick<UsageStore, 'read'>,
  { from, to, project }: UsageAsked,
  keepMs: number,
): AsyncGenerator<UsageRow> {
  const now = Date.now()
  const end = Math.min(timeOf('to', to) ?? now, now)
  const begin = timeOf('from', from) ?? now - 24 * HOUR_MS
  if (to !== undefined && begin >= (timeOf('to', to) as number))
    throw new Unnamed('"from" must be before "to".')
  for (let hour = hourOf(Math.max(begin, now - keepMs)); hour * HOUR_MS < end; hour += 1) {
    for (const row of rowsOf(hour, await store.read(hour))) {
      if (project === undefined || row.project === project) yield row
    }
  }
}

/** A day is its beginning (UTC). */
function timeOf(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  if (isDayOrInstant(text)) return Date.parse(text)
  throw new Unnamed(
    `"${name}" must be a day such as 2026-12-31 or a moment such as 2026-12-31T18:00:00Z, but it is "${text}".`,
  )
}
