import { randomUUID } from 'node:crypto'
import { refusedTarget } from '../../../webhooks/target.js'
import type { DirectoryCore } from '../core.js'
import { sealHeaders, sealWebhook, webhookOf, webhooksOf } from '../events/webhook.js'
import {
  maxNameLength,
  maxOldSecrets,
  maxWebhooks,
  minKeyBytes,
  minSecretLength,
  overlapSeconds,
} from '../limits.js'
import { type Directory, type EventName, eventNames, type NamedWebhook, type Webhook } from '../model.js'
import type { NewWebhook, WebhookChange } from '../schemas/webhooks.js'
import { newSecret, type SecretBox } from '../secrets.js'
import { line, tooManyHeaders, wrongHeaderValue } from './body.js'
import { HttpError } from './http.js'

/** Seals secrets and checks addresses. */
export type InputParts = Pick<DirectoryCore, 'box' | 'settings'>

/** Reads a body that adds a webhook. Throws 400, and 409 when there are too many. */
export function readWebhook(directory: Directory, body: NewWebhook, parts: InputParts): NamedWebhook {
  if (webhooksOf(directory).length >= maxWebhooks) {
    throw new HttpError(409, `A directory has at most ${maxWebhooks} webhooks: remove one.`)
  }
  return applied(directory, `whk_${randomUUID()}`, body, undefined, parts)
}

/** The webhook changed as the body of a PATCH asks; fields not named stay as they are. Throws 400, 404 and 409. */
export function changeWebhook(
  directory: Directory,
  webhookId: string,
  body: WebhookChange,
  parts: InputParts,
): NamedWebhook {
  const current = webhookOf(directory, webhookId)
  if (!current) throw noWebhook()
  return applied(directory, webhookId, body, current, parts)
}

export const noWebhook = (): HttpError =>
  new HttpError(404, 'There is no webhook with this id in this directory.')

function applied(
  { id: directoryId }: Directory,
  id: string,
  fields: WebhookChange,
  current: NamedWebhook | undefined,
  parts: InputParts,
): NamedWebhook {
  const endpoint = line(fields.endpoint, 'endpoint')
  const given = line(fields.secret, 'secret')
  if (endpoint) checkWebhookUrl('endpoint', endpoint, parts)
  if (given) checkWebhookSecret('secret', given)
  const secret = given ?? (current ? undefined : newSecret())
  const overlap = readOverlap(fields.overlap_seconds, given === undefined ? 'secret' : undefined)
  const target = { endpoint: endpoint ?? current?.endpoint ?? '', secret, overlap }
  const { events, headers, disabled, ...webhook } = resealed(parts.box, directoryId, id, target, current)
  const wanted = fields.events === undefined ? events : inOrder(fields.events)
  const sent =
    fields.headers === undefined
      ? headers
      : sealHeaders(parts.box, directoryId, id, readHeaders(fields.headers ?? {}))
  const isOff = fields.disabled ?? disabled
  return {
    ...webhook,
    id,
    ...(wanted && { events: wanted }),
    ...(sent && sent.length > 0 && { headers: sent }),
    ...(isOff && { disabled: isOff }),
  }
}

/** Like `sealWebhook`; throws 409 when too many secrets would be valid at the same time. */
export function resealed(
  box: SecretBox,
  directoryId: string,
  webhookId: string,
  target: Parameters<typeof sealWebhook>[3],
  current: Webhook | undefined,
): Webhook {
  const webhook = sealWebhook(box, directoryId, webhookId, target, webhookAt(target.endpoint, current))
  if ((webhook.oldSecrets?.length ?? 0) <= maxOldSecrets) return webhook
  throw new HttpError(
    409,
    `The last ${maxOldSecrets} webhook secrets are still valid: wait, or end all of them with overlap_seconds 0.`,
  )
}

/** How long the replaced secret keeps signing; `missing` names the secret that the body lacks. Throws 400. */
export function readOverlap(seconds: number | undefined, missing: string | undefined): number {
  if (missing !== undefined && seconds !== undefined) {
    throw new HttpError(400, `overlap_seconds is only for a new ${missing}: send both.`)
  }
  return seconds ?? overlapSeconds.standard
}

/**
 * What a new address takes over from the webhook: on another origin not its headers, as their values were meant for
 * the old one.
 */
function webhookAt(endpoint: string, current: Webhook | undefined): Webhook | undefined {
  if (!current || new URL(endpoint).origin === new URL(current.endpoint).origin) return current
  const { headers: _headers, ...rest } = current
  return rest
}

/** Throws 400 for an address that the service does not call. */
export function checkWebhookUrl(name: string, text: string, { settings }: InputParts): void {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url || !/^https?:$/.test(url.protocol)) {
    throw new HttpError(400, `${name} must be an http or https address.`)
  }
  if (url.username || url.password) throw new HttpError(400, `${name} must not hold a user or password.`)
  const refused = refusedTarget(url, settings.webhookTargets)
  if (refused) throw new HttpError(400, `${name}: ${refused}.`)
}

/**
 * Refuses a secret that could not sign: `whsec_` must be followed by a key in base64 (Standard Webhooks), any other
 * text is the key itself. Throws 400.
 */
export function checkWebhookSecret(name: string, secret: string): void {
  const base64 = /^whsec_(.*)$/.exec(secret)?.[1]
  if (base64 === undefined) {
    if (secret.length >= minSecretLength) return
    throw new HttpError(400, `${name} must have at least ${minSecretLength} characters.`)
  }
  const isBase64 = /^[A-Za-z0-9+/]*={0,2}$/.test(base64)
  if (!isBase64 || Buffer.from(base64, 'base64').length < minKeyBytes) {
    throw new HttpError(
      400,
      `${name} begins with whsec_, so at least ${minKeyBytes} bytes in base64 must follow.`,
    )
  }
}

/** Each event once, in the order of the list of all; undefined: all. */
const inOrder = (names: readonly EventName[] | null): EventName[] | undefined =>
  names === null ? undefined : eventNames.filter(name => names.includes(name))

/** RFC 9110, section 5.6.2 (names) and 5.5 (values). */
const headerName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const headerValue = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/
/** Header fields that a call sets itself, or that belong to the connection. */
const ownHeaders =
  /^(?:content-.*|webhook-.*|boxyhq-signature|host|connection|keep-alive|te|trailer|transfer-encoding|upgrade|expect|proxy-.*|date|via|user-agent)$/i

function readHeaders(given: Readonly<Record<string, string>>): Map<string, string> {
  const headers = Object.entries(given)
  const names = new Set(headers.map(([name]) => name.toLowerCase()))
  if (names.size < headers.length) throw new HttpError(400, tooManyHeaders)
  for (const [name, text] of headers) {
    if (name.length > maxNameLength || !headerName.test(name)) {
      throw new HttpError(400, 'headers has a name that is not a header name.')
    }
    if (ownHeaders.test(name)) throw new HttpError(400, `headers: ${name} is set by the service itself.`)
    if (!headerValue.test(text)) throw new HttpError(400, wrongHeaderValue(name))
  }
  return new Map(headers)
}
