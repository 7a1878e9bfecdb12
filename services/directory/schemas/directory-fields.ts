/** What bodies may say of a directory: the reader of bodies refuses by it, and the API document tells of it. */

export const maxNameLength = 256
export const maxUrlLength = 2048
export const minSecretLength = 6
/** Of a webhook secret that is a key in base64. */
export const minKeyBytes = 16

const day = 24 * 60 * 60
/** Replaced secrets that may be good at the same time: each costs a comparison or a signature. */
export const maxOldSecrets = 8
/** Seconds that the old SCIM secret stays good after a rotation. */
export const overlapSeconds = { standard: day, longest: 30 * day } as const

/** How long a one-time link to a consent may be good. */
export const linkSeconds = { standard: day, shortest: 60, longest: 7 * day } as const

/** How long a set-up link may be good, and how many a directory may have. */
export const setupLinkSeconds = { standard: 7 * day, shortest: 60, longest: 30 * day } as const
export const maxSetupLinks = 20
/** New SCIM secrets that a set-up link may make; and old ones that may be good then, so that the operator can still rotate. */
export const maxNewTokens = 2
export const maxOldOfLinks = maxOldSecrets / 2

/** What a PATCH may change. */
export const changeable = [
  ...(['name', 'log_webhook_events', 'deactivated', 'webhook_url', 'webhook_secret', 'webhook'] as const),
  'external_domain',
] as const
export type Changeable = (typeof changeable)[number]

/** Of one directory. */
export const maxWebhooks = 10
/** What a body may say of a webhook. */
export const webhookFields = ['endpoint', 'secret', 'events', 'headers', 'disabled'] as const
/** Headers of a webhook, and the length of a value. */
export const maxHeaders = 20
export const maxHeaderLength = 2048
