import { randomUUID } from 'node:crypto'
import { refusedHost } from '../events/target.js'
import { type Directory, type DirectoryType, directoryTypes, type Page, type Scope } from '../model.js'
import { newSecret, type SecretBox } from '../secrets.js'
import type { Store } from '../store/contract.js'
import { HttpError, query, queryInteger, type Request } from './http.js'

const maxNameLength = 256
const maxUrlLength = 2048
const minSecretLength = 6
const minKeyBytes = 16
const defaultPage = 50
const largestPage = 500

/** Reads the body of endpoint 1 and makes the directory it asks for, its secrets sealed. Throws 400. */
export function readDirectory(body: unknown, box: SecretBox, allowPrivateWebhooks: boolean): Directory {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw new HttpError(400, 'The body must be a JSON object.')
  }
  const fields = new Map(Object.entries(body))
  const tenant = identifier(fields.get('tenant'), 'tenant')
  const product = identifier(fields.get('product'), 'product')
  const id = randomUUID()
  const endpoint = optional(fields.get('webhook_url'), 'webhook_url', maxUrlLength)
  const secret = optional(fields.get('webhook_secret'), 'webhook_secret', maxNameLength)
  if ((endpoint === undefined) !== (secret === undefined)) {
    throw new HttpError(400, 'webhook_url and webhook_secret belong together: send both or neither.')
  }
  if (endpoint) checkWebhookUrl(endpoint, allowPrivateWebhooks)
  if (secret) checkWebhookSecret(secret)
  return {
    id,
    name: optional(fields.get('name'), 'name', maxNameLength) ?? `scim-${tenant}-${product}`,
    tenant,
    product,
    type: directoryType(optional(fields.get('type'), 'type', maxNameLength) ?? 'generic-scim-v2'),
    logWebhookEvents: false,
    deactivated: false,
    scimSecret: box.seal(newSecret(), id, 'scim'),
    webhook: endpoint && secret ? { endpoint, secret: box.seal(secret, id, 'webhook') } : undefined,
    created: new Date().toISOString(),
  }
}

function directoryType(type: string): DirectoryType {
  const known = directoryTypes.find(candidate => candidate === type)
  if (!known) throw new HttpError(400, `type must be one of ${directoryTypes.join(', ')}.`)
  return known
}

function identifier(value: unknown, name: string): string {
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

/** The directory of endpoints 1 to 3, with its secrets in clear: this API is where they are read. */
export function viewDirectory(directory: Directory, box: SecretBox, baseUrl: string): object {
  const { id, name, tenant, product, type, deactivated, webhook } = directory
  const path = `/api/scim/v2.0/${id}`
  return {
    id,
    name,
    tenant,
    product,
    type,
    log_webhook_events: directory.logWebhookEvents,
    deactivated,
    scim: { path, secret: box.open(directory.scimSecret, id, 'scim'), endpoint: `${baseUrl}${path}` },
    webhook: webhook
      ? { endpoint: webhook.endpoint, secret: box.open(webhook.secret, id, 'webhook') }
      : { endpoint: '', secret: '' },
  }
}

/** The query's tenant and product. Throws 400 when one is missing or could not be one's name. */
export function readTenantProduct(request: Request): { tenant: string; product: string } {
  const tenant = query(request, 'tenant')
  const product = query(request, 'product')
  if (!tenant || !product) throw new HttpError(400, 'The query parameters tenant and product are required.')
  return { tenant: identifier(tenant, 'tenant'), product: identifier(product, 'product') }
}

/** Where to look for users and groups: `directoryId`, or tenant and product. Throws 400, or 404 for an unknown directory. */
export async function readScope(request: Request, store: Store): Promise<Scope> {
  const directoryId = query(request, 'directoryId')
  if (!directoryId) return readTenantProduct(request)
  const directory = await store.directory(directoryId)
  const { tenant = directory?.tenant, product = directory?.product } = {
    tenant: query(request, 'tenant'),
    product: query(request, 'product'),
  }
  if (!directory || directory.tenant !== tenant || directory.product !== product) {
    throw new HttpError(404, 'There is no directory with this id.')
  }
  return { directoryId }
}

/** `pageOffset` from 0 and `pageLimit` (default 50, at most 500); `offset` and `limit` are aliases. */
export function readPage(request: Request): Page {
  const offset = queryInteger(request, 'pageOffset') ?? queryInteger(request, 'offset') ?? 0
  const limit = queryInteger(request, 'pageLimit') ?? queryInteger(request, 'limit') ?? defaultPage
  if (offset < 0) throw new HttpError(400, 'pageOffset must not be negative.')
  if (limit < 1) throw new HttpError(400, 'pageLimit must be at least 1.')
  return { offset, limit: Math.min(limit, largestPage) }
}
