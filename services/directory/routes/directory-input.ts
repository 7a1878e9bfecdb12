import { randomUUID } from 'node:crypto'
import { refusedHost } from '../events/target.js'
import { sealWebhook } from '../events/webhook.js'
import { type Directory, type DirectoryType, directoryTypes, type External } from '../model.js'
import { newSecret, type SecretBox } from '../secrets.js'
import {
  changeable,
  linkSeconds,
  maxNameLength,
  maxUrlLength,
  minKeyBytes,
  minSecretLength,
  overlapSeconds,
} from './directory-fields.js'
import { HttpError } from './http.js'

/** Reads the body of endpoint 1 and makes the directory it asks for, its secrets sealed. Throws 400. */
export function readDirectory(body: unknown, box: SecretBox, allowPrivateWebhooks: boolean): Directory {
  const fields = fieldsOf(body)
  const tenant = identifier(fields.get('tenant'), 'tenant')
  const product = identifier(fields.get('product'), 'product')
  const id = randomUUID()
  const type = directoryType(optional(fields.get('type'), 'type', maxNameLength) ?? 'generic-scim-v2')
  return {
    id,
    name: optional(fields.get('name'), 'name', maxNameLength) ?? `scim-${tenant}-${product}`,
    tenant,
    product,
    type,
    logWebhookEvents: false,
    deactivated: false,
    scimSecret: box.seal(newSecret(), id, 'scim'),
    webhook: readWebhook(fields, id, undefined, box, allowPrivateWebhooks),
    ...readExternal(fields, isPulled(type) ? { domain: '' } : undefined),
    created: new Date().toISOString(),
  }
}

const fixed = ['id', 'tenant', 'product', 'type'] as const

/** The directory as the body of a PATCH wants it; what the body does not name stays. Throws 400. */
export function changeDirectory(
  directory: Directory,
  body: unknown,
  box: SecretBox,
  allowPrivateWebhooks: boolean,
): Directory {
  const fields = fieldsOf(body)
  for (const name of fixed) {
    if (fields.has(name) && fields.get(name) !== directory[name]) {
      throw new HttpError(400, `${name} cannot be changed; make another directory.`)
    }
  }
  if (!changeable.some(name => fields.has(name))) {
    throw new HttpError(400, `The body names nothing that can be changed: ${changeable.join(', ')}.`)
  }
  return {
    ...directory,
    name: optional(fields.get('name'), 'name', maxNameLength) ?? directory.name,
    logWebhookEvents: flag(fields, 'log_webhook_events') ?? directory.logWebhookEvents,
    deactivated: flag(fields, 'deactivated') ?? directory.deactivated,
    webhook: readWebhook(flatWebhook(fields), directory.id, directory.webhook, box, allowPrivateWebhooks),
    ...readExternal(fields, directory.external),
  }
}

/** The directory with a new SCIM secret; the old one stays good for `overlap_seconds` (default a day). Throws 400. */
export function rotateScimSecret(directory: Directory, body: unknown, box: SecretBox): Directory {
  const { standard, longest } = overlapSeconds
  const overlap = wholeNumber(fieldsOf(body ?? {}), 'overlap_seconds', standard, 0, longest)
  const until = new Date(Date.now() + overlap * 1000).toISOString()
  return {
    ...directory,
    scimSecret: box.seal(newSecret(), directory.id, 'scim'),
    oldScimSecret: { secret: directory.scimSecret, until },
  }
}

/** How long a one-time link shall be good: `lifetime_seconds` of the body. Throws 400. */
export function readLinkSeconds(body: unknown): number {
  const { standard, shortest, longest } = linkSeconds
  return wholeNumber(fieldsOf(body ?? {}), 'lifetime_seconds', standard, shortest, longest)
}

type Fields = ReadonlyMap<string, unknown>

function fieldsOf(body: unknown): Fields {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw new HttpError(400, 'The body must be a JSON object.')
  }
  return new Map(Object.entries(body))
}

function wholeNumber(fields: Fields, name: string, unset: number, least: number, most: number): number {
  const value = fields.get(name) ?? unset
  if (typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most) return value
  throw new HttpError(400, `${name} must be a whole number from ${least} to ${most}.`)
}

function flag(fields: Fields, name: string): boolean | undefined {
  const value = fields.get(name)
  if (value === undefined || typeof value === 'boolean') return value
  throw new HttpError(400, `${name} must be true or false.`)
}

/** A PATCH may name the webhook flat, or nested as answers show it. */
function flatWebhook(fields: Fields): Fields {
  const nested = fields.get('webhook')
  if (nested === undefined) return fields
  const { endpoint, secret } = Object.fromEntries(fieldsOf(nested ?? { endpoint: '', secret: '' }))
  return new Map([...fields, ['webhook_url', endpoint], ['webhook_secret', secret]])
}

/** What is not named stays; an empty address takes the webhook away. */
function readWebhook(
  fields: Fields,
  id: string,
  current: Directory['webhook'],
  box: SecretBox,
  allowPrivate: boolean,
): Directory['webhook'] {
  const endpoint = optional(fields.get('webhook_url'), 'webhook_url', maxUrlLength)
  const secret = optional(fields.get('webhook_secret'), 'webhook_secret', maxNameLength)
  if (endpoint) checkWebhookUrl(endpoint, allowPrivate)
  if (secret) checkWebhookSecret(secret)
  const emptied = fields.get('webhook_url') === '' || fields.get('webhook_url') === null
  if (emptied && secret === undefined) return undefined
  const target = emptied ? undefined : (endpoint ?? current?.endpoint)
  if (target === undefined && secret === undefined) return undefined
  if (target === undefined || (secret === undefined && !current)) {
    throw new HttpError(400, 'webhook_url and webhook_secret belong together: send both or neither.')
  }
  return sealWebhook(box, id, { endpoint: target, secret }, current)
}

const isPulled = (type: DirectoryType): boolean => type === 'external' || type === 'google'

/** What is not named stays; `current` is undefined for directories that are not pulled. */
function readExternal(fields: Fields, current: External | undefined): { external?: External } {
  const given = fields.get('external_domain')
  const domain = optional(given, 'external_domain', maxNameLength)
  if (!current) {
    if (domain === undefined) return {}
    throw new HttpError(400, 'external_domain belongs to directories of type external.')
  }
  if (domain !== undefined && !/^([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z0-9-]+$/i.test(domain)) {
    throw new HttpError(400, 'external_domain must be a domain name such as example.com.')
  }
  return { external: given === undefined ? current : { ...current, domain: domain ?? '' } }
}

function directoryType(type: string): DirectoryType {
  const known = directoryTypes.find(candidate => candidate === type)
  if (!known) throw new HttpError(400, `type must be one of ${directoryTypes.join(', ')}.`)
  return known
}

/** A tenant's or product's name. Throws 400. */
export function identifier(value: unknown, name: string): string {
  const text = optional(value, name, maxNameLength)
  if (text === undefined) throw new HttpError(400, `${name} is required.`)
  if (text.includes(':')) throw new HttpError(400, `${name} must not contain the character ":".`)
  return text
}

function optional(value: unknown, name: string, maxLength: number): string | undefined {
  if (value === undefined || value === null || value === '') return undefined
  if (typeof value !== 'string') throw new HttpError(400, `${name} must be a string.`)
  if (value.length > maxLength) throw new HttpError(400, `${name} is longer than ${maxLength} characters.`)
  if (/\p{Cc}/u.test(value) || value.trim() === '') {
    throw new HttpError(400, `${name} must not be blank or hold control characters.`)
  }
  if (/\p{Surrogate}/u.test(value)) {
    throw new HttpError(400, `${name} holds half a character (a lone surrogate).`)
  }
  return value
}

function checkWebhookUrl(text: string, allowPrivate: boolean): void {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url || !/^https?:$/.test(url.protocol)) {
    throw new HttpError(400, 'webhook_url must be an http or https address.')
  }
  if (url.username || url.password) throw new HttpError(400, 'webhook_url must not hold a user or password.')
  const refused = allowPrivate ? undefined : refusedHost(url)
  if (refused) throw new HttpError(400, `webhook_url: ${refused}.`)
}

/** A secret that is no key would sign nothing: `whsec_` names a key in base64 (Standard Webhooks), all else is the key. */
function checkWebhookSecret(secret: string): void {
  const base64 = /^whsec_(.*)$/.exec(secret)?.[1]
  if (base64 === undefined) {
    if (secret.length >= minSecretLength) return
    throw new HttpError(400, `webhook_secret must have at least ${minSecretLength} characters.`)
  }
  const isBase64 = /^[A-Za-z0-9+/]*={0,2}$/.test(base64)
  if (!isBase64 || Buffer.from(base64, 'base64').length < minKeyBytes) {
    throw new HttpError(
      400,
      `webhook_secret begins with whsec_ and must go on with at least ${minKeyBytes} bytes in base64.`,
    )
  }
}
