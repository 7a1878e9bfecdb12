/** Limits on request bodies: enforced by the body readers and shown in the API document. */

export const maxNameLength = 256
export const maxUrlLength = 2048
export const minSecretLength = 6
/** For a webhook secret that is a key in base64. */
export const minKeyBytes = 16

const day = 24 * 60 * 60
/** Most replaced secrets that are valid at the same time: each costs a comparison or a signature. */
export const maxOldSecrets = 8
/** Seconds that the old SCIM secret stays valid after a rotation. */
export const overlapSeconds = { standard: day, longest: 30 * day } as const

/** Lifetime of a one-time consent link, in seconds. */
export const linkSeconds = { standard: day, shortest: 60, longest: 7 * day } as const

/** Lifetime of a set-up link in seconds, and how many links a directory may have. */
export const setupLinkSeconds = { standard: 7 * day, shortest: 60, longest: 30 * day } as const
export const maxSetupLinks = 20
/**
 * New SCIM secrets that a set-up link may make, and old ones that may be valid then, so that the operator can still
 * rotate.
 */
export const maxNewTokens = 2
export const maxOldOfLinks = maxOldSecrets / 2

/** Fields that a PATCH may change. */
export const changeable = [
  ...(['name', 'log_webhook_events', 'deactivated', 'webhook_url', 'webhook_secret', 'webhook'] as const),
  'external_domain',
] as const
export type Changeable = (typeof changeable)[number]

/** Per directory. */
export const maxWebhooks = 10
/** Headers per webhook, and the length of a value. */
export const maxHeaders = 20
export const maxHeaderLength = 2048
