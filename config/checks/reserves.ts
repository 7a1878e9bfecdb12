/** Checks of costs that are reserved, which a schema cannot express. Pure. */
import type { FileFault, ProjectLimitsPolicy } from '../types.js'

/** Reports bounds that bound nothing. */
export function checkReserves(limits: readonly ProjectLimitsPolicy[]): FileFault[] {
  return limits.flatMap(({ file, document }) =>
    Object.entries(document.buckets).flatMap(([name, bucket]) => {
      const cost = 'length' in bucket ? undefined : bucket.cost
      if (typeof cost !== 'object') return []
      const { default: usual, atMost = usual } = cost.reserve
      if (atMost >= usual) return []
      const message = `"atMost" is less than "default" (${usual}), so it bounds nothing. Raise it, or lower the default.`
      return [{ file, path: ['buckets', name, 'cost', 'reserve', 'atMost'], message }]
    }),
  )
}
