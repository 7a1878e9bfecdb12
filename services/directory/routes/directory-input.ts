import { randomUUID } from 'node:crypto'
import type { TargetRules } from '../events/target.js'
import { firstWebhook } from '../lane.js'
import { type Directory, type DirectoryType, directoryTypes, type External } from '../model.js'
import { goodOnes } from '../old-secrets.js'
import {
  changeable,
  linkSeconds,
  maxNameLength,
  maxOldSecrets,
  maxUrlLength,
  overlapSeconds,
} from '../schemas/directory-fields.js'
import { newSecret, type SecretBox } from '../secrets.js'
import { type BodyFields, fieldsOf, flag, optional, wholeNumber } from './body.js'
import { HttpError } from './http.js'
import { checkWebhookSecret, checkWebhookUrl, readOverlap, resealed } from './webhook-input.js'

/** Reads the body of endpoint 1 into a new directory, its secrets sealed. Throws 400. */
export function readDirectory(body: unknown, box: SecretBox, targets: TargetRules): Directory {
  const fields = flatWebhook(fieldsOf(body, ['tenant', 'product', 'type', ...changeable], shownOnly))
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
    logWebhookEvents: flag(fields, 'log_webhook_events') ?? false,
    deactivated: flag(fields, 'deactivated') ?? false,
    scimSecret: box.seal(newSecret(), id, 'scim'),
    webhook: readWebhook(fields, id, undefined, box, targets),
    ...readExternal(fields, isPulled(type) ? { domain: '' } : undefined),
    created: new Date().toISOString(),
  }
}

const fixed = ['id', 'tenant', 'product', 'type'] as const
/** Fields that only responses have, and where they come from. */
const shownOnly = {
  id: 'is assigned by the service',
  scim: 'is made by the service: POST /{id}/scim-secret makes a new secret',
  external_access_token: 'comes from a consent: POST /{id}/consent-link starts one',
  external_refresh_token: 'comes from a consent: POST /{id}/consent-link starts one',
  external_sync: 'is reported by the service',
}

/** The directory changed as the body of a PATCH asks; fields not named stay as they are. Throws 400. */
export function changeDirectory(
  directory: Directory,
  body: unknown,
  box: SecretBox,
  targets: TargetRules,
): Directory {
  const fields = flatWebhook(fieldsOf(body, [...changeable, ...fixed, 'overlap_seconds'], shownOnly))
  for (const name of fixed) {
    if (fields.has(name) && fields.get(name) !== directory[name]) {
      throw new HttpError(400, `${name} cannot be changed; create another directory.`)
    }
  }
  if (!changeable.some(name => fields.has(name))) {
    throw new HttpError(400, `The body has none of the fields that can be changed: ${changeable.join(', ')}.`)
  }
  return {
    ...directory,
    name: optional(fields.get('name'), 'name', maxNameLength) ?? directory.name,
    logWebhookEvents: flag(fields, 'log_webhook_events') ?? directory.logWebhookEvents,
    deactivated: flag(fields, 'deactivated') ?? directory.deactivated,
    webhook: readWebhook(fields, directory.id, directory.webhook, box, targets),
    ...readExternal(fields, directory.external),
  }
}

/**
 * The directory with a new SCIM secret. The old one stays valid for `overlap_seconds` (default a day), earlier ones
 * until the time they were promised. 0 ends all old ones at once. Throws 400, and 409 when too many are still valid.
 */
export function rotateScimSecret(directory: Directory, body: unknown, box: SecretBox): Directory {
  const { standard, longest } = overlapSeconds
  const overlap = wholeNumber(
    fieldsOf(body === undefined ? {} : body, ['overlap_seconds']),
    'overlap_seconds',
    standard,
    0,
    longest,
  )
  const until = new Date(Date.now() + overlap * 1000).toISOString()
  const older = overlap === 0 ? [] : goodOnes(directory.oldScimSecrets)
  if (older.length >= maxOldSecrets) {
    throw new HttpError(
      409,
      `${older.length} old secrets are still valid: wait, or end all of them with overlap_seconds 0.`,
    )
  }
  const replaced = overlap === 0 ? [] : [{ secret: directory.scimSecret, until }]
  return {
    ...directory,
    scimSecret: box.seal(newSecret(), directory.id, 'scim'),
    oldScimSecrets: [...replaced, ...older],
  }
}

/** Lifetime of a one-time link: `lifetime_seconds` of the body. Throws 400. */
export function readLinkSeconds(body: unknown): number {
  const { standard, shortest, longest } = linkSeconds
  return wholeNumber(
    fieldsOf(body === undefined ? {} : body, ['lifetime_seconds']),
    'lifetime_seconds',
    standard,
    shortest,
    longest,
  )
}

/** Accepts the webhook flat, or nested as responses show it; not both, as they could differ. */
function flatWebhook(fields: BodyFields): BodyFields {
  const nested = fields.get('webhook')
  if (nested === undefined) return fields
  if (fields.has('webhook_url') || fields.has('webhook_secret')) {
    throw new HttpError(
      400,
      'webhook means the same as webhook_url and webhook_secret: send one or the other.',
    )
  }
  const known = ['endpoint', 'secret', 'old_secret_valid_until']
  const webhook = fieldsOf(nested ?? { endpoint: '', secret: '' }, known, {}, 'webhook')
  return new Map([
    ...fields,
    ['webhook_url', webhook.get('endpoint')],
    ['webhook_secret', webhook.get('secret')],
  ])
}

/** Fields not named stay as they are; an empty address removes the webhook. */
function readWebhook(
  fields: BodyFields,
  id: string,
  current: Directory['webhook'],
  box: SecretBox,
  targets: TargetRules,
): Directory['webhook'] {
  const endpoint = optional(fields.get('webhook_url'), 'webhook_url', maxUrlLength)
  const secret = optional(fields.get('webhook_secret'), 'webhook_secret', maxNameLength)
  const overlap = readOverlap(fields, secret === undefined ? 'webhook_secret' : undefined)
  if (endpoint) checkWebhookUrl('webhook_url', endpoint, targets)
  if (secret) checkWebhookSecret('webhook_secret', secret)
  const emptied = fields.get('webhook_url') === '' || fields.get('webhook_url') === null
  if (emptied && secret === undefined) return undefined
  const target = emptied ? undefined : (endpoint ?? current?.endpoint)
  if (target === undefined && secret === undefined) return undefined
  if (target === undefined || (secret === undefined && !current)) {
    throw new HttpError(400, 'webhook_url and webhook_secret belong together: send both or neither.')
  }
  return resealed(box, id, firstWebhook, { endpoint: target, secret, overlap }, current)
}

const isPulled = (type: DirectoryType): boolean => type === 'external' || type === 'google'

/** Fields not named stay as they are; `current` is undefined for directories that are not pulled. */
function readExternal(fields: BodyFields, current: External | undefined): { external?: External } {
  const given = fields.get('external_domain')
  const domain = optional(given, 'external_domain', maxNameLength)
  if (!current) {
    if (domain === undefined) return {}
    throw new HttpError(400, 'external_domain is only for directories of type external.')
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
