/** Reports numbers of a quota that have no effect, and what leases may withhold. */

import type { Path } from '../../config/problem.js'
import type { Gateway } from '../../config/schema/gateway.js'
import type { BucketConfig } from '../../config/words/bucket.js'
import type { Quota } from '../../config/words/quota.js'
import { UNLIMITED } from '../../config/words/words.js'
import { leaseBound } from '../../gateway/decide/leases/lease-client.js'
import { demandOf } from '../../gateway/decide/project-limits.js'
import { perText } from '../../gateway/forward/units.js'
import type { Window } from '../../gateway/types.js'
import { grouped } from '../text.js'
import type { Remark, Subject } from './finding.js'

export function checkQuotas(subject: Subject): Remark[] {
  const { limits, loaded } = subject
  const { config, compiled } = loaded
  const rows = limits.flatMap(({ file, document }) =>
    document.limits.flatMap(({ quotas }, i) =>
      Object.entries(quotas).flatMap(([bucket, quota]) =>
        remarksOn(quota === UNLIMITED ? { unlimited: true } : quota, config.gateway, file, [
          'limits',
          i,
          'quotas',
          bucket,
        ]),
      ),
    ),
  )
  const overrides = config.projects.flatMap(({ id, overrides }, i) =>
    Object.keys(overrides).flatMap(bucket => {
      const quota = compiled.policy.projects.get(id)?.rules.get(bucket)?.config
      if (quota === undefined) return []
      return remarksOn(quota, config.gateway, config.projectsFile, ['projects', i, 'overrides', bucket])
    }),
  )
  return [...rows, ...overrides, ...sameNames(subject)]
}

/** Windows are counted by name: what one name means should not depend on the plan. */
function sameNames({ limits }: Subject): Remark[] {
  const known = new Map<string, string>()
  return limits.flatMap(({ file, document }) =>
    document.limits.flatMap(({ quotas }, i) =>
      Object.entries(quotas).flatMap(([bucket, quota]): Remark[] => {
        if (quota === UNLIMITED) return []
        return demandOf(quota).windows.flatMap(({ name, ms, calendar }): Remark[] => {
          const [of, per] = [`${bucket} ${name}`, perText(ms, calendar)]
          const other = known.get(of) ?? per
          known.set(of, other)
          if (other === per) return []
          const message = `"${name}" counts ${per} here and ${other} in another row: a project that changes its plan takes what it spent along, because a window is known by its name.`
          return [{ severity: 'note', file, path: ['limits', i, 'quotas', bucket], message }]
        })
      }),
    ),
  )
}

function remarksOn(quota: BucketConfig, gateway: Gateway, file: string, path: Path): Remark[] {
  if ('unlimited' in quota) return []
  const { windows } = demandOf(quota)
  const messages = windows
    .filter(({ calendar }) => calendar === undefined)
    .flatMap(shorter => {
      return windows.flatMap(longer => (longer.ms > shorter.ms ? idleOf(shorter, longer) : []))
    })
  const remarks: Remark[] = messages.map(message => ({ severity: 'warning', file, path, message }))
  if (quota.lease) remarks.push({ severity: 'note', file, path, message: leaseSentence(quota, gateway) })
  return remarks
}

/** Says which of two windows can never refuse a request, as sentences. */
function idleOf(shorter: Window, longer: Window): string[] {
  const sentences: string[] = []
  const [brief, long] = [shorter, longer].map(({ ms, calendar }) => perText(ms, calendar)) as [string, string]
  const most = mostIn(longer.ms, shorter)
  if (most < longer.quota) {
    sentences.push(
      `"${longer.name}" can never refuse anybody: ${saidOf(shorter)} ${brief} lets at most ${grouped(most)} requests through ${inText(long)}, and ${grouped(longer.quota)} are allowed.`,
    )
  }
  if (longer.quota < shorter.quota) {
    sentences.push(
      `"${shorter.name}" can never refuse anybody: ${grouped(shorter.quota)} requests ${inText(brief)} are allowed, but only ${grouped(longer.quota)} ${inText(long)}.`,
    )
  }
  return sentences
}

/** `per hour` → `in an hour`. */
const inText = (per: string): string =>
  per
    .replace(/^per (?=\d)/, 'in ')
    .replace(/^per (?=hour)/, 'in an ')
    .replace(/^per /, 'in a ')

const saidOf = ({ name, quota }: Window): string =>
  name === 'burst' ? `a burst of ${quota}` : `"${name}" with ${grouped(quota)}`

/**
 * What a window by itself admits within `ms`: algorithms other than the sliding window admit one window's worth more at
 * the edges.
 */
function mostIn(ms: number, { quota, ms: length, algorithm }: Window): number {
  return quota * (Math.ceil(ms / length) + (algorithm === 'sliding-window' ? 0 : 1))
}

/** What `lease: true` guarantees and what it costs. Every worker leases separately. */
export function leaseSentence(quota: Quota, { listen }: Gateway): string {
  const { tokens, ms } = leaseBound(demandOf(quota))
  const holder = listen.workers === 1 ? 'one gateway' : 'one worker of a gateway'
  return `Leases: never more than the quota is admitted; ${holder} holds at most ${grouped(tokens)} unspent tokens for at most ${ms} ms.`
}
