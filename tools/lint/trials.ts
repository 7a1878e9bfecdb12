/** Reports trials that show nothing new, or less than one might think. */
import { isDeepStrictEqual } from 'node:util'
import type { Path } from '../../config/problem.js'
import type { BucketConfig } from '../../config/words/bucket.js'
import { UNLIMITED } from '../../config/words/words.js'
import { demandOf } from '../../gateway/decide/project-limits.js'
import { triedQuota } from '../../gateway/policy/shares-and-trials.js'
import type { Window } from '../../gateway/types.js'
import type { Remark, Subject } from './finding.js'

export function checkTrials({ limits, loaded: { config, compiled } }: Subject): Remark[] {
  const rows = limits.flatMap(({ file, document }) =>
    document.limits.flatMap(({ quotas }, i) =>
      Object.entries(quotas).flatMap(([bucket, quota]) =>
        remarksOn(bucket, quota === UNLIMITED ? { unlimited: true } : quota, file, [
          'limits',
          i,
          'quotas',
          bucket,
          'trial',
        ]),
      ),
    ),
  )
  const overrides = config.projects.flatMap(({ id, overrides }, i) =>
    Object.entries(overrides).flatMap(([bucket, override]) => {
      const quota = compiled.policy.projects.get(id)?.rules.get(bucket)?.config
      if (quota === undefined) return []
      const path = ['projects', i, 'overrides', bucket, 'trial']
      // A row's trial is reported at the row.
      const isOwn = override !== UNLIMITED && override.trial !== undefined
      return !isOwn ? [] : remarksOn(bucket, quota, config.projectsFile, path)
    }),
  )
  return [...rows, ...overrides]
}

function remarksOn(bucket: string, quota: BucketConfig, file: string, path: Path): Remark[] {
  const tried = triedQuota(quota)
  if ('unlimited' in quota || tried === undefined) return []
  const [present, trial] = [demandOf(quota).windows, demandOf(tried).windows]
  const remarks: Remark[] = []
  const say = (severity: Remark['severity'], message: string) =>
    remarks.push({ severity, file, path, message })
  if (admitsAll(trial, present)) {
    if (admitsAll(present, trial)) {
      say(
        'warning',
        `The trial of "${bucket}" is the quota in force, so it tells nothing new: change it, or remove it.`,
      )
    } else {
      say(
        'note',
        `The trial of "${bucket}" is looser than the quota in force: what it would refuse is refused already, so it tells only which of those refusals would stay.`,
      )
    }
  }
  if (quota.lease) {
    say(
      'note',
      `The quota of "${bucket}" is leased, its trial is not: each request costs Redis a call for the trial, for which nobody waits.`,
    )
  }
  return remarks
}

/** True when for each window one of `others` is at least as strict, and so refuses whatever it refuses. */
function admitsAll(windows: readonly Window[], others: readonly Window[]): boolean {
  return windows.every(window =>
    others.some(
      ({ quota, ms, algorithm, calendar }) =>
        ms === window.ms &&
        algorithm === window.algorithm &&
        isDeepStrictEqual(calendar, window.calendar) &&
        quota <= window.quota,
    ),
  )
}
