/** Reports lifetime windows that end with the process, and those of which anybody may have one. */
import { isLifetime, windowsOf } from '../../config/words/quota.js'
import { columnName, columnOfUnknown, countsUnknownBy, UNLIMITED } from '../../config/words/words.js'
import type { Remark, Subject } from './lint.js'

export function checkLifetimes(subject: Subject): Remark[] {
  return [...endsWithProcess(subject), ...forAnybody(subject)]
}

/** Said once, at the first such window. */
function endsWithProcess({ limits, loaded }: Subject): Remark[] {
  if (loaded.config.gateway.redis !== '') return []
  const places = limits.flatMap(({ file, document }) =>
    document.limits.flatMap(({ quotas }, i) =>
      Object.entries(quotas).flatMap(([bucket, quota]) => {
        const place = quota === UNLIMITED ? -1 : (quota.windows ?? []).findIndex(isLifetime)
        return place < 0 ? [] : [{ file, path: ['limits', i, 'quotas', bucket, 'windows', place, 'per'] }]
      }),
    ),
  )
  const message =
    'Without Redis, lifetime windows last as long as the process: then what was spent counts no more, and credit is lost. Set "redis".'
  return places.slice(0, 1).map(place => ({ severity: 'warning', ...place, message }))
}

/** Counters of lifetime windows are kept for ever, so there must not be one for each address on the internet. */
function forAnybody({ loaded: { config, compiled } }: Subject): Remark[] {
  const { unknownProject } = config.gateway
  const column = columnOfUnknown(unknownProject)
  if (column === undefined || countsUnknownBy(unknownProject) === 'together') return []
  const table = compiled.policy.columns.get(columnName(column.plan, column.environment))
  const found = [...(table?.rules.values() ?? [])].flatMap(({ id, config }) =>
    'unlimited' in config
      ? []
      : windowsOf(config)
          .filter(window => isLifetime(window) && window.requests > 0)
          .map(({ name }) => `"${id}.${name}"`),
  )
  if (found.length === 0) return []
  const message = `Each unknown caller has ${found.join(', ')} of its own, which is kept for ever: give these callers a plan without lifetime windows, or reject them.`
  return [{ severity: 'warning', file: config.gatewayFile, path: ['unknownProject'], message }]
}
