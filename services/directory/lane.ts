/** The webhook that `webhook_url` and `webhook_secret` of a directory name. */
export const firstWebhook = 'default'

/**
 * The queue of one webhook, with its own order and retries: named by the directory's id and, for another than its first
 * webhook, a dot and the webhook's id.
 */
export const laneOf = (directoryId: string, webhookId: string): string =>
  webhookId === firstWebhook ? directoryId : `${directoryId}.${webhookId}`

/** Whose queue it is. */
export function ownerOf(lane: string): { readonly directoryId: string; readonly webhookId: string } {
  const [directoryId = '', webhookId = firstWebhook] = lane.split('.')
  return { directoryId, webhookId }
}

/** The bounds of all lanes of a directory, in the order of texts: from the first on, and before the second. */
export const lanesOf = (directoryId: string): [from: string, before: string] => [
  directoryId,
  `${directoryId}/`,
]

/** The id under which a dead letter or log entry is kept: two webhooks may each have one of the same event. */
export const keptId = (id: string, webhookId: string): string => laneOf(sentId(id), webhookId)

/** The id of the event or batch itself. */
export const sentId = (kept: string): string => ownerOf(kept).directoryId
