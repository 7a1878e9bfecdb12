import { isIP } from 'node:net'
import { wholeNumber } from '../../environment.js'

/**
 * How the provider of pulled directories is reached; set by the operator. The defaults are those of Google Workspace.
 */
export interface ExternalSettings {
  /** The OAuth client; without one no directory can be connected. */
  readonly client: { readonly id: string; readonly secret: string } | undefined
  readonly authorizeUrl: string
  readonly tokenUrl: string
  /** Base address of the directory API, without a trailing slash. */
  readonly apiUrl: string
  /** Separated by spaces. */
  readonly scopes: string
  /** Where the provider redirects the admin; undefined: our own callback route. */
  readonly redirectUrl: string | undefined
  /** Age of a pull at which the service starts the next one by itself; undefined: it pulls only on request. */
  readonly intervalMs: number | undefined
  /** The largest share that one pull may delete, from 0 to 1. */
  readonly maxDeletions: number
}

const google = {
  authorizeUrl: 'https://accounts.google.com/o/oauth2/v2/auth',
  tokenUrl: 'https://oauth2.googleapis.com/token',
  apiUrl: 'https://admin.googleapis.com/admin/directory/v1',
  // Enough for a pull; with `user` the names of users can be read, too.
  scopes: ['group', 'group.member']
    .map(name => `https://www.googleapis.com/auth/admin.directory.${name}.readonly`)
    .join(' '),
}
const longestIntervalSeconds = 30 * 24 * 60 * 60

/** Reads the `EXTERNAL_` variables. Throws an Error that names the variable and what it should hold. */
export function readExternalSettings(env: NodeJS.ProcessEnv): ExternalSettings {
  const interval = { unit: 'seconds', largest: longestIntervalSeconds }
  const seconds = wholeNumber(env, 'DSYNC_EXTERNAL_CRON_INTERVAL', interval)
  const percent = { unit: 'percent', largest: 100, unset: 30 }
  return {
    client: client(env),
    authorizeUrl: address(env, 'EXTERNAL_AUTHORIZE_URL') ?? google.authorizeUrl,
    tokenUrl: address(env, 'EXTERNAL_TOKEN_URL') ?? google.tokenUrl,
    apiUrl: (address(env, 'EXTERNAL_API_URL') ?? google.apiUrl).replace(/(?<!\/)\/+$/, ''),
    scopes: scopes(env.EXTERNAL_SCOPES || google.scopes),
    redirectUrl: address(env, 'EXTERNAL_REDIRECT_URL'),
    intervalMs: seconds === 0 ? undefined : seconds * 1000,
    maxDeletions: wholeNumber(env, 'EXTERNAL_MAX_DELETIONS', percent) / 100,
  }
}

function client({ EXTERNAL_CLIENT_ID: id = '', EXTERNAL_CLIENT_SECRET: secret = '' }: NodeJS.ProcessEnv) {
  if (id === '' && secret === '') return undefined
  if (id === '' || secret === '') {
    throw new Error('EXTERNAL_CLIENT_ID and EXTERNAL_CLIENT_SECRET belong together: set both or neither')
  }
  return { id, secret }
}

/** Tokens are sent there, so the connection must be encrypted unless it stays on this machine. */
function address(env: NodeJS.ProcessEnv, name: string): string | undefined {
  const text = env[name]
  if (text === undefined || text === '') return undefined
  const url = URL.canParse(text) ? new URL(text) : undefined
  const safe = url && (url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url.hostname)))
  if (!safe || url.username || url.hash) {
    throw new Error(`${name} must be an https address (http only on this machine, as http://127.0.0.1:9000)`)
  }
  return text
}

function isLoopback(hostname: string): boolean {
  const host = hostname.replace(/^\[|\]$/g, '')
  return (
    host === 'localhost' ||
    host.endsWith('.localhost') ||
    host === '::1' ||
    /^127\./.test(isIP(host) === 4 ? host : '')
  )
}

function scopes(text: string): string {
  const names = text.trim().split(/\s+/)
  if (text.length > 4096 || names.some(name => !/^[\x21\x23-\x5b\x5d-\x7e]+$/.test(name))) {
    throw new Error('EXTERNAL_SCOPES must be OAuth scopes separated by spaces')
  }
  return names.join(' ')
}

/** Limits of a pull from its provider. All times in ms. */
export interface Bounds {
  /** From the request to the end of the response. */
  readonly answerMs: number
  readonly answerBytes: number
  /** Attempts at one request. */
  readonly attempts: number
  /** Wait before the second attempt; doubles from there. */
  readonly firstWaitMs: number
  /** A provider that asks for a longer wait is not called again before the next pull. */
  readonly longestWaitMs: number
  /** For reading one whole directory. */
  readonly readMs: number
  /** Pages of one list. */
  readonly pages: number
  readonly users: number
  readonly groups: number
  readonly memberships: number
}

export const bounds: Bounds = {
  answerMs: 30_000,
  answerBytes: 8 * 1024 * 1024,
  attempts: 5,
  firstWaitMs: 500,
  longestWaitMs: 60_000,
  readMs: 60 * 60_000,
  pages: 5_000,
  users: 200_000,
  groups: 50_000,
  memberships: 1_000_000,
}
