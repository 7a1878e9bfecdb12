/** What the identity service requires of a store. There are two adapters; one test suite covers both. */

import type { StoreFault } from '../../storage/health.js'

/** An identity as stored. `traits` is JSON text, so that a store cannot misread any name or value. */
export interface StoredIdentity {
  /** UUID version 7, so that the order of ids is the order of creation. */
  readonly id: string
  readonly project: string
  readonly schemaId: string
  readonly traits: string
  /** ISO 8601, UTC, milliseconds. */
  readonly createdAt: string
  readonly updatedAt: string
  /** Increases by one with every write. */
  readonly version: number
}

/** For each identifier trait that has a value: its dot path below `traits`, and a key unique in the whole store. */
export type UniqueKeys = ReadonlyMap<string, string>

/** How identifier traits are found in identities, including those stored before a schema declared them. */
export interface Identifiers {
  /** The dot paths of all schemas together. */
  readonly traits: readonly string[]
  /** Changes whenever `keysOf` may return other keys for stored identities. */
  readonly revision: string
  keysOf(project: string, traitsJson: string): UniqueKeys
}

export interface IdentityStore {
  /** Throws IdentifierTaken when another identity has one of the unique keys. */
  create(identity: StoredIdentity, keys: UniqueKeys): Promise<void>
  find(project: string, id: string): Promise<StoredIdentity | undefined>
  /** At most `limit` identities in order of id, after `after`. The cost does not grow with the depth. */
  list(project: string, after: string | undefined, limit: number): Promise<StoredIdentity[]>
  /** Writes only if the stored version is still the previous one; false otherwise. Throws IdentifierTaken. */
  replace(identity: StoredIdentity, keys: UniqueKeys): Promise<boolean>
  /** Removes the identity, or only this version if one is given. False when there was none. */
  remove(project: string, id: string, version?: number): Promise<boolean>
  /** Fulfilled when the store accepts changes again; called while it does not. */
  restore(): Promise<void>
  close(): Promise<void>
}

/** Another identity of the project already has this identifier. */
export class IdentifierTaken extends Error {
  /** Dot path below `traits`. */
  readonly trait: string
  constructor(trait: string) {
    super(`another identity has the same ${trait}`)
    this.trait = trait
  }
}

/** The store does not work at present; the request may be repeated. */
export class StoreUnavailable extends Error {
  readonly fault: StoreFault
  constructor(fault: StoreFault, message: string, options: ErrorOptions) {
    super(message, options)
    this.fault = fault
  }
}
