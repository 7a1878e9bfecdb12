import { randomUUID } from 'node:crypto'
import { firstWebhook } from '../events/queue.js'
import { changeable, maxOldSecrets, overlapSeconds } from '../limits.js'
import type { Directory, DirectoryType, External } from '../model.js'
import type { DirectoryChange, NewDirectory, SecretRotation } from '../schemas/directory.js'
import { goodOnes, newSecret, type SecretBox } from '../secrets.js'
import { identifier, line, nothingToChange } from './body.js'
import { HttpError } from './http.js'
import {
  checkWebhookSecret,
  checkWebhookUrl,
  type InputParts,
  readOverlap,
  resealed,
} from './webhook-input.js'

/** Reads the body of endpoint 1 into a new directory, its secrets sealed. Throws 400. */
export function readDirectory(body: NewDirectory, parts: InputParts): Directory {
  const fields = flatWebhook(body)
  const tenant = identifier(body.tenant, 'tenant')
  const product = identifier(body.product, 'product')
  const id = randomUUID()
  const type = body.type || 'generic-scim-v2'
  return {
    id,
    name: line(fields.name, 'name') ?? `scim-${tenant}-${product}`,
    tenant,
    product,
    type,
    logWebhookEvents: fields.log_webhook_events ?? false,
    deactivated: fields.deactivated ?? false,
    scimSecret: parts.box.seal(newSecret(), id, 'scim'),
    webhook: readWebhook(fields, id, undefined, parts),
    ...readExternal(fields, isPulled(type) ? { domain: '' } : undefined),
    created: new Date().toISOString(),
  }
}

const fixed = ['id', 'tenant', 'product', 'type'] as const
/** The directory changed as the body of a PATCH asks; fields not named stay as they are. Throws 400. */
export function changeDirectory(directory: Directory, body: DirectoryChange, parts: InputParts): Directory {
  const fields = flatWebhook(body)
  for (const name of fixed) {
    if (body[name] !== undefined && body[name] !== directory[name]) {
      throw new HttpError(400, `${name} cannot be changed; create another directory.`)
    }
  }
  if (!changeable.some(name => Object.hasOwn(body, name)))
    throw new HttpError(400, nothingToChange(changeable))
  return {
    ...directory,
    name: line(fields.name, 'name') ?? directory.name,
    logWebhookEvents: fields.log_webhook_events ?? directory.logWebhookEvents,
    deactivated: fields.deactivated ?? directory.deactivated,
    webhook: readWebhook(fields, directory.id, directory.webhook, parts),
    ...readExternal(fields, directory.external),
  }
}

/**
 * The directory with a new SCIM secret. The old one stays valid for `overlap_seconds` (default a day), earlier ones
 * until the time they were promised. 0 ends all old ones at once. Throws 400, and 409 when too many are still valid.
 */
export function rotateScimSecret(
  directory: Directory,
  { overlap_seconds: overlap = overlapSeconds.standard }: SecretRotation,
  box: SecretBox,
): Directory {
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

/** Accepts the webhook flat, or nested as responses show it; not both, as they could differ. */
function flatWebhook<Fields extends DirectoryChange | NewDirectory>(fields: Fields): Fields {
  const { webhook, ...rest } = fields
  if (webhook === undefined) return fields
  if (Object.hasOwn(fields, 'webhook_url') || Object.hasOwn(fields, 'webhook_secret')) {
    throw new HttpError(
      400,
      'webhook means the same as webhook_url and webhook_secret: send one or the other.',
    )
  }
  const { endpoint, secret } = webhook ?? { endpoint: '', secret: '' }
  return { ...rest, webhook_url: endpoint, webhook_secret: secret } as Fields
}

/** Fields not named stay as they are; an empty address removes the webhook. */
function readWebhook(
  fields: DirectoryChange,
  id: string,
  current: Directory['webhook'],
  parts: InputParts,
): Directory['webhook'] {
  const endpoint = line(fields.webhook_url, 'webhook_url')
  const secret = line(fields.webhook_secret, 'webhook_secret')
  const overlap = readOverlap(fields.overlap_seconds, secret === undefined ? 'webhook_secret' : undefined)
  if (endpoint) checkWebhookUrl('webhook_url', endpoint, parts)
  if (secret) checkWebhookSecret('webhook_secret', secret)
  const emptied = fields.webhook_url === '' || fields.webhook_url === null
  if (emptied && secret === undefined) return undefined
  const target = emptied ? undefined : (endpoint ?? current?.endpoint)
  if (target === undefined && secret === undefined) return undefined
  if (target === undefined || (secret === undefined && !current)) {
    throw new HttpError(400, 'webhook_url and webhook_secret belong together: send both or neither.')
  }
  return resealed(parts.box, id, firstWebhook, { endpoint: target, secret, overlap }, current)
}

const isPulled = (type: DirectoryType): boolean => type === 'external' || type === 'google'

/** Fields not named stay as they are; `current` is undefined for directories that are not pulled. */
function readExternal(fields: DirectoryChange, current: External | undefined): { external?: External } {
  const given = fields.external_domain
  const domain = line(given, 'external_domain')
  if (!current) {
    if (domain === undefined) return {}
    throw new HttpError(400, 'external_domain is only for directories of type external.')
  }
  if (domain !== undefined && !/^([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z0-9-]+$/i.test(domain)) {
    throw new HttpError(400, 'external_domain must be a domain name such as example.com.')
  }
  return { external: given === undefined ? current : { ...current, domain: domain ?? '' } }
}
