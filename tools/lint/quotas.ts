/** Numbers of a quota that cannot matter, and what leases may withhold. */
import type { Path } from '../../config/problem.js'
import type { Gateway } from '../../config/schema.js'
import { demandOf } from '../../gateway/decide/project-limits.js'
import { leaseBound } from '../../gateway/decide/store/lender.js'
import type { Quota } from '../../gateway/policy/compile.js'
import { grouped } from '../text.js'
import type { Remark, Subject } from './finding.js'

export function checkQuotas(subject: Subject): Remark[] {
  const { limits, loaded } = subject
  const { config, compiled } = loaded
  const rows = limits.flatMap(({ file, document }) =>
    document.limits.flatMap(({ quotas }, i) =>
      Object.entries(quotas).flatMap(([bucket, quota]) =>
        remarksOn(quota, config.gateway, file, ['limits', i, 'quotas', bucket]),
      ),
    ),
  )
  const overrides = config.projects.flatMap(({ id, overrides }, i) =>
    Object.keys(overrides).flatMap(bucket => {
      const quota = compiled.policy.projects.get(id)?.rules.get(bucket)?.config as Quota
      return remarksOn(quota, config.gateway, config.projectsFile, ['projects', i, 'overrides', bucket])
    }),
  )
  return [...rows, ...overrides]
}

function remarksOn(quota: Quota, gateway: Gateway, file: string, path: Path): Remark[] {
  const { burst, sustained, lease } = quota
  const remarks: Remark[] = []
  const warn = (message: string) => remarks.push({ severity: 'warning', file, path, message })
  const most = mostPerMinute(quota)
  if (most < sustained) {
    warn(
      `"sustained" can never refuse anybody: a burst of ${burst} per second lets at most ${grouped(most)} requests through in a minute, and ${grouped(sustained)} are allowed.`,
    )
  }
  if (sustained < burst) {
    warn(
      `"burst" can never refuse anybody: ${grouped(burst)} requests in a second are allowed, but only ${grouped(sustained)} in a minute.`,
    )
  }
  if (lease) remarks.push({ severity: 'note', file, path, message: leaseSentence(quota, gateway) })
  return remarks
}

/** What burst alone admits: other algorithms than the sliding window have one second's worth more at the edges. */
function mostPerMinute({ burst, algorithm }: Quota): number {
  return burst * (algorithm === 'sliding-window' ? 60 : 61)
}

/** What `lease: true` promises and what it costs. Every worker leases for itself. */
export function leaseSentence(quota: Quota, { listen }: Gateway): string {
  const { tokens, ms } = leaseBound(demandOf(quota))
  const holder = listen.workers === 1 ? 'one gateway' : 'one worker of a gateway'
  return `Leases: never more than the quota is admitted; ${holder} holds at most ${grouped(tokens)} unspent tokens for at most ${ms} ms.`
}
