/** Checks of quotas with lifetime windows, to which credit adds. */
import { lifetimeFault } from '../../config/words/quota.js'
import { UNLIMITED } from '../../config/words/words.js'
import type { KnownBuckets } from './buckets.js'
import { type PolicyConfig, projectLimitsIn } from './documents.js'
import type { Fault } from './fault.js'

/** Reports lifetime windows of rows that cannot be counted, or to which no credit could be given. */
export function checkLifetimes(config: PolicyConfig, buckets: KnownBuckets, faults: Fault[]): void {
  for (const { file, document } of projectLimitsIn(config)) {
    for (const [i, { quotas }] of document.limits.entries()) {
      for (const [bucket, quota] of Object.entries(quotas)) {
        if (quota === UNLIMITED) continue
        const message = lifetimeFault(quota, buckets.get(bucket)?.key)
        if (message !== undefined) faults.push({ file, path: ['limits', i, 'quotas', bucket], message })
      }
    }
  }
}
