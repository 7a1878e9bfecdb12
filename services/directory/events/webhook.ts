import type { Directory, NamedWebhook, SealedHeader, Webhook } from '../model.js'
import type { SecretBox } from '../secrets.js'
import { goodOnes, overlapOf } from '../secrets.js'
import { firstWebhook } from './queue.js'
import { webhooksOf } from './webhooks.js'

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

/** A webhook as the management API shows it within its directory, with its secret in clear. */
export interface WebhookView {
  endpoint: string
  secret: string
  old_secret_valid_until?: string
}

/** A webhook as its directory's view shows it. */
export const viewWebhook = (
  box: SecretBox,
  directoryId: string,
  webhookId: string,
  { endpoint, secret, oldSecrets }: Webhook,
): WebhookView => ({
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
