/** How the upstreams of a configuration interpret requests, and what that means for its buckets. */

import { type Config, isProjectLimits } from '../../config/load.js'
import type { Gateway } from '../../config/schema/gateway.js'
import { patternsOf } from '../../config/words/bucket.js'
import { MODES } from '../../config/words/words.js'
import { GatewayError } from '../errors.js'
import { normalizePath } from '../listen/path.js'
import type { Fault } from '../policy/fault.js'
import { foldPattern, parsePattern } from '../policy/pattern.js'
import { PathTrie } from '../policy/trie.js'
import type { UpstreamReading } from '../policy/upstream-reading.js'

/** The readings, by name, of the upstreams that by their settings read requests differently from plain matching. */
export function upstreamReadings({ upstreams }: Gateway): Map<string, UpstreamReading> {
  const readings = new Map<string, UpstreamReading>()
  for (const [name, upstream] of Object.entries(upstreams)) {
    if ('embedded' in upstream) continue
    const { pathParameters, caseInsensitivePaths, methodOverride } = upstream
    if (pathParameters === 'literal' && !caseInsensitivePaths && methodOverride === undefined) continue
    readings.set(name, { pathParameters, caseInsensitivePaths, methodOverride })
  }
  return readings
}

/** Faults of patterns in two buckets that are the same for an upstream that ignores letter case. */
export function caseTies({ gateway, policies }: Config): Fault[] {
  const folding = [...upstreamReadings(gateway)].find(
    ([, { caseInsensitivePaths }]) => caseInsensitivePaths,
  )?.[0]
  if (folding === undefined) return []
  const faults: Fault[] = []
  const owners = { enforce: new PathTrie<string>(), 'report-only': new PathTrie<string>() }
  for (const { file, document } of policies.filter(isProjectLimits)) {
    const modes = document.enforceFor === undefined ? [document.mode] : MODES
    for (const [bucket, entry] of Object.entries(document.buckets)) {
      for (const { text, path } of patternsOf(entry, ['buckets', bucket])) {
        const pattern = foldPattern(parsePattern(text))
        const tie = modes.map(mode => owners[mode].add(pattern, bucket)).find(one => one !== undefined)
        if (tie === undefined || tie.value === bucket) continue
        const message = `The pattern "${text}" differs from "${tie.route}" of bucket "${tie.value}" in letter case alone, which upstream "${folding}" does not tell apart: a request must fall into exactly one bucket. Remove one of the two.`
        faults.push({ file, path, message })
      }
    }
  }
  return faults
}

/** A project's path prefix, normalized like request paths; one that cannot occur in a request stays as it is. */
export function normalPrefix(prefix: string): string {
  try {
    return normalizePath(prefix)
  } catch (error) {
    if (error instanceof GatewayError) return prefix
    throw error
  }
}
