/** Quotas in the form that projects.yaml and the admin port have, and in words. */
import type { QuotaOverride, QuotaWindow } from '../../config/words/quota.js'
import { UNLIMITED } from '../../config/words/words.js'

/** A quota as projects.yaml would have it, durations as text; it has been checked. */
export type WrittenQuota = Readonly<Record<string, unknown>> | typeof UNLIMITED

/** What `readNegotiatedLimit` would read as this quota. */
export function writtenQuota(quota: QuotaOverride): WrittenQuota {
  if (quota === UNLIMITED) return quota
  const { windows, trial, ...keys } = quota
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
