/** Id of the webhook that `webhook_url` and `webhook_secret` of a directory define. */
export const firstWebhook = 'default'

/**
 * The queue of one webhook, with its own order and retries. Its name is the directory's id, followed, for any but the
 * first webhook, by a dot and the webhook's id.
 */
export const queueOf = (directoryId: string, webhookId: string): string =>
  webhookId === firstWebhook ? directoryId : `${directoryId}.${webhookId}`

/** The directory and webhook that a queue belongs to. */
export function ownerOf(queue: string): { readonly directoryId: string; readonly webhookId: string } {
  const [directoryId = '', webhookId = firstWebhook] = queue.split('.')
  return { directoryId, webhookId }
}

/** The range of all queue names of a directory in string order: from the first on, and before the second. */
export const queueRange = (directoryId: string): [from: string, before: string] => [
  directoryId,
  `${directoryId}/`,
]

/** The id under which a dead letter or log entry is stored: two webhooks may each have one for the same event. */
export const storedId = (id: string, webhookId: string): string => queueOf(sentId(id), webhookId)

/** The id of the event or batch itself. */
export const sentId = (stored: string): string => ownerOf(stored).directoryId
