/** Reports quotas and trials with numbers that have no effect or show nothing new, and what leases may withhold. */

import { isDeepStrictEqual } from 'node:util'
import type { Path } from '../../config/problem.js'
import type { Gateway } from '../../config/schema/gateway.js'
import type { Quota } from '../../config/words/quota.js'
import { pluginConfig, UNLIMITED } from '../../config/words/words.js'
import { leaseBound } from '../../gateway/decide/leases/lease-client.js'
import { demandOf } from '../../gateway/decide/project-limits.js'
import type { Window } from '../../gateway/demand.js'
import type { VolumetricRule } from '../../gateway/explain/settings.js'
import { perText } from '../../gateway/forward/units.js'
import { triedQuota, withTrial } from '../../gateway/policy/shares-and-trials.js'
import { grouped } from '../text.js'
import type { Remark, Subject } from './lint.js'

/** A quota of a row, or of a project as its override leaves it. */
interface WrittenQuota {
  readonly bucket: string
  readonly quota: Quota
  readonly file: string
  readonly path: Path
  /** Whether a trial is written there: one that an override takes over is reported at the row. */
  readonly hasTrial: boolean
}

export function checkQuotas(subject: Subject): Remark[] {
  const rows = rowsOf(subject)
  const remarks = [...rows, ...overridesOf(subject)].flatMap(one => [
    ...windowRemarks(one, subject.loaded.config.gateway),
    ...(one.hasTrial ? trialRemarks(one) : []),
  ])
  return [...remarks, ...sameNames(rows), ...subject.rules.flatMap(ruleTrialRemarks)]
}

/** On the trials of endpoint rules, whose windows begin with the first request of a key. */
function ruleTrialRemarks({ file, kind, document }: Subject['rules'][number]): Remark[] {
  return document.rules.flatMap((rule, i): Remark[] => {
    const { inForce, tried } = withTrial(kind, pluginConfig(rule))
    if (tried === undefined) return []
    const [present, trial] = [inForce, tried].map(settings => {
      const { requests, per } = settings.quota as VolumetricRule['quota']
      return [{ name: rule.id, quota: requests, ms: per, algorithm: 'fixed-window' as const }]
    }) as [Window[], Window[]]
    return comparedTrial(rule.id, present, trial, { file, path: ['rules', i, 'quota', 'trial'] })
  })
}

function rowsOf({ limits }: Subject): WrittenQuota[] {
  return limits.flatMap(({ file, document }) =>
    document.limits.flatMap(({ quotas }, i) =>
      Object.entries(quotas).flatMap(([bucket, quota]): WrittenQuota[] => {
        if (quota === UNLIMITED) return []
        const path = ['limits', i, 'quotas', bucket]
        return [{ bucket, quota, file, path, hasTrial: quota.trial !== undefined }]
      }),
    ),
  )
}

function overridesOf({ loaded: { config, compiled } }: Subject): WrittenQuota[] {
  return config.projects.flatMap(({ id, overrides }, i) =>
    Object.entries(overrides).flatMap(([bucket, override]): WrittenQuota[] => {
      const quota = compiled.policy.projects.get(id)?.rules.get(bucket)?.config
      if (quota === undefined || 'unlimited' in quota) return []
      const hasTrial = override !== UNLIMITED && override.trial !== undefined
      const path = ['projects', i, 'overrides', bucket]
      return [{ bucket, quota, file: config.projectsFile, path, hasTrial }]
    }),
  )
}

/** Windows are counted by name: what one name means should not depend on the plan. */
function sameNames(rows: readonly WrittenQuota[]): Remark[] {
  const known = new Map<string, string>()
  return rows.flatMap(({ bucket, quota, file, path }) =>
    demandOf(quota).windows.flatMap(({ name, ms, calendar, lifetime }): Remark[] => {
      const [of, per] = [`${bucket} ${name}`, perText(ms, calendar, lifetime)]
      const other = known.get(of) ?? per
      known.set(of, other)
      if (other === per) return []
      const message = `"${name}" counts ${per} here and ${other} in another row: a project that changes its plan takes what it spent along, because a window is known by its name.`
      return [{ severity: 'note', file, path, message }]
    }),
  )
}

function windowRemarks({ quota, file, path }: WrittenQuota, gateway: Gateway): Remark[] {
  // Credit may make a lifetime window as large as it likes.
  const windows = demandOf(quota).windows.filter(({ lifetime }) => !lifetime)
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

function trialRemarks({ bucket, quota, file, path: written }: WrittenQuota): Remark[] {
  const tried = triedQuota(quota)
  if (tried === undefined) return []
  const at = { file, path: [...written, 'trial'] }
  const remarks = comparedTrial(bucket, demandOf(quota).windows, demandOf(tried).windows, at)
  if (quota.lease) {
    const message = `The quota of "${bucket}" is leased, its trial is not: each request costs Redis a call for the trial, for which nobody waits.`
    remarks.push({ severity: 'note', ...at, message })
  }
  return remarks
}

/** Whether a trial tells anything new beside the windows in force. */
function comparedTrial(
  name: string,
  present: readonly Window[],
  trial: readonly Window[],
  at: Pick<Remark, 'file' | 'path'>,
): Remark[] {
  if (!admitsAll(trial, present)) return []
  if (admitsAll(present, trial)) {
    const message = `The trial of "${name}" is the quota in force, so it tells nothing new: change it, or remove it.`
    return [{ severity: 'warning', ...at, message }]
  }
  const message = `The trial of "${name}" is looser than the quota in force: what it would refuse is refused already, so it tells only which of those refusals would stay.`
  return [{ severity: 'note', ...at, message }]
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
