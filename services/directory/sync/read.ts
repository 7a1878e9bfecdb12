import type { Directory, JsonObject, Resource } from '../model.js'
import { viewScimMembers } from '../scim/group.js'
import type { Naming } from '../scim/naming.js'
import type { Projection } from '../scim/projection.js'
import type { Question } from '../scim/question.js'
import { versionOf } from '../scim/version.js'
import type { Store } from '../store/contract.js'
import { allMembers } from './members.js'
import { load } from './resources.js'
import { createSearch } from './search.js'

/** What a read wants to see; `base` is the address of the directory's SCIM intake. */
export interface Wish {
  readonly projection: Projection
  readonly base: string
}

/** Answers SCIM reads of one resource type. Refusals are ScimErrors. */
export interface Reader {
  load(directory: Directory, id: string): Promise<Resource>
  location(id: string, base: string): string
  view(resource: Resource, wish: Wish): Promise<JsonObject>
  /** True when a view would carry so many members that a small change had better be answered without one. */
  isLarge(resource: Resource, wish: Wish): Promise<boolean>
  /** How many resources fit, and one window of them. */
  list(
    directory: Directory,
    question: Question,
    wish: Wish,
  ): Promise<{ total: number; resources: JsonObject[] }>
}

/** A page of groups ends early rather than carry more members than this. */
const maxMembersPerPage = 20_000
const maxMembersInPatchAnswer = 1000

/** The reads of one resource type. */
export function createReader(store: Store, naming: Naming): Reader {
  const location: Reader['location'] = (id, base) => `${base}/${naming.path}/${id}`

  /**
   * The resource without what is kept apart from it. `schemas` are those in use, whatever the client has sent; a copy of
   * `groups` that a client sent stays in `raw`, here they are computed.
   */
  function plain(resource: Resource, base: string): JsonObject {
    const { id, raw, created, modified } = resource
    const { schemas: _schemas, groups: _groups, ...shown } = raw
    const version = versionOf(resource)
    return {
      schemas: [naming.schema, ...Object.keys(shown).filter(name => name.includes(':'))],
      id,
      ...shown,
      meta: {
        resourceType: naming.name,
        created,
        lastModified: modified,
        version,
        location: location(id, base),
      },
    }
  }

  const withMembers = async (resource: Resource, base: string): Promise<JsonObject> => ({
    ...plain(resource, base),
    members: viewScimMembers(await allMembers(store, resource.id), base),
  })

  const wantsMembers = ({ projection }: Wish): boolean =>
    naming.type === 'group' && projection.shows('members')

  async function groupsOf(user: Resource, base: string): Promise<JsonObject[]> {
    const groups = await store.resourcesById(user.directoryId, 'group', await store.groupIdsOf(user.id))
    return groups.map(({ id, label }) => ({ value: id, $ref: `${base}/Groups/${id}`, display: label }))
  }

  async function whole(resource: Resource, wish: Wish): Promise<JsonObject> {
    if (wantsMembers(wish)) return withMembers(resource, wish.base)
    const view = plain(resource, wish.base)
    if (naming.type === 'group' || !wish.projection.asksFor('groups')) return view
    return { ...view, groups: await groupsOf(resource, wish.base) }
  }

  const view: Reader['view'] = async (resource, wish) => wish.projection.apply(await whole(resource, wish))

  const search = createSearch(store, naming.type, { plain, withMembers })

  /** At least one resource, and further ones while their members fit into a page. */
  async function viewPage(hits: readonly Resource[], wish: Wish): Promise<JsonObject[]> {
    const shown: JsonObject[] = []
    let members = 0
    for (const hit of hits) {
      const group = await whole(hit, wish)
      members += Array.isArray(group.members) ? group.members.length : 0
      if (shown.length > 0 && members > maxMembersPerPage) break
      shown.push(wish.projection.apply(group))
    }
    return shown
  }

  return {
    load: (directory, id) => load(store, directory, naming.type, id),
    location,
    view,
    async isLarge({ id }, wish) {
      if (!wantsMembers(wish)) return false
      return (await store.members(id, { offset: maxMembersInPatchAnswer, limit: 1 })).length > 0
    },
    async list(directory, question, wish) {
      const { total, hits } = await search(directory, question, wish.base)
      return { total, resources: await viewPage(hits, wish) }
    },
  }
}
