import type { Directory, EventName, NamedWebhook } from '../model.js'
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
