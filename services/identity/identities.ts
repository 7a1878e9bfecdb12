/** Operations on identities, independent of the transport and the store. */

import { isJsonObject, type JsonObject, type JsonValue, own } from '../json.js'
import type { FieldError } from './decode/messages.js'
import { findProblems, type ParseResult, parseTraits } from './decode/parse.js'
import type { Precondition } from './http.js'
import { idMaker } from './ids.js'
import type { Schemas } from './schema/files.js'
import type { CompiledSchema } from './schema/schema.js'
import type { Identifiers, IdentityStore, StoredIdentity, UniqueKeys } from './store/contract.js'

/** An identity as the API shows it. */
export interface Identity {
  readonly id: string
  readonly schema_id: string
  readonly traits: JsonObject
  readonly created_at: string
  readonly updated_at: string
  /** How stored traits differ from what the project's schema requires today; the next write has to fix it. */
  readonly schema_problems?: readonly FieldError[]
}

/** An identity with its version, which increases with every write. */
export interface Versioned {
  readonly identity: Identity
  readonly version: number
}

/** The outcome of a write: the identity, the problems of the traits, or undefined when there is no such identity. */
export type WrittenIdentity = Versioned | Extract<ParseResult, { errors: unknown }> | undefined

/** A write without a condition. */
const ALWAYS: Precondition = () => true

/** Conflicting writers retry on the newer version; more conflicts than this mean something else is wrong. */
const MAX_ATTEMPTS = 50

/** The identity's version is none that the writer named. */
export class PreconditionFailed extends Error {}

export class Identities {
  readonly #schemas: Schemas
  readonly #store: IdentityStore
  readonly #identifiers: Identifiers
  readonly #now: () => number
  readonly #newId: () => string

  /** `now` is the clock, in milliseconds since the epoch. */
  constructor(schemas: Schemas, identifiers: Identifiers, store: IdentityStore, now: () => number) {
    this.#schemas = schemas
    this.#store = store
    this.#identifiers = identifiers
    this.#now = now
    this.#newId = idMaker(now)
  }

  /** The schema that the identities of `project` follow. */
  schemaOf(project: string): CompiledSchema {
    return this.#schemas.of(project)
  }

  /** Stores traits that are already valid. Throws IdentifierTaken. */
  async add(project: string, traits: JsonObject): Promise<Versioned> {
    const now = new Date(this.#now()).toISOString()
    const stored = this.#stored({ id: this.#newId(), project, createdAt: now, version: 0 }, traits, now)
    await this.#store.create(stored, this.#keys(stored))
    return this.#shown(stored)
  }

  /** Validates and stores. Throws IdentifierTaken. */
  async create(project: string, traits: JsonValue): Promise<Exclude<WrittenIdentity, undefined>> {
    const result = parseTraits(this.schemaOf(project), traits)
    return 'errors' in result ? result : this.add(project, result.traits)
  }

  async find(project: string, id: string): Promise<Versioned | undefined> {
    const stored = await this.#store.find(project, id)
    return stored && this.#shown(stored)
  }

  /** One page after the identity `after`, and whether there is more. */
  async list(
    project: string,
    after: string | undefined,
    size: number,
  ): Promise<{ identities: Identity[]; more: boolean }> {
    const found = await this.#store.list(project, after, size + 1)
    const identities = found.slice(0, size).map(stored => this.#shown(stored).identity)
    return { identities, more: found.length > size }
  }

  /** PUT: the traits become exactly these. Throws IdentifierTaken and PreconditionFailed. */
  replace(project: string, id: string, traits: JsonValue, known?: Precondition): Promise<WrittenIdentity> {
    return this.#update(project, id, () => traits, known)
  }

  /** PATCH: the traits are merged, null removes (RFC 7396). Throws IdentifierTaken and PreconditionFailed. */
  merge(project: string, id: string, patch: JsonValue, known?: Precondition): Promise<WrittenIdentity> {
    return this.#update(project, id, traits => mergePatch(traits, patch), known)
  }

  /** False when there is no such identity. Throws PreconditionFailed. */
  async remove(project: string, id: string, known: Precondition = ALWAYS): Promise<boolean> {
    if (known === ALWAYS) return this.#store.remove(project, id)
    const before = await this.#store.find(project, id)
    if (!before) return false
    const removed = known(before.version) && (await this.#store.remove(project, id, before.version))
    if (!removed) throw new PreconditionFailed()
    return true
  }

  /** Repeats `change` on the newest traits until no other write came in between. */
  async #update(
    project: string,
    id: string,
    change: (traits: JsonObject) => JsonValue,
    known: Precondition = ALWAYS,
  ): Promise<WrittenIdentity> {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const before = await this.#store.find(project, id)
      if (!before) return undefined
      if (!known(before.version)) throw new PreconditionFailed()
      const result = parseTraits(this.schemaOf(project), change(JSON.parse(before.traits) as JsonObject))
      if ('errors' in result) return result
      const after = this.#stored(before, result.traits, new Date(this.#now()).toISOString())
      if (await this.#store.replace(after, this.#keys(after))) return this.#shown(after)
    }
    throw new Error(`an identity changed ${MAX_ATTEMPTS} times while it was being written`)
  }

  #stored(
    before: Pick<StoredIdentity, 'id' | 'project' | 'createdAt' | 'version'>,
    traits: JsonObject,
    updatedAt: string,
  ): StoredIdentity {
    return {
      ...before,
      schemaId: this.schemaOf(before.project).id,
      traits: JSON.stringify(traits),
      updatedAt,
      version: before.version + 1,
    }
  }

  #keys(identity: StoredIdentity): UniqueKeys {
    return this.#identifiers.keysOf(identity.project, identity.traits)
  }

  #shown(stored: StoredIdentity): Versioned {
    const traits = JSON.parse(stored.traits) as JsonObject
    const problems = findProblems(this.schemaOf(stored.project), traits)
    const identity: Identity = {
      id: stored.id,
      schema_id: stored.schemaId,
      traits,
      created_at: stored.createdAt,
      updated_at: stored.updatedAt,
      ...(problems.length === 0 ? {} : { schema_problems: problems }),
    }
    return { identity, version: stored.version }
  }
}

function mergePatch(target: JsonValue | undefined, patch: JsonValue): JsonValue {
  if (!isJsonObject(patch)) return patch
  const merged: JsonObject = isJsonObject(target) ? { ...target } : {}
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete merged[name]
    else merged[name] = mergePatch(own(merged, name), value)
  }
  return merged
}
