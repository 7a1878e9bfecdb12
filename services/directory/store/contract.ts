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
import type { PullView } from '../schemas/directory.js'
import type { EventStore, QueuedEvent } from './event-contract.js'

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

/** One step of a change. `terms` are the lookup terms of a resource (scim/filter-query.ts). */
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
  directories(scope: DirectoryScope | 'all', page: ListPage): Promise<Directory[]>
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

/** The state of the last or current pull of an external directory. Times are ISO 8601, UTC. */
export interface PullState {
  readonly outcome: 'running' | 'complete' | 'incomplete' | 'refused' | 'failed'
  readonly started: string
  readonly finished: string | null
  /** What an operator needs to know, in sentences; null when all went well. */
  readonly problem: string | null
  /** Where the users came from in the last pull that could read them; null before that. */
  readonly usersFrom: 'users' | 'members' | null
  readonly counts: PullCounts
}

/** What a pull has changed. */
export type PullCounts = Pick<PullView, 'users' | 'groups' | 'memberships'>

/** A claim on one directory's pull. Times are epoch ms. */
export interface PullClaim {
  readonly now: number
  /** When the lease is to end. */
  readonly until: number
  /** Only if no pull began after this time. */
  readonly idleSince?: number | undefined
}

/** The database operations for pulls of external providers; part of the Store. */
export interface PullStore {
  /** Adds the directory to the list of those that are pulled, unless it is there already. */
  enlistPull(directoryId: string): Promise<void>
  pulledDirectories(): Promise<string[]>
  /**
   * Leases a directory's pull to this process and returns its fence; undefined when another process holds it, or it is
   * not due or not enlisted.
   */
  claimPull(directoryId: string, claim: PullClaim): Promise<number | undefined>
  /**
   * Stores the state and keeps the lease until that time (epoch ms; 0 gives it back). False, with nothing changed,
   * when another process has taken the lease.
   */
  reportPull(
    directoryId: string,
    fence: number,
    report: { until: number; state: PullState },
  ): Promise<boolean>
  /** By directory, without those never pulled. `until` is the end of the last lease (epoch ms). */
  pullStates(
    directoryIds: readonly string[],
  ): Promise<Map<string, { readonly state: PullState; readonly until: number }>>
}

/** A stored one-time link to a directory's consent; of its token only the hash is kept. Times are epoch ms. */
export interface ConsentLink {
  readonly hash: string
  readonly directoryId: string
  /** Expiry. */
  readonly until: number
}

/** The database operations for one-time links; part of the Store. Times are epoch ms. */
export interface LinkStore {
  /** Stores a link and deletes expired ones. */
  addLink(link: ConsentLink, now: number): Promise<void>
  /** Undefined when there is none or it has expired. */
  link(hash: string, now: number): Promise<ConsentLink | undefined>
  /** Deletes the link. Of several concurrent callers, in any process, only one gets true. */
  takeLink(hash: string, now: number): Promise<boolean>
  dropLinks(directoryId: string): Promise<void>
}

/** A stored link to the set-up page. */
export interface SetupLink extends ConsentLink {
  readonly id: string
  readonly created: number
  /** When it showed the SCIM secret; absent before that. */
  readonly shown?: number
  /** Number of new secrets made through it; absent: none. */
  readonly made?: number
}

/** The database operations for set-up links; part of the Store. Times are epoch ms. */
export interface SetupLinkStore {
  /**
   * Stores a link and deletes expired ones. False, with nothing stored, when the directory would have more than
   * `maxSetupLinks`; of several made at once for the last place, perhaps none is stored.
   */
  addSetupLink(link: SetupLink, now: number): Promise<boolean>
  /** Undefined when there is none or it has expired. */
  setupLink(hash: string, now: number): Promise<SetupLink | undefined>
  /** The unexpired links of a directory, in order of creation. */
  setupLinks(directoryId: string, now: number): Promise<SetupLink[]>
  /** Records that the link shows the secret now. Of several concurrent callers, in any process, only one gets true. */
  showOnce(hash: string, now: number): Promise<boolean>
  /**
   * Counts a new secret made through the link. False, with nothing counted, once it has made `maxNewTokens`, across
   * all processes.
   */
  countNewSecret(hash: string, now: number): Promise<boolean>
  /** Ends all links of a directory, or the one with that id. Returns how many. */
  dropSetupLinks(directoryId: string, id?: string): Promise<number>
}
