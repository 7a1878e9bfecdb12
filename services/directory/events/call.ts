import type { Poster } from '../../../webhooks/post.js'
import { signatureHeaders } from '../../../webhooks/sign.js'
import type { NamedWebhook } from '../model.js'
import type { SecretBox } from '../secrets.js'
import type { Message } from './message.js'
import { openHeaders, signingSecrets } from './webhook.js'

export interface CallResult {
  /** Undefined when there was no response. */
  readonly status?: number
  /** Undefined on success. */
  readonly problem?: string
}

/** Calls a webhook with a signed message; any 2xx is success. Never rejects. */
export type CallWebhook = (
  directoryId: string,
  webhook: NamedWebhook,
  message: Pick<Message, 'id' | 'body'>,
) => Promise<CallResult>

export const createCall =
  (poster: Poster, box: SecretBox): CallWebhook =>
  async (directoryId, webhook, { id, body }) => {
    try {
      const secrets = signingSecrets(box, directoryId, webhook)
      const status = await poster.post(webhook.endpoint, body, {
        ...openHeaders(box, directoryId, webhook),
        ...signatureHeaders(secrets, id, body, Date.now()),
      })
      return status >= 200 && status < 300
        ? { status }
        : { status, problem: `the receiver answered ${status}` }
    } catch (error) {
      return { problem: error instanceof Error ? error.message : String(error) }
    }
  }
