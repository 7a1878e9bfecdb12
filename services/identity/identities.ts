/** What can be done with identities, whatever the transport and the store. */
import { createHash } from 'node:crypto'
import { isJsonObject, type JsonObject, type JsonValue, own } from './form/json.js'
import { type ParseResult, parseTraits } from './form/parse.js'
import type { CompiledSchema } from './form/schema.js'
import { idMaker } from './ids.js'
import type { Identifiers, IdentityStore, StoredIdentity, UniqueKeys } from './store/contract.js'

/** An identity as the API shows it. */
export interface Identity {
  readonly id: string
  readonly schema_id: string
  readonly traits: JsonObject
  readonly created_at: string
  readonly updated_at: string
}

/** The outcome of a write: the identity, what is wrong with the traits, or undefined when there is no such identity. */
export type Written = { readonly identity: Identity } | Extract<ParseResult, { errors: unknown }> | undefined

/** Writers that meet try again on what the other wrote; more collisions than this mean something else is wrong. */
const MAX_ATTEMPTS = 50

/** How the store finds the values that must be unique: per project and trait, whatever their letter case. */
export function identifiersOf(schema: CompiledSchema): Identifiers {
  const paths = new Map(schema.identifiers.map(path => [path.join('.'), path]))
  return {
    traits: [...paths.keys()],
    keysOf(project, traitsJson) {
      const traits = JSON.parse(traitsJson) as JsonObject
      const keys = new Map<string, string>()
      for (const [trait, path] of paths) {
        const value = path.reduce<JsonValue | undefined>(
          (holder, name) => (isJsonObject(holder) ? own(holder, name) : undefined),
          traits,
        )
        if (typeof value !== 'string') continue
        const folded = value.normalize('NFKC').toLowerCase()
        keys.set(
          trait,
          createHash('sha256')
            .update(JSON.stringify([project, trait, folded]))
            .digest('hex'),
        )
      }
      return keys
    },
  }
}

export class Identities {
  readonly schema: CompiledSchema
  readonly #store: IdentityStore
  readonly #identifiers: Identifiers
  readonly #now: () => number
  readonly #newId: () => string

  /** `now` is the clock, in milliseconds since the epoch. */
  constructor(schema: CompiledSchema, store: IdentityStore, now: () => number) {
    this.schema = schema
    this.#store = store
    this.#identifiers = identifiersOf(schema)
    this.#now = now
    this.#newId = idMaker(now)
  }

  /** Stores traits that are already valid. Throws IdentifierTaken. */
  async add(project: string, traits: JsonObject): Promise<Identity> {
    const now = new Date(this.#now()).toISOString()
    const stored = this.#stored({ id: this.#newId(), project, createdAt: now, version: 0 }, traits, now)
    await this.#store.create(stored, this.#keys(stored))
    return shown(stored)
  }

  /** Validates and stores. Throws IdentifierTaken. */
  async create(project: string, traits: JsonValue): Promise<Exclude<Written, undefined>> {
    const result = parseTraits(this.schema, traits)
    return 'errors' in result ? result : { identity: await this.add(project, result.traits) }
  }

  async find(project: string, id: string): Promise<Identity | undefined> {
    const stored = await this.#store.find(project, id)
    return stored && shown(stored)
  }

  /** One page behind the identity `after`, and whether there is more. */
  async list(
    project: string,
    after: string | undefined,
    size: number,
  ): Promise<{ identities: Identity[]; more: boolean }> {
    const found = await this.#store.list(project, after, size + 1)
    return { identities: found.slice(0, size).map(shown), more: found.length > size }
  }

  /** PUT: the traits become exactly these. Throws IdentifierTaken. */
  replace(project: string, id: string, traits: JsonValue): Promise<Written> {
    return this.#update(project, id, () => traits)
  }

  /** PATCH: the traits are merged, null removes (RFC 7396). Throws IdentifierTaken. */
  merge(project: string, id: string, patch: JsonValue): Promise<Written> {
    return this.#update(project, id, traits => mergePatch(traits, patch))
  }

  remove(project: string, id: string): Promise<boolean> {
    return this.#store.remove(project, id)
  }

  /** Repeats `change` on the newest traits until nobody else wrote in between. */
  async #update(project: string, id: string, change: (traits: JsonObject) => JsonValue): Promise<Written> {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const before = await this.#store.find(project, id)
      if (!before) return undefined
      const result = parseTraits(this.schema, change(JSON.parse(before.traits) as JsonObject))
      if ('errors' in result) return result
      const after = this.#stored(before, result.traits, new Date(this.#now()).toISOString())
      if (await this.#store.replace(after, this.#keys(after))) return { identity: shown(after) }
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
      schemaId: this.schema.id,
      traits: JSON.stringify(traits),
      updatedAt,
      version: before.version + 1,
    }
  }

  #keys(identity: StoredIdentity): UniqueKeys {
    return this.#identifiers.keysOf(identity.project, identity.traits)
  }
}

function shown(stored: StoredIdentity): Identity {
  return {
    id: stored.id,
    schema_id: stored.schemaId,
    traits: JSON.parse(stored.traits) as JsonObject,
    created_at: stored.createdAt,
    updated_at: stored.updatedAt,
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
