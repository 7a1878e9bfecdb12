/** Signs webhook calls, as Standard Webhooks and as BoxyHQ did. */
import { createHmac } from 'node:crypto'

/**
 * The signatures of a webhook call: Standard Webhooks (`v1,<base64>` over `<id>.<seconds>.<body>`, one for each
 * secret) and the header that receivers written for BoxyHQ check (`t=<ms>,s=<hex>` over `<ms>.<body>`), which has room
 * for the first secret only. All are HMAC-SHA256.
 */
export function signatureHeaders(
  secrets: readonly [string, ...string[]],
  id: string,
  body: string,
  now: number,
): Record<string, string> {
  const seconds = Math.floor(now / 1000)
  const standard = secrets.map(
    secret =>
      `v1,${createHmac('sha256', standardKey(secret)).update(`${id}.${seconds}.${body}`).digest('base64')}`,
  )
  const boxyhq = createHmac('sha256', secrets[0]).update(`${now}.${body}`).digest('hex')
  return {
    'webhook-id': id,
    'webhook-timestamp': String(seconds),
    'webhook-signature': standard.join(' '),
    'BoxyHQ-Signature': `t=${now},s=${boxyhq}`,
  }
}

/** A secret `whsec_…` contains its key in base64; any other secret is itself the key. */
const standardKey = (secret: string): Buffer =>
  secret.startsWith('whsec_') ? Buffer.from(secret.slice(6), 'base64') : Buffer.from(secret)
