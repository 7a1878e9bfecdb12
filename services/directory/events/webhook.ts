import type { Webhook } from '../model.js'
import { goodOnes, overlapOf } from '../old-secrets.js'
import type { SecretBox } from '../secrets.js'

/** How long calls are signed with the old secret too, after it was replaced. */
const overlapMs = 24 * 60 * 60 * 1000

const field = 'webhook'

/**
 * The webhook with its secret sealed; without a secret the one before stays. A secret that takes the place of another
 * leaves that one valid beside it for a day, so that the receiver can change over meanwhile; others before it stay valid too until
 * their own day is over.
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
  return { ...sealed, oldSecrets: [{ secret: before.secret, until }, ...goodOnes(before.oldSecrets)] }
}

/** The webhook with its secrets under the first encryption key. */
export function resealWebhook(box: SecretBox, directoryId: string, webhook: Webhook): Webhook {
  const reseal = (sealed: string): string => box.reseal(sealed, directoryId, field)
  const { secret, oldSecrets } = webhook
  const old = oldSecrets && { oldSecrets: oldSecrets.map(old => ({ ...old, secret: reseal(old.secret) })) }
  return { ...webhook, secret: reseal(secret), ...old }
}

/** The webhook as the management API shows it, its secret in clear. */
export function viewWebhook(
  box: SecretBox,
  directoryId: string,
  { endpoint, secret, oldSecrets }: Webhook,
): { endpoint: string; secret: string; old_secret_valid_until?: string } {
  return { endpoint, secret: box.open(secret, directoryId, field), ...overlapOf(oldSecrets) }
}

/** The secrets that sign a call now, the current one first. */
export function signingSecrets(box: SecretBox, directoryId: string, webhook: Webhook): [string, ...string[]] {
  const current = box.open(webhook.secret, directoryId, field)
  const older = goodOnes(webhook.oldSecrets).map(old => box.open(old.secret, directoryId, field))
  return [current, ...older]
}
