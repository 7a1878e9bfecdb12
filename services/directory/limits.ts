import { MAX_BODY_BYTES } from '../http/body.js'

/** Limits on one request. Together they bound the time and memory that any request can take. */
export const limits = {
  bodyBytes: MAX_BODY_BYTES,
  bodyDepth: 32,
  /** A user, or a group without its members, as JSON text. */
  resourceBytes: 64 * 1024,
  attributesPerObject: 500,
  valuesPerList: 1000,
  /** Characters of userName and displayName. */
  nameLength: 1024,
  /** Members that one request may name. */
  members: 10_000,
  /** Members of groups and groups of users on one SCIM page; a page that would hold more ends early. */
  membershipsPerPage: 20_000,
  /** Members of a group in a list of groups and in an event. */
  membersOfListed: 1000,
  /** Members of one group, or groups of one user, in a response. */
  membershipsPerResource: 100_000,
  filterBytes: 4096,
  filterDepth: 50,
  /** Operations of one PATCH; an operation without a path counts once for each attribute it sets. */
  operations: 1000,
  bulkOperations: 1000,
  /** Resources that one query may read, to filter or to sort them. */
  searchedResources: 200_000,
  /** Values that one search may compare with its conditions; a long text counts once for each 256 characters. */
  searchedValues: 3_000_000,
  /** Names in a path such as `name.givenName`. */
  pathNames: 8,
  /** Values that all operations of one PATCH may look at, counted each time they are looked at. */
  patchLooks: 1_000_000,
  /** All webhook events of one change, as JSON text. */
  eventBytes: 32 * 1024 * 1024,
  /** Resources held in memory at a time while many are processed. */
  resourcesAtOnce: 100,
} as const

/** Splits a list into pieces of at most `size` items. */
export function batchesOf<T>(list: readonly T[], size: number): T[][] {
  const pieces: T[][] = []
  for (let start = 0; start < list.length; start += size) pieces.push(list.slice(start, start + size))
  return pieces
}

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
