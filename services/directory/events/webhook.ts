import type { Webhook } from '../model.js'
import type { SecretBox } from '../secrets.js'

/** How long calls are signed with the old secret too, after it was replaced. */
const overlapMs = 24 * 60 * 60 * 1000

const field = 'webhook'

/**
 * The webhook with its secret sealed; without a secret the one before stays. A secret that takes the place of another
 * leaves that one valid beside it for a day, so that the receiver can change over meanwhile.
 */
export function sealWebhook(
  box: SecretBox,
  directoryId: string,
  { endpoint, secret = '' }: { endpoint: string; secret: string | undefined },
  before: Webhook | undefined,
): Webhook {
  const isOld = before && ['', box.open(before.secret, directoryId, field)].includes(secret)
  if (isOld) return { ...before, endpoint }
  const sealed = { endpoint, secret: box.seal(secret, directoryId, field) }
  if (!before) return sealed
  const until = new Date(Date.now() + overlapMs).toISOString()
  return { ...sealed, oldSecret: { secret: before.secret, until } }
}

/** The webhook with its secrets under the first encryption key. */
export function resealWebhook(box: SecretBox, directoryId: string, webhook: Webhook): Webhook {
  const reseal = (sealed: string): string => box.reseal(sealed, directoryId, field)
  const { secret, oldSecret } = webhook
  const old = oldSecret && { oldSecret: { ...oldSecret, secret: reseal(oldSecret.secret) } }
  return { ...webhook, secret: reseal(secret), ...old }
}

/** The webhook as the management API shows it, its secret in clear. */
export function viewWebhook(
  box: SecretBox,
  directoryId: string,
  { endpoint, secret, oldSecret }: Webhook,
): { endpoint: string; secret: string; old_secret_valid_until?: string } {
  const overlap = oldSecret && isGood(oldSecret) ? { old_secret_valid_until: oldSecret.until } : {}
  return { endpoint, secret: box.open(secret, directoryId, field), ...overlap }
}

/** The secrets that sign a call now, the current one first. */
export function signingSecrets(box: SecretBox, directoryId: string, webhook: Webhook): [string, ...string[]] {
  const current = box.open(webhook.secret, directoryId, field)
  const { oldSecret } = webhook
  return oldSecret && isGood(oldSecret)
    ? [current, box.open(oldSecret.secret, directoryId, field)]
    : [current]
}

const isGood = ({ until }: { until: string }): boolean => Date.parse(until) > Date.now()
