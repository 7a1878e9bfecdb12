/** Compiles `split` of a route: which of several upstreams a caller always goes to. Pure. */

import { isDeepStrictEqual } from 'node:util'
import { fractionOf } from '../../config/words/share.js'
import { isUnknownCaller } from '../../config/words/words.js'
import type { Split } from '../route.js'
import type { FaultHere } from './fault.js'
import type { UpstreamReading } from './upstream-reading.js'

interface Portion {
  readonly upstream: string
  /** In per cent. */
  readonly share: number
}

/** @param readings how upstreams interpret requests, by name, where that matters */
export function compileSplit(
  portions: readonly Portion[] | undefined,
  readings: ReadonlyMap<string, UpstreamReading>,
  faults: FaultHere[],
): Split | undefined {
  const [first] = portions ?? []
  if (portions === undefined || first === undefined) return undefined
  for (const [i, { upstream }] of portions.entries()) {
    if (isDeepStrictEqual(readings.get(upstream), readings.get(first.upstream))) continue
    const message = `"${upstream}" and "${first.upstream}" read requests differently (pathParameters, caseInsensitivePaths, methodOverride), so it is not certain what to count. Set these keys alike.`
    faults.push({ path: ['split', i, 'upstream'], message })
  }
  const used = portions.filter(({ share }) => share > 0)
  const last = used.at(-1) ?? first
  return {
    upstreams: portions.map(({ upstream }) => upstream),
    upstreamFor({ network }, { id }) {
      let percent = fractionOf(isUnknownCaller(id) ? network : id) * 100
      for (const { upstream, share } of used) {
        if (percent < share) return upstream
        percent -= share
      }
      return last.upstream
    },
  }
}
