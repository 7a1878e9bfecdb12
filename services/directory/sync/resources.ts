import { randomUUID } from 'node:crypto'
import type { Directory, JsonObject, Resource, ResourceType } from '../model.js'
import { ScimError } from '../scim/error.js'
import { termOf, termsOf } from '../scim/filter-query.js'
import type { Store, Write } from '../store/contract.js'

/**
 * A UUID of version 7 (RFC 9562, section 5.7): ids of the same time are adjacent in an index, so that a new one is
 * written next to the last one.
 */
function newId(now: string): string {
  const time = Date.parse(now).toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`
}

export function newResource(
  directory: Directory,
  type: ResourceType,
  raw: JsonObject,
  now: string,
): Resource {
  const { id: directoryId, tenant, product } = directory
  const identity = { type, id: newId(now), directoryId, tenant, product }
  return { ...identity, created: now, modified: now, label: labelOf(raw), raw }
}

/** The resource with new content. Its lastModified always increases, as its ETag is made from it (see version.ts). */
export const changed = (resource: Resource, raw: JsonObject, now: string): Resource => ({
  ...resource,
  raw,
  label: labelOf(raw),
  modified: now > resource.modified ? now : new Date(Date.parse(resource.modified) + 1).toISOString(),
})

/** The write that stores a resource with its lookup terms. */
export const save = (kind: 'create' | 'replace', resource: Resource): Write => ({
  kind,
  resource,
  terms: termsOf(resource),
})

/** Loads a resource of this directory. Throws 404. */
export async function load(
  store: Store,
  directory: Directory,
  type: ResourceType,
  id: string,
): Promise<Resource> {
  const found = await store.resource({ directoryId: directory.id }, type, id)
  if (!found) throw new ScimError(404, `There is no ${type} with this id.`)
  return found
}

/** Throws when a resource is not in the state that a request expects. */
export type WriteCheck = (current: Resource) => void

/** Changes of one type of resource as SCIM defines them. All methods throw ScimError. */
export interface ResourceSync {
  create(directory: Directory, body: unknown): Promise<Resource>
  replace(directory: Directory, id: string, body: unknown, check?: WriteCheck): Promise<Resource>
  patch(directory: Directory, id: string, body: unknown, check?: WriteCheck): Promise<Resource>
  remove(directory: Directory, id: string, check?: WriteCheck): Promise<void>
}

/**
 * Throws 409 when another resource of the directory has the name, in any letter case; for a userName see
 * login-names.ts. `held` is the resource before the change: a name that it keeps is not looked up.
 */
export async function requireUnique(
  store: Store,
  directory: Directory,
  type: ResourceType,
  attribute: 'userName' | 'displayName',
  raw: JsonObject,
  held?: Resource,
): Promise<void> {
  const termIn = (named: JsonObject): string =>
    termOf(attribute === 'userName' ? 'username' : 'displayname', String(named[attribute]))
  const term = termIn(raw)
  if (held && termIn(held.raw) === term) return
  const [holder] = await store.scan({ directoryId: directory.id, type, terms: [term], limit: 1 })
  if (holder) {
    throw new ScimError(409, `Another ${type} has this ${attribute}.`, 'uniqueness')
  }
}

const labelOf = ({ displayName, userName }: JsonObject): string => String(displayName ?? userName ?? '')

export const extensionsOf = (raw: JsonObject): string[] => Object.keys(raw).filter(key => key.includes(':'))

/** Sorts by creation, then id. */
export function inOrder(resources: Resource[]): Resource[] {
  const place = ({ created, id }: Resource): string => created + id
  return resources.sort((a, b) => (place(a) < place(b) ? -1 : 1))
}
