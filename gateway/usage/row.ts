/** Usage by hour, project and bucket. */

export interface UsageRow {
  /** The hour's beginning, such as `2026-11-27T06:00:00Z`. */
  readonly hour: string
  readonly project: string
  readonly plan: string
  readonly environment: string
  /** Null where the request falls into none. */
  readonly bucket: string | null
  readonly requests: number
  readonly admitted: number
  readonly refused: number
  /** What the admitted requests cost. */
  readonly cost: number
}

/** What is counted of one row. */
export type UsageCounts = Pick<UsageRow, 'requests' | 'admitted' | 'refused' | 'cost'>
export const COUNTED = ['requests', 'admitted', 'refused', 'cost'] as const

/** The counts of an hour, by `nameOf`. */
export type HourCounts = ReadonlyMap<string, UsageCounts>

export const HOUR_MS = 3_600_000

/** Number of the hour that contains a time in ms since the epoch. */
export function hourOf(ms: number): number {
  return Math.floor(ms / HOUR_MS)
}

/** Whose usage, and of what: the counts with equal names are added up. */
export function nameOf(row: Pick<UsageRow, 'project' | 'plan' | 'environment' | 'bucket'>): string {
  return JSON.stringify([row.project, row.plan, row.environment, row.bucket])
}

/** The rows of an hour, in the order of their names. */
export function rowsOf(hour: number, counts: HourCounts): UsageRow[] {
  const begin = new Date(hour * HOUR_MS).toISOString().replace('.000Z', 'Z')
  return [...counts]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, numbers]) => {
      const [project, plan, environment, bucket] = JSON.parse(name) as [string, string, string, string | null]
      return { hour: begin, project, plan, environment, bucket, ...numbers }
    })
}

/** Adds counts to those of a name. */
export function addTo(counts: Map<string, UsageCounts>, name: string, more: UsageCounts): void {
  const known = counts.get(name)
  if (known === undefined) counts.set(name, more)
  else
    counts.set(name, {
      requests: known.requests + more.requests,
      admitted: known.admitted + more.admitted,
      refused: known.refused + more.refused,
      cost: known.cost + more.cost,
    })
}
