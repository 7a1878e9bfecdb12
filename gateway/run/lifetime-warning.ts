/** A warning of lifetime windows that cannot keep what they promise. */
import { isLifetime, windowsOf } from '../../config/words/quota.js'
import type { Configuration } from '../configured/load.js'
import type { Log } from '../types.js'

/** Warns if this process alone counts lifetime windows: what they know ends with it. */
export function warnOfLifetimes({ config, compiled }: Configuration, log: Log): void {
  if (config.gateway.redis !== '') return
  const tables = [...compiled.policy.columns.values(), ...compiled.policy.projects.values()]
  const buckets = tables
    .flatMap(({ rules }) => [...rules.values()])
    .filter(({ config }) => !('unlimited' in config) && windowsOf(config).some(isLifetime))
  if (buckets.length === 0) return
  const names = [...new Set(buckets.map(({ id }) => id))]
  log.warn(
    { buckets: names },
    'Without Redis, lifetime windows last as long as this process: what was spent and all credit end with it',
  )
}
