import { setImmediate as breathe } from 'node:timers/promises'
import { limits } from '../limits.js'
import type { Directory, JsonObject, Resource, ResourceType } from '../model.js'
import { type Filter, parseFilter } from '../scim/filter.js'
import { viewMembers } from '../scim/group.js'
import { matches } from '../scim/match.js'
import { narrow } from '../scim/terms.js'
import { everybody, type Store } from '../store/contract.js'
import { load } from '../sync/resources.js'
import { query, queryInteger, type Request } from './http.js'

/** How a type of resource is called outside. */
export interface Naming {
  readonly type: ResourceType
  /** In addresses. */
  readonly path: 'Users' | 'Groups'
  /** In `meta.resourceType`. */
  readonly name: 'User' | 'Group'
}

/** Answers SCIM reads; `base` is the address of the resource type in this directory. */
export interface ScimReader {
  view(resource: Resource, base: string, request: Request): Promise<JsonObject>
  /** True when a view would carry so many members that a small change had better be answered without one. */
  isLarge(resource: Resource, request: Request): Promise<boolean>
  one(directory: Directory, id: string, base: string, request: Request): Promise<JsonObject>
  /** A ListResponse of RFC 7644, section 3.4.2. */
  list(directory: Directory, base: string, request: Request): Promise<object>
}

const defaultCount = 100
const maxCount = 200
/** A search gives way to other requests after so many milliseconds. */
const searchSlice = 20
/** A page of groups ends early rather than carry more members than this. */
const maxMembersPerPage = 20_000
const maxMembersInPatchAnswer = 1000

/** The reads of one resource type. Refusals are ScimError and HttpError. */
export function createScimReader(store: Store, { type, name }: Naming): ScimReader {
  /** `groups` is computed in SCIM, never what a client sent, so the copy kept in `raw` is not shown here. */
  function plain({ id, raw, created, modified }: Resource, base: string): JsonObject {
    const { groups: _groups, ...shown } = raw
    const meta = { resourceType: name, created, lastModified: modified, location: `${base}/${id}` }
    return { ...shown, id, meta }
  }

  async function withMembers(resource: Resource, base: string): Promise<JsonObject> {
    return { ...plain(resource, base), members: viewMembers(await store.members(resource.id, everybody)) }
  }

  const wantsMembers = (request: Request): boolean =>
    type === 'group' && !/(^|[,:\s])members([,.\s]|$)/i.test(query(request, 'excludedAttributes') ?? '')

  const view: ScimReader['view'] = async (resource, base, request) =>
    wantsMembers(request) ? withMembers(resource, base) : plain(resource, base)

  /** Walks the candidates in pages, gives other requests their turn between, and keeps one window of the hits. */
  async function search(directory: Directory, filter: Filter, base: string, start: number, count: number) {
    const lookAtMembers = type === 'group' && mentions(filter, 'members')
    const terms = narrow(filter)
    const hits: Resource[] = []
    let total = 0
    let after: Resource | undefined
    let since = performance.now()
    for (;;) {
      const page = await store.scan({
        directoryId: directory.id,
        type,
        terms,
        after,
        limit: limits.resourcesAtOnce,
      })
      for (const resource of page) {
        if (performance.now() - since > searchSlice) {
          await breathe()
          since = performance.now()
        }
        const candidate = lookAtMembers ? await withMembers(resource, base) : plain(resource, base)
        if (!matches(candidate, filter)) continue
        total++
        if (total >= start && hits.length < count) hits.push(resource)
      }
      after = page.at(-1)
      if (page.length < limits.resourcesAtOnce) return { total, hits }
    }
  }

  async function everything(directory: Directory, start: number, count: number) {
    const total = await store.count(directory.id, type)
    const page = { offset: start - 1, limit: count }
    const hits = count === 0 ? [] : await store.resources({ directoryId: directory.id }, type, page)
    return { total, hits }
  }

  /** At least one resource, and further ones while their members fit into a page. */
  async function viewPage(hits: Resource[], base: string, request: Request): Promise<JsonObject[]> {
    if (!wantsMembers(request)) return hits.map(hit => plain(hit, base))
    const shown: JsonObject[] = []
    let members = 0
    for (const hit of hits) {
      const group = await withMembers(hit, base)
      members += Array.isArray(group.members) ? group.members.length : 0
      if (shown.length > 0 && members > maxMembersPerPage) break
      shown.push(group)
    }
    return shown
  }

  async function isLarge({ id }: Resource, request: Request): Promise<boolean> {
    if (!wantsMembers(request)) return false
    return (await store.members(id, { offset: maxMembersInPatchAnswer, limit: 1 })).length > 0
  }

  return {
    view,
    isLarge,
    one: async (directory, id, base, request) => view(await load(store, directory, type, id), base, request),
    async list(directory, base, request) {
      const startIndex = Math.max(1, queryInteger(request, 'startIndex') ?? 1)
      const count = Math.min(maxCount, Math.max(0, queryInteger(request, 'count') ?? defaultCount))
      const filter = query(request, 'filter')
      const { total, hits } =
        filter === undefined || filter.trim() === ''
          ? await everything(directory, startIndex, count)
          : await search(directory, parseFilter(filter), base, startIndex, count)
      const Resources = await viewPage(hits, base, request)
      return {
        schemas: ['urn:ietf:params:scim:api:messages:2.0:ListResponse'],
        totalResults: total,
        startIndex,
        itemsPerPage: Resources.length,
        Resources,
      }
    },
  }
}

/** True when a filter looks at the attribute. */
function mentions(filter: Filter, name: string): boolean {
  switch (filter.kind) {
    case 'and':
    case 'or':
      return filter.filters.some(part => mentions(part, name))
    case 'not':
      return mentions(filter.filter, name)
    default:
      return filter.path[0]?.toLowerCase() === name
  }
}
