import type { Directory, Member, Page, Resource, ResourceType, Scope } from '../model.js'

/**
 * Where one directory stands. Every change names the head it was computed from and is refused when another change came
 * first, so parallel writes lose nothing and a uniqueness check cannot be overtaken.
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

/** An event in the outbox: `body` is the exact JSON text that is delivered. */
export interface QueuedEvent {
  readonly id: string
  readonly sequence: number
  readonly body: string
}

export interface Change {
  readonly writes: readonly Write[]
  /** Numbered on from the head's sequence without a gap. */
  readonly events: readonly QueuedEvent[]
}

/** A place in the order of creation: time, then id. */
export interface Place {
  readonly created: string
  readonly id: string
}

/** What to walk through: all resources of a type in a directory, or those holding any of the terms. */
export interface Scan {
  readonly directoryId: string
  readonly type: ResourceType
  readonly terms?: readonly string[] | undefined
  readonly after?: Place | undefined
  readonly limit: number
}

/** The events of a directory whose delivery this process holds. */
export interface Delivery {
  /** Failed attempts at the first event. */
  readonly attempts: number
  /** Not before this time (epoch ms). */
  readonly due: number
  readonly events: readonly QueuedEvent[]
}

/** How a delivery went. */
export interface DeliveryReport {
  /** Events up to this sequence were delivered and leave the outbox. */
  readonly delivered?: number | undefined
  readonly attempts: number
  readonly due: number
  /** How long the lease lasts from here (epoch ms); 0 gives it back. */
  readonly until: number
}

/** The database does not answer now, or no change gets through; trying again may help. Its message is for the client. */
export class Unavailable extends Error {}

/** What the service asks of a database. One test suite (store-contract.test.ts) holds for all adapters. */
export interface Store {
  createDirectory(directory: Directory): Promise<void>
  directory(id: string): Promise<Directory | undefined>
  /** In order of creation. */
  directories(scope: { tenant: string; product: string }, page: Page): Promise<Directory[]>
  /** The first directory ever made: enough to try the encryption key on. */
  oldestDirectory(): Promise<Directory | undefined>

  /** Finishes an interrupted change first. Undefined for an unknown directory. */
  head(directoryId: string): Promise<Head | undefined>
  /** All of the change and its events, or nothing and false when `head` is no longer the directory's head. */
  commit(directoryId: string, head: Head, change: Change): Promise<boolean>

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

  /** Directories with events in the outbox. */
  directoriesWithEvents(): Promise<string[]>
  /** Takes or renews the lease on a directory's deliveries; undefined while another owner holds it. */
  claimDelivery(directoryId: string, owner: string, now: number, until: number): Promise<Delivery | undefined>
  /** False, and nothing changed, when the owner lost the lease meanwhile. */
  reportDelivery(directoryId: string, owner: string, report: DeliveryReport): Promise<boolean>

  close(): Promise<void>
}

/** All members of a group at once. */
export const everybody: Page = { offset: 0, limit: Number.MAX_SAFE_INTEGER }

/** Most events handed out by one claim. */
export const deliveryBatch = 20
