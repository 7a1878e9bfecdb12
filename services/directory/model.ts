/** The data model of the directory service. Types only. */

export type Json = null | boolean | number | string | Json[] | JsonObject
export interface JsonObject {
  [key: string]: Json
}

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
  /** SCIM secrets from before rotations, the newest first. */
  readonly oldScimSecrets?: readonly OldSecret[]
  /** The one that `webhook_url` and `webhook_secret` name. */
  readonly webhook: Webhook | undefined
  /** Further ones. */
  readonly webhooks?: readonly NamedWebhook[]
  /** Of the types that are pulled. */
  readonly external?: External
  /** ISO 8601, UTC. */
  readonly created: string
}

/** How a pulled directory reaches its provider. */
export interface External {
  /** The workspace's domain; empty: all domains of the account that gave its consent. */
  readonly domain: string
  /** Absent until the provider's admin gave their consent. Sealed. */
  readonly tokens?: {
    readonly access: string
    readonly refresh: string
    /** When the access token ends (epoch ms), if that is known. */
    readonly expires?: number
  }
}

/** Where a directory's events go. Secrets are sealed. */
export interface Webhook {
  readonly endpoint: string
  readonly secret: string
  /** Secrets from before changes, which sign calls too; the newest first. */
  readonly oldSecrets?: readonly OldSecret[]
  /** The events that go there; absent: all. */
  readonly events?: readonly EventName[]
  /** Sent with each call; values are sealed. */
  readonly headers?: readonly SealedHeader[]
  /** Absent: false. What happens meanwhile does not go there. */
  readonly disabled?: boolean
  /** The directory's last event when it was set: those up to it went to another of its id. Absent: it was made with the directory. */
  readonly since?: number
}

/** A webhook with the id that it has within its directory. */
export interface NamedWebhook extends Webhook {
  readonly id: string
}

/** A header of webhook calls. */
export interface SealedHeader {
  readonly name: string
  readonly value: string
}

/** All that a directory tells. */
export const eventNames = [
  ...(['user.created', 'user.updated', 'user.deleted'] as const),
  ...(['group.created', 'group.updated', 'group.deleted'] as const),
  ...(['group.user_added', 'group.user_removed'] as const),
  ...(['dsync.activated', 'dsync.deactivated', 'dsync.deleted'] as const),
] as const
export type EventName = (typeof eventNames)[number]

/** A secret that was replaced and is good until then (ISO 8601, UTC). Sealed. */
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
  /** What a group shows as `display` of this member. */
  readonly label: string
  /** The SCIM resource as received, without what the service sets itself (id, meta, members). */
  readonly raw: JsonObject
}

export interface Member {
  readonly userId: string
  readonly label: string
}

/** Where a read looks: in one directory, or in all directories of a tenant's product. */
export type Scope = { readonly directoryId: string } | { readonly tenant: string; readonly product: string }

/** A place in the order of creation: time (ISO 8601), then id. Members have no time of their own: theirs is ''. */
export interface Place {
  readonly created: string
  readonly id: string
}

/** Part of a list: `limit` items after a place, or after so many items. */
export interface Page {
  readonly offset: number
  readonly limit: number
  readonly after?: Place | undefined
}

/** Directories of a product, of all tenants or of one. */
export interface DirectoryScope {
  readonly product: string
  readonly tenant?: string
}
