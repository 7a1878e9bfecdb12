import { resolve } from 'node:path'

/** What the operator set, checked. */
export interface Settings {
  /** Empty: SQLite in `dataDir`. */
  readonly mongodbUrl: string
  readonly dataDir: string
  /** Undefined: one is made at first start. */
  readonly apiKeys: readonly string[] | undefined
  /** 32 bytes; undefined: made at first start. */
  readonly encryptionKey: Buffer | undefined
  readonly allowPrivateWebhooks: boolean
  /** Without a trailing slash; undefined: derived from each request. */
  readonly baseUrl: string | undefined
}

/** Reads the environment (design section 8). Throws an Error that names the variable and what it should hold. */
export function readSettings(env: NodeJS.ProcessEnv): Settings {
  return {
    mongodbUrl: mongodbUrl(env.MONGODB_URL),
    dataDir: resolve(env.DATA_DIR || './data'),
    apiKeys: apiKeys(env.API_KEYS),
    encryptionKey: encryptionKey(env.ENCRYPTION_KEY),
    allowPrivateWebhooks: flag('WEBHOOK_ALLOW_PRIVATE', env.WEBHOOK_ALLOW_PRIVATE),
    baseUrl: baseUrl(env.BASE_URL),
  }
}

function mongodbUrl(text = ''): string {
  if (text !== '' && !/^mongodb(\+srv)?:\/\//.test(text)) {
    throw new Error('MONGODB_URL must begin with mongodb:// or mongodb+srv:// (empty: SQLite in DATA_DIR)')
  }
  return text
}

function apiKeys(text: string | undefined): string[] | undefined {
  if (text === undefined || text.trim() === '') return undefined
  const keys = text.split(',').map(key => key.trim())
  if (keys.some(key => key.length < 8 || /\s/.test(key))) {
    throw new Error('API_KEYS must be keys of at least 8 characters without blanks, separated by commas')
  }
  return keys
}

function encryptionKey(text: string | undefined): Buffer | undefined {
  if (text === undefined || text === '') return undefined
  const key = Buffer.from(text, 'base64')
  if (!/^[A-Za-z0-9+/]{43}=$/.test(text) || key.length !== 32) {
    throw new Error('ENCRYPTION_KEY must be 32 bytes in base64, as printed by: openssl rand -base64 32')
  }
  return key
}

function flag(name: string, text: string | undefined): boolean {
  if (text === undefined || text === '' || text === 'false') return false
  if (text === 'true') return true
  throw new Error(`${name} must be true or false`)
}

function baseUrl(text: string | undefined): string | undefined {
  if (text === undefined || text === '') return undefined
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url || !/^https?:$/.test(url.protocol) || url.search || url.hash || url.username) {
    throw new Error('BASE_URL must be an http or https address such as https://directory.example.com')
  }
  return text.replace(/\/+$/, '')
}
