/** The data model of the directory service. Types only. */

import type { JsonObject } from '../json.js'

export type { JsonObject, JsonValue } from '../json.js'

/** Provider types; `google` is an alias of `external` and kept as it was sent. */
export const directoryTypes = [
  'azure-scim-v2',
  'onelogin-scim-v2',
  'okta-scim-v2',
  'jumpcloud-scim-v2',
  'generic-scim-v2',
  'external',
  'google',
] as const
export type DirectoryType = (typeof directoryTypes)[number]

/** A connection to one identity provider. Secrets are sealed (see secrets.ts), never clear. */
export interface Directory {
  readonly id: string
  readonly name: string
  readonly tenant: string
  readonly product: string
  readonly type: DirectoryType
  readonly logWebhookEvents: boolean
  readonly deactivated: boolean
  readonly scimSecret: string
  /** SCIM secrets that rotations replaced, newest first. */
  readonly oldScimSecrets?: readonly OldSecret[]
  /** The webhook of `webhook_url` and `webhook_secret`. */
  readonly webhook: Webhook | undefined
  readonly webhooks?: readonly NamedWebhook[]
  /** Only for the types that are pulled. */
  readonly external?: External
  /** ISO 8601, UTC. */
  readonly created: string
}

/** How a pulled directory reaches its provider. */
export interface External {
  /** The workspace's domain; empty: all domains of the account that gave its consent. */
  readonly domain: string
  /** Absent until the provider's admin has given consent. Sealed. */
  readonly tokens?: {
    readonly access: string
    readonly refresh: string
    /** When the access token expires (epoch ms), if that is known. */
    readonly expires?: number
  }
}

/** Where a directory's events go. Secrets are sealed. */
export interface Webhook {
  readonly endpoint: string
  readonly secret: string
  /** Replaced secrets, which also sign calls; newest first. */
  readonly oldSecrets?: readonly OldSecret[]
  /** The events that are sent there; absent: all. */
  readonly events?: readonly EventName[]
  /** Sent with each call; values are sealed. */
  readonly headers?: readonly SealedHeader[]
  /** Absent: false. Events that happen meanwhile are never sent there. */
  readonly disabled?: boolean
  /**
   * The directory's last event when the webhook was set: events up to it belong to an earlier webhook with this id.
   * Absent: it was made with the directory.
   */
  readonly since?: number
}

/** A webhook with its id, unique within its directory. */
export interface NamedWebhook extends Webhook {
  readonly id: string
}

export interface SealedHeader {
  readonly name: string
  readonly value: string
}

/** All events that a directory sends. */
export const eventNames = [
  ...(['user.created', 'user.updated', 'user.deleted'] as const),
  ...(['group.created', 'group.updated', 'group.deleted'] as const),
  ...(['group.user_added', 'group.user_removed'] as const),
  ...(['dsync.activated', 'dsync.deactivated', 'dsync.deleted'] as const),
] as const
export type EventName = (typeof eventNames)[number]

/** A replaced secret, valid until the given time (ISO 8601, UTC). Sealed. */
export interface OldSecret {
  readonly secret: string
  readonly until: string
}

export type ResourceType = 'user' | 'group'

/** A user or a group. A group's members are not in `raw`: each membership is a pair of its own. */
export interface Resource {
  readonly type: ResourceType
  readonly id: string
  readonly directoryId: string
  readonly tenant: string
  readonly product: string
  /** ISO 8601, UTC. */
  readonly created: string
  readonly modified: string
  /** What a group shows as `display` of this member, unless its provider sent another. */
  readonly label: string
  /** The SCIM resource as received, without what the service sets itself (id, meta, members). */
  readonly raw: JsonObject
}

export interface GroupMember {
  readonly userId: string
  /** What the group shows as `display`: as it was sent, else the user's label. */
  readonly label: string
}

/** What a read covers: one directory, or all directories of a tenant and product. */
export type Scope = { readonly directoryId: string } | { readonly tenant: string; readonly product: string }

/** A position in the order of creation: time (ISO 8601), then id. Members have no time of their own: theirs is ''. */
export interface ListPlace {
  readonly created: string
  readonly id: string
}

/** Part of a list: `limit` items after a place, or after `offset` items. */
export interface ListPage {
  readonly offset: number
  readonly limit: number
  readonly after?: ListPlace | undefined
}

/** Directories of a product, of all tenants or of one. */
export interface DirectoryScope {
  readonly product: string
  readonly tenant?: string
}
