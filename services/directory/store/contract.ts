import type {
  Directory,
  DirectoryScope,
  GroupMember,
  ListPage,
  ListPlace,
  Resource,
  ResourceType,
  Scope,
} from '../model.js'
import type { EventStore, QueuedEvent } from './event-contract.js'
import type { LinkStore, SetupLinkStore } from './link-contract.js'
import type { PullStore } from './pull-contract.js'

/**
 * The state of one directory. Every change names the head it was computed from, and is refused if another change was
 * committed first, so that concurrent writes lose nothing and a uniqueness check cannot be bypassed.
 */
export interface Head {
  /** Changes committed so far. */
  readonly version: number
  /** Sequence of the last event. */
  readonly sequence: number
}

/** One step of a change. `terms` are the lookup terms of a resource (scim/terms.ts). */
export type Write =
  | { readonly kind: 'create' | 'replace'; readonly resource: Resource; readonly terms: readonly string[] }
  /** Memberships of a deleted user or group go with it. */
  | { readonly kind: 'delete'; readonly id: string }
  | {
      readonly kind: 'join'
      readonly groupId: string
      readonly userIds: readonly string[]
      readonly displays?: Displays
    }
  | { readonly kind: 'leave'; readonly groupId: string; readonly userIds: readonly string[] }
  /** Changes what members that are there already are shown as. */
  | { readonly kind: 'display'; readonly groupId: string; readonly displays: Displays }

/** The `display` of members as it was sent, by user id. */
export type Displays = Readonly<Record<string, string>>

export interface ResourceChange {
  readonly writes: readonly Write[]
  /** Numbered on from the head's sequence without gaps. */
  readonly events: readonly QueuedEvent[]
}

/** Events of a change of the directory itself, stored together with it or not at all. */
export interface Announcement {
  readonly head: Head
  readonly events: readonly QueuedEvent[]
}

/**
 * A change that has been applied: the next one may build on it. Once `durable` is fulfilled, it survives a crash and may
 * be revealed.
 */
export interface AppliedChange {
  readonly durable: Promise<void>
}

/** What to scan: all resources of a type in a directory, or those with any of the terms. */
export interface Scan {
  readonly directoryId: string
  readonly type: ResourceType
  readonly terms?: readonly string[] | undefined
  readonly after?: ListPlace | undefined
  readonly limit: number
}

/** The database does not respond now, or no change gets through; retrying may help. The message is for the client. */
export class DirectoryStoreUnavailable extends Error {}

/** The database itself has failed. This is already logged, at intervals instead of for each request. */
export class StoreFailed extends DirectoryStoreUnavailable {}

/** The database operations for directories themselves. */
export interface DirectoryStore {
  createDirectory(directory: Directory): Promise<void>
  directory(id: string): Promise<Directory | undefined>
  /** In order of creation, then id. */
  directories(scope: DirectoryScope, page: ListPage): Promise<Directory[]>
  /** Of all products, after a place, in order of creation, then id. */
  everyDirectory(page: {
    readonly after: ListPlace | undefined
    readonly limit: number
  }): Promise<Directory[]>
  /**
   * The first and the last directory that were created, to try the encryption keys on: a change of keys goes from one
   * to the other.
   */
  oldestDirectory(): Promise<Directory | undefined>
  newestDirectory(): Promise<Directory | undefined>
  /** False, with nothing changed, when the directory is no longer as in `before`, or `announcement` has a stale head. */
  replaceDirectory(before: Directory, after: Directory, announcement?: Announcement): Promise<boolean>
  /**
   * Deletes the directory at once; its contents go with `purgeSome`. Its events in `announcement` stay until they are
   * delivered, with the directory as it was. False, with nothing changed, when there is none, or `announcement` has a stale
   * head.
   */
  removeDirectory(id: string, announcement?: Announcement): Promise<boolean>
  /** Deletes some of the contents of removed directories. False when nothing is left. */
  purgeSome(): Promise<boolean>
  /** A removed directory as it was, while an event of its removal is waiting or is a dead letter. */
  deletedDirectory(id: string): Promise<Directory | undefined>
  deletedDirectories(): Promise<Directory[]>
  /** Like `replaceDirectory`, for a removed one. */
  replaceDeletedDirectory(before: Directory, after: Directory): Promise<boolean>
}

/**
 * The database operations of the service. One test suite (test/services/directory/store-contract.ts) covers all
 * adapters.
 */
export interface Store extends DirectoryStore, EventStore, LinkStore, SetupLinkStore, PullStore {
  /** Finishes an interrupted change first. Undefined for an unknown directory. */
  head(directoryId: string): Promise<Head | undefined>
  /**
   * Applies all of the change and its events, or nothing and gives undefined when `head` is no longer the directory's
   * head.
   */
  commit(directoryId: string, head: Head, change: ResourceChange): Promise<AppliedChange | undefined>

  resource(scope: Scope, type: ResourceType, id: string): Promise<Resource | undefined>
  /** Those of the ids that exist, in no particular order. */
  resourcesById(directoryId: string, type: ResourceType, ids: readonly string[]): Promise<Resource[]>
  /** Which of the ids exist. */
  idsAmong(directoryId: string, type: ResourceType, ids: readonly string[]): Promise<Set<string>>
  /** In order of creation, then id. */
  resources(scope: Scope, type: ResourceType, page: ListPage): Promise<Resource[]>
  count(directoryId: string, type: ResourceType): Promise<number>
  /** In order of creation, then id. */
  scan(scan: Scan): Promise<Resource[]>

  /** In order of user id. */
  members(groupId: string, page: ListPage): Promise<GroupMember[]>
  /** Which of the users belong to the group, with the `display` that was sent for them, if any. */
  membersAmong(groupId: string, userIds: readonly string[]): Promise<Map<string, string | undefined>>
  groupIdsOf(userId: string): Promise<string[]>

  /** Fulfilled when the database accepts changes again; called while it does not. */
  restore(): Promise<void>
  close(): Promise<void>
}

/** Resources that one call of `purgeSome` deletes. */
export const purgeBatch = 250
