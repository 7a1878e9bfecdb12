/** Formats of strings: addresses of upstreams, Redis and networks; days, moments and time zones; ciphers, headers. */
import { getCiphers } from 'node:tls'
import { parseNetwork } from './words/address.js'
import { HOP_BY_HOP_FIELDS, METHOD_OVERRIDE_FIELDS, REPLACED_FIELDS } from './words/words.js'

/** An http(s) address that names only a host and a port, so that no part of it is silently ignored. */
export function isHttpOrigin(text: string): boolean {
  if (!/^https?:\/\//i.test(text) || !URL.canParse(text)) return false
  const url = new URL(text)
  return (
    url.username === '' &&
    url.password === '' &&
    url.pathname === '/' &&
    HOST.test(url.hostname) &&
    !/[?#\s]/.test(text)
  )
}

/** Stricter than URL, which also accepts an unexpanded "${PORT}", for example. */
const HOST = /^([a-z0-9._-]+|\[[0-9a-f:.]+\])$/

/**
 * The address meant by `3000`, `localhost:3000` or `http://localhost:3000/path`; undefined if it cannot be
 * guessed.
 */
export function originMeantBy(text: string): string | undefined {
  const full = /^:?\d+$/.test(text) ? `127.0.0.1:${text.replace(':', '')}` : text
  const url = /^[a-z][a-z0-9+.-]*:\/\//i.test(full) ? full : `http://${full}`
  if (!URL.canParse(url)) return undefined
  const { protocol, host } = new URL(url)
  const meant = `${protocol}//${host}`
  return isHttpOrigin(meant) ? meant : undefined
}

/** A host name that an authority can certify by itself: no wildcard, no IP address. */
export function isAcmeDomain(text: string): boolean {
  return /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(text)
}

export function isHttpsUrl(text: string): boolean {
  return /^https:\/\/[^\s#@]+$/i.test(text) && URL.canParse(text)
}

/** An http or https address without user and password, which would be sent along, and without a fragment. */
export function isWebhookUrl(text: string): boolean {
  if (!/^https?:\/\/[^\s#]+$/i.test(text) || !URL.canParse(text)) return false
  const { username, password, hostname } = new URL(text)
  return username === '' && password === '' && HOST.test(hostname)
}

/** Standard Webhooks: what follows `whsec_` is the key in base64. */
export function isWebhookSecret(text: string): boolean {
  if (!text.startsWith('whsec_')) return true
  const base64 = text.slice('whsec_'.length)
  return /^[A-Za-z0-9+/]+={0,2}$/.test(base64) && Buffer.from(base64, 'base64').length >= 16
}

/**
 * A redis(s) address: of a server, of a Cluster's nodes, or of Sentinels with the name of their master. Empty for none.
 */
export function isRedisUrl(text: string): boolean {
  const many = /^rediss?\+(cluster|sentinel):\/\/([^@/]*@)?([^@/]+)(?:\/([^/]*))?$/.exec(text)
  if (many === null) return text === '' || isServerUrl(text)
  const [, kind, access = '', nodes = '', master = ''] = many
  return (
    nodes.split(',').every(isHostAndPort) &&
    (kind === 'sentinel') === (master !== '') &&
    [access, master].every(isPercentEncoded)
  )
}

/** One server: user and password are percent-encoded, the path is the number of a database. */
function isServerUrl(text: string): boolean {
  if (!/^rediss?:\/\/[^/\s]/.test(text) || !URL.canParse(text)) return false
  const { username, password, pathname } = new URL(text)
  return [username, password].every(isPercentEncoded) && /^(\/\d*)?$/.test(pathname)
}

function isHostAndPort(text: string): boolean {
  return /^[^?#\s]+$/.test(text) && URL.canParse(`redis://${text}`)
}

function isPercentEncoded(text: string): boolean {
  try {
    return !/\s/.test(decodeURIComponent(text))
  } catch {
    return false
  }
}

/** An IP address, or one with a prefix length: `10.0.0.0/8`, `::1`. */
export function isCidr(text: string): boolean {
  return parseNetwork(text) !== undefined
}

/** A name of the IANA time zone database that this platform knows, such as `Europe/Berlin` or `UTC`. */
export function isTimeZone(text: string): boolean {
  if (!/^[A-Za-z]/.test(text)) return false
  try {
    return new Intl.DateTimeFormat('en', { timeZone: text }) !== undefined
  } catch {
    return false
  }
}

/** A day that exists in the calendar: `2026-02-28`, not `2026-02-30`. */
export function isDay(text: string): boolean {
  const date = new Date(`${text}T00:00:00Z`)
  return (
    /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(date.getTime()) && date.toISOString().startsWith(text)
  )
}

/** A cipher of TLS 1.2 that this build of OpenSSL knows, by OpenSSL's name. */
export function isTls12Cipher(text: string): boolean {
  return !text.startsWith('TLS_') && getCiphers().includes(text.toLowerCase())
}

const NOT_OF_PROXIES: readonly string[] = [
  ...HOP_BY_HOP_FIELDS,
  ...REPLACED_FIELDS,
  ...METHOD_OVERRIDE_FIELDS,
]

/** A field that the gateway may pass on from a trusted proxy: none that it sets or removes itself in any case. */
export function isProxyHeader(text: string): boolean {
  return (
    /^[a-z0-9!#$%&'*+.^`|~-]+$/.test(text) && !text.startsWith('x-sluice-') && !NOT_OF_PROXIES.includes(text)
  )
}

const INSTANT =
  /^(\d{4}-\d{2}-\d{2})T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$/i

/** A day, or a moment as in RFC 3339: `2026-12-31T18:00:00+01:00`. */
export function isDayOrInstant(text: string): boolean {
  return isDay(INSTANT.exec(text)?.[1] ?? text)
}

const DAY_MS = 86_400_000

/** The end of a day (UTC), or the moment itself, in milliseconds since the epoch. */
export function endOf(text: string): number {
  return Date.parse(text) + (text.includes(':') ? 0 : DAY_MS)
}
