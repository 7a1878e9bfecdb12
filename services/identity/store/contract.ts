/** What the identity service asks of a store. Two adapters keep it; one test suite runs on both. */

import type { StoreFault } from '../../storage/health.js'

/** An identity as stored. `traits` is JSON text: a store never meets a name or value it could misread. */
export interface StoredIdentity {
  /** UUID version 7, so that the order of ids is the order of creation. */
  readonly id: string
  readonly project: string
  readonly schemaId: string
  readonly traits: string
  /** ISO 8601, UTC, milliseconds. */
  readonly createdAt: string
  readonly updatedAt: string
  /** Grows by one with every write. */
  readonly version: number
}

/** For each identifier trait that has a value: its dot path below `traits`, and a key unique in the whole store. */
export type UniqueKeys = ReadonlyMap<string, string>

/** How identifier traits are found in identities, those stored before a schema declared them included. */
export interface Identifiers {
  /** The dot paths of all schemas together. */
  readonly traits: readonly string[]
  /** Another text whenever `keysOf` may give other keys for what is stored. */
  readonly revision: string
  keysOf(project: string, traitsJson: string): UniqueKeys
}

export interface IdentityStore {
  /** Throws IdentifierTaken when another identity holds one of the unique keys. */
  create(identity: StoredIdentity, keys: UniqueKeys): Promise<void>
  find(project: string, id: string): Promise<StoredIdentity | undefined>
  /** At most `limit` identities in order of id, beginning behind `after`. The cost does not grow with the depth. */
  list(project: string, after: string | undefined, limit: number): Promise<StoredIdentity[]>
  /** Writes only when the stored version is still the one before; false otherwise. Throws IdentifierTaken. */
  replace(identity: StoredIdentity, keys: UniqueKeys): Promise<boolean>
  /** Removes it in this version only, when one is given. False when there was none. */
  remove(project: string, id: string, version?: number): Promise<boolean>
  /** Fulfilled when the store takes changes again; to be asked for while it does not. */
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

/** The store cannot be reached now; the request may be repeated. */
export class StoreUnavailable extends Error {
  readonly fault: StoreFault
  constructor(fault: StoreFault, message: string, options: ErrorOptions) {
    super(message, options)
    this.fault = fault
  }
}
