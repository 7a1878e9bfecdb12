/**
 * One negotiated limit by itself, for what is set at run time: in the form and with the checks of `overrides` in
 * projects.yaml, but without `notify`; and in words.
 */
import { formatPath } from './problem.js'
import { SettableOverrideSchema, windowFaults } from './schema/quota.js'
import { createValidator, type Validator } from './validate.js'
import type { QuotaOverride, QuotaWindow } from './words/quota.js'
import { UNLIMITED } from './words/words.js'

let validator: Validator | undefined

/** Reads a limit as it is written in projects.yaml; `fault` says what is wrong with it, a sentence for each place. */
export function readNegotiatedLimit(
  written: unknown,
): { readonly quota: QuotaOverride } | { readonly fault: string } {
  validator ??= createValidator(SettableOverrideSchema)
  // The validator replaces durations by milliseconds.
  const quota = structuredClone(written) as QuotaOverride
  const faults = validator(quota, () => [])
  const all = faults.length > 0 ? faults : windowFaults(quota, [])
  if (all.length === 0) return { quota }
  const sentences = all.map(({ path, message }) =>
    path.length === 0 ? message : `${formatPath(path)}: ${message}`,
  )
  return { fault: sentences.join(' ') }
}

/** A quota as projects.yaml would have it, durations as text; it has been checked. */
export type WrittenQuota = Readonly<Record<string, unknown>> | typeof UNLIMITED

/** What `readNegotiatedLimit` would read as this quota, without `notify`: its secret is shown to nobody. */
export function writtenQuota(quota: QuotaOverride): WrittenQuota {
  if (quota === UNLIMITED) return quota
  const { windows, trial, notify: _, ...keys } = quota
  return {
    ...keys,
    ...(windows && { windows: windows.map(writtenWindow) }),
    ...(trial && { trial: writtenQuota(trial) }),
  }
}

function writtenWindow({ per, ...window }: QuotaWindow) {
  return { ...window, per: typeof per === 'number' ? `${per / 1000}s` : per }
}

/** `burst 50, sustained 600, daily 10000 per day`. */
export function quotaWords(quota: WrittenQuota): string {
  if (quota === UNLIMITED) return UNLIMITED
  return Object.entries(quota).map(keyWords).join(', ')
}

function keyWords([key, value]: [string, unknown]): string {
  if (key === 'windows') {
    const windows = value as readonly { name: string; requests: number; per: string }[]
    return windows.map(({ name, requests, per }) => `${name} ${requests} per ${per}`).join(', ')
  }
  return key === 'trial' ? `on trial ${quotaWords(value as WrittenQuota)}` : `${key} ${value}`
}
