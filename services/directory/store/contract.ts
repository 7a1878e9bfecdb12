import type {
  Directory,
  DirectoryScope,
  Member,
  Page,
  Place,
  Resource,
  ResourceType,
  Scope,
} from '../model.js'
import type { EventStore, ToldEvent } from './event-contract.js'
import type { LinkStore } from './link-contract.js'
import type { PullStore } from './pull-contract.js'
import type { SetupLinkStore } from './setup-link-contract.js'

/**
 * The state of one directory. Every change names the head it was computed from, and is refused if another
 * change came first, so parallel writes lose nothing and a uniqueness check cannot be bypassed.
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
  | { readonly kind: 'join' | 'leave'; readonly groupId: string; readonly userIds: readonly string[] }

export interface Change {
  readonly writes: readonly Write[]
  /** Numbered on from the head's sequence without a gap. */
  readonly events: readonly ToldEvent[]
}

/** Events of a change of the directory itself, kept together with it or not at all. */
export interface Told {
  readonly head: Head
  readonly events: readonly ToldEvent[]
}

/** A change that is made: the next one may build on it. It outlives a crash, and may be told, once `kept` is fulfilled. */
export interface Made {
  readonly kept: Promise<void>
}

/** What to walk through: all resources of a type in a directory, or those holding any of the terms. */
export interface Scan {
  readonly directoryId: string
  readonly type: ResourceType
  readonly terms?: readonly string[] | undefined
  readonly after?: Place | undefined
  readonly limit: number
}

/** The database does not answer now, or no change gets through; trying again may help. Its message is for the client. */
export class Unavailable extends Error {}

/** The database itself has failed. This is already logged, now and then instead of for each request. */
export class StoreFailed extends Unavailable {}

/** What a database keeps of directories themselves. */
export interface DirectoryStore {
  createDirectory(directory: Directory): Promise<void>
  directory(id: string): Promise<Directory | undefined>
  /** In order of creation, then id. */
  directories(scope: DirectoryScope, page: Page): Promise<Directory[]>
  /** Of all products, in order of creation, then id: those after a place. */
  everyDirectory(page: { readonly after: Place | undefined; readonly limit: number }): Promise<Directory[]>
  /** The first directory made and the last one, to try the encryption keys on: a change of keys goes from one to the other. */
  oldestDirectory(): Promise<Directory | undefined>
  newestDirectory(): Promise<Directory | undefined>
  /** False, and nothing changed, when the directory is no longer as it was in `before`, or `told` is of a stale head. */
  replaceDirectory(before: Directory, after: Directory, told?: Told): Promise<boolean>
  /**
   * The directory is gone at once, what it holds goes with `purgeSome`; what is told of it stays till it is delivered, with
   * the directory as it was. False, and nothing changed, when there is none, or `told` is of a stale head.
   */
  removeDirectory(id: string, told?: Told): Promise<boolean>
  /** Takes away some of what removed directories held. False when nothing is left. */
  purgeSome(): Promise<boolean>
  /** A removed directory as it was, while an event of its removal waits or is a dead letter. */
  departed(id: string): Promise<Directory | undefined>
  everyDeparted(): Promise<Directory[]>
  /** As `replaceDirectory`, of a removed one. */
  replaceDeparted(before: Directory, after: Directory): Promise<boolean>
}

/** What the service asks of a database. One test suite (test/services/directory/store-contract.ts) holds for all adapters. */
export interface Store extends DirectoryStore, EventStore, LinkStore, SetupLinkStore, PullStore {
  /** Finishes an interrupted change first. Undefined for an unknown directory. */
  head(directoryId: string): Promise<Head | undefined>
  /** All of the change and its events, or nothing and undefined when `head` is no longer the directory's head. */
  commit(directoryId: string, head: Head, change: Change): Promise<Made | undefined>

  resource(scope: Scope, type: ResourceType, id: string): Promise<Resource | undefined>
  /** Those of the ids that exist, in no order. */
  resourcesById(directoryId: string, type: ResourceType, ids: readonly string[]): Promise<Resource[]>
  /** Which of the ids exist. */
  idsAmong(directoryId: string, type: ResourceType, ids: readonly string[]): Promise<Set<string>>
  /** In order of creation, then id. */
  resources(scope: Scope, type: ResourceType, page: Page): Promise<Resource[]>
  count(directoryId: string, type: ResourceType): Promise<number>
  /** In order of creation, then id. */
  scan(scan: Scan): Promise<Resource[]>

  /** In order of user id. */
  members(groupId: string, page: Page): Promise<Member[]>
  /** Which of the users belong to the group. */
  membersAmong(groupId: string, userIds: readonly string[]): Promise<Set<string>>
  groupIdsOf(userId: string): Promise<string[]>

  /** Fulfilled when the database takes changes again; to be asked for while it does not. */
  restore(): Promise<void>
  close(): Promise<void>
}

/** Resources that one call of `purgeSome` takes away. */
export const purgeBatch = 250
