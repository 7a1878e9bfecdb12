import type { Directory, EventName, NamedWebhook, SealedHeader, Webhook } from '../model.js'
import type { DirectoryView } from '../schemas/directory.js'
import type { SecretBox } from '../secrets.js'
import { goodOnes, overlapOf } from '../secrets.js'
import { firstWebhook } from './queue.js'

/** All webhooks of a directory, that of `webhook_url` first. */
export const webhooksOf = ({ webhook, webhooks = [] }: Directory): NamedWebhook[] => [
  ...(webhook ? [{ ...webhook, id: firstWebhook }] : []),
  ...webhooks,
]

export const webhookOf = (directory: Directory, id: string): NamedWebhook | undefined =>
  webhooksOf(directory).find(webhook => webhook.id === id)

/** The ids of the webhooks that an event of this name goes to. */
export const receivers = (directory: Directory, event: EventName): string[] =>
  webhooksOf(directory)
    .filter(({ disabled, events }) => !disabled && (events === undefined || events.includes(event)))
    .map(({ id }) => id)

/** Whether this webhook gets the event: events up to `since` belonged to an earlier webhook with the same id. */
export const isOwed = ({ since = 0 }: NamedWebhook, { sequence }: { readonly sequence: number }): boolean =>
  sequence > since

/** The directory with this webhook added, or in place of the one with the same id. */
export function withWebhook(directory: Directory, { id, ...webhook }: NamedWebhook): Directory {
  if (id === firstWebhook) return { ...directory, webhook }
  const { webhooks = [] } = directory
  const named = { ...webhook, id }
  const isNew = webhooks.every(each => each.id !== id)
  return {
    ...directory,
    webhooks: isNew ? [...webhooks, named] : webhooks.map(each => (each.id === id ? named : each)),
  }
}

export const withoutWebhook = (directory: Directory, id: string): Directory =>
  id === firstWebhook
    ? { ...directory, webhook: undefined }
    : { ...directory, webhooks: (directory.webhooks ?? []).filter(each => each.id !== id) }

/** The purpose that a webhook's secret is encrypted for. */
const secretField = (webhookId: string): string =>
  webhookId === firstWebhook ? 'webhook' : `webhook ${webhookId}`
const headerField = (webhookId: string, name: string): string =>
  `webhook ${webhookId} header ${name.toLowerCase()}`

/**
 * Seals the webhook's secret; without a new secret the current one stays. A replaced secret stays valid for `overlap`
 * seconds, so that the receiver can switch, and older ones for as long as they were promised. 0 ends all old ones at
 * once.
 */
export function sealWebhook(
  box: SecretBox,
  directoryId: string,
  webhookId: string,
  { endpoint, secret = '', overlap }: { endpoint: string; secret: string | undefined; overlap: number },
  before: Webhook | undefined,
): Webhook {
  const field = secretField(webhookId)
  const isOld = before && ['', box.open(before.secret, directoryId, field)].includes(secret)
  if (isOld) return { ...before, endpoint, ...(overlap === 0 && { oldSecrets: [] }) }
  const sealed = { ...before, endpoint, secret: box.seal(secret, directoryId, field) }
  if (!before) return sealed
  if (overlap === 0) return { ...sealed, oldSecrets: [] }
  const until = new Date(Date.now() + overlap * 1000).toISOString()
  return { ...sealed, oldSecrets: [{ secret: before.secret, until }, ...goodOnes(before.oldSecrets)] }
}

export const sealHeaders = (
  box: SecretBox,
  directoryId: string,
  webhookId: string,
  headers: ReadonlyMap<string, string>,
): SealedHeader[] =>
  [...headers].map(([name, value]) => ({
    name,
    value: box.seal(value, directoryId, headerField(webhookId, name)),
  }))

export const openHeaders = (
  box: SecretBox,
  directoryId: string,
  { id, headers = [] }: NamedWebhook,
): Record<string, string> =>
  Object.fromEntries(
    headers.map(({ name, value }) => [name, box.open(value, directoryId, headerField(id, name))]),
  )

/** The directory's webhooks with their secrets re-encrypted under the first key. */
export function resealWebhooks(
  box: SecretBox,
  directory: Directory,
): Pick<Directory, 'webhook' | 'webhooks'> {
  const [all, { webhooks }] = [webhooksOf(directory).map(each => reseal(box, directory.id, each)), directory]
  const first = all.find(({ id }) => id === firstWebhook)
  const others = all.filter(({ id }) => id !== firstWebhook)
  if (!first) return { webhook: undefined, ...(webhooks && { webhooks: others }) }
  const { id: _, ...webhook } = first
  return { webhook, ...(webhooks && { webhooks: others }) }
}

function reseal(box: SecretBox, directoryId: string, webhook: NamedWebhook): NamedWebhook {
  const { id, secret, oldSecrets, headers } = webhook
  const again = (sealed: string): string => box.reseal(sealed, directoryId, secretField(id))
  return {
    ...webhook,
    secret: again(secret),
    ...(oldSecrets && { oldSecrets: oldSecrets.map(old => ({ ...old, secret: again(old.secret) })) }),
    ...(headers && {
      headers: headers.map(({ name, value }) => ({
        name,
        value: box.reseal(value, directoryId, headerField(id, name)),
      })),
    }),
  }
}

/** A webhook as its directory's view shows it. */
export const viewWebhook = (
  box: SecretBox,
  directoryId: string,
  webhookId: string,
  { endpoint, secret, oldSecrets }: Webhook,
): DirectoryView['webhook'] => ({
  endpoint,
  secret: box.open(secret, directoryId, secretField(webhookId)),
  ...overlapOf(oldSecrets),
})

/** The secrets that sign a call now, the current one first. */
export function signingSecrets(
  box: SecretBox,
  directoryId: string,
  { id, secret, oldSecrets }: NamedWebhook,
): [string, ...string[]] {
  const open = (sealed: string): string => box.open(sealed, directoryId, secretField(id))
  return [open(secret), ...goodOnes(oldSecrets).map(old => open(old.secret))]
}
