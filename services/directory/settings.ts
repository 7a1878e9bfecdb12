import { resolve } from 'node:path'
import { type TargetRules, targetRules } from '../../webhooks/target.js'
import { wholeNumber, withFiles } from '../environment.js'
import { readEncryptionKeys, readKeys } from '../keys.js'
import { type ExternalSettings, readExternalSettings } from './external/settings.js'

/** The validated settings. */
export interface Settings {
  /** Empty: SQLite in `dataDir`. */
  readonly mongodbUrl: string
  readonly dataDir: string
  /** Empty: a key is made at the first start. */
  readonly apiKeys: readonly string[]
  /** 32 bytes each; the first one encrypts. Empty: one is made at the first start. */
  readonly encryptionKeys: readonly Buffer[]
  readonly webhookTargets: TargetRules
  /** Undefined: events are delivered in real time. */
  readonly webhookBatch: { readonly size: number; readonly intervalMs: number | undefined } | undefined
  /** How long the webhook-event log is kept. */
  readonly webhookLogTtlMs: number
  /** Without a trailing slash; undefined: derived from each request. */
  readonly baseUrl: string | undefined
  readonly external: ExternalSettings
}

/**
 * Reads the environment and the files named by `NAME_FILE`. Throws an Error that names the variable and what it should
 * hold.
 */
export function readSettings(given: NodeJS.ProcessEnv): Settings {
  const env = withFiles(given)
  return {
    mongodbUrl: mongodbUrl(env.MONGODB_URL),
    dataDir: resolve(env.DATA_DIR || './data'),
    apiKeys: readKeys('API_KEYS', env.API_KEYS),
    encryptionKeys: readEncryptionKeys(env.ENCRYPTION_KEY).map(key => Buffer.from(key, 'base64')),
    webhookTargets: targetRules(env),
    webhookBatch: webhookBatch(env),
    webhookLogTtlMs: logTtl(env.DSYNC_WEBHOOK_LOGS_TTL || '7d'),
    baseUrl: baseUrl(env.BASE_URL),
    external: readExternalSettings(env),
  }
}

function mongodbUrl(text = ''): string {
  if (text !== '' && !/^mongodb(\+srv)?:\/\//.test(text)) {
    throw new Error('MONGODB_URL must begin with mongodb:// or mongodb+srv:// (empty: SQLite in DATA_DIR)')
  }
  return text
}

const largestBatch = 1000
const longestInterval = 24 * 60 * 60

function webhookBatch(env: NodeJS.ProcessEnv): Settings['webhookBatch'] {
  const size = wholeNumber(env, 'DSYNC_WEBHOOK_BATCH_SIZE', { unit: 'events', largest: largestBatch })
  const interval = { unit: 'seconds', largest: longestInterval }
  const seconds = wholeNumber(env, 'DSYNC_WEBHOOK_BATCH_CRON_INTERVAL', interval)
  return size === 0 ? undefined : { size, intervalMs: seconds === 0 ? undefined : seconds * 1000 }
}

const unitMs: Record<string, number> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const longestTtlDays = 36_500

function logTtl(text: string): number {
  const [, number, unit = ''] = /^(\d{1,9}) ?([smhd])$/.exec(text) ?? []
  const ms = Number(number) * (unitMs[unit] ?? 0)
  if (!(ms > 0 && ms <= longestTtlDays * 86_400_000)) {
    throw new Error(
      `DSYNC_WEBHOOK_LOGS_TTL must be a duration such as 7d, 12h, 30m or 90s, at most ${longestTtlDays}d`,
    )
  }
  return ms
}

function baseUrl(text: string | undefined): string | undefined {
  if (text === undefined || text === '') return undefined
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url || !/^https?:$/.test(url.protocol) || url.search || url.hash || url.username) {
    throw new Error('BASE_URL must be an http or https address such as https://directory.example.com')
  }
  return text.replace(/(?<!\/)\/+$/, '')
}
