import { batchesOf, limits } from '../limits.js'
import type { Directory, JsonObject, JsonValue, Resource } from '../model.js'
import type { Naming } from '../scim/attributes.js'
import { ScimError } from '../scim/error.js'
import { viewScimMembers } from '../scim/group.js'
import type { Projection } from '../scim/projection.js'
import type { SearchQuery } from '../scim/question.js'
import { versionOf } from '../scim/version.js'
import type { Store } from '../store/contract.js'
import { allMembers, hasMoreMembers } from './members.js'
import { load } from './resources.js'
import { createSearch } from './search.js'
import type { SearchQueue } from './search-queue.js'
import { createYield } from './yield.js'

/** What a read should return; `base` is the URL of the directory's SCIM intake. */
export interface ViewOptions {
  readonly projection: Projection
  readonly base: string
  /** True to leave out a group's members, regardless of the projection. */
  readonly withoutMembers?: boolean
  /** Aborted when the client has gone. */
  readonly signal?: AbortSignal | undefined
}

/** SCIM reads of one resource type. All methods throw ScimError. */
export interface Reader {
  load(directory: Directory, id: string): Promise<Resource>
  location(id: string, base: string): string
  view(resource: Resource, options: ViewOptions): Promise<JsonObject>
  /** True when a view would contain more than `most` members. */
  carriesMore(resource: Resource, options: ViewOptions, most: number): Promise<boolean>
  /**
   * The number of matching resources, and one window of them; `cut` when the window ends early because of their
   * memberships.
   */
  list(
    directory: Directory,
    question: SearchQuery,
    options: ViewOptions,
  ): Promise<{ total: number; resources: JsonObject[]; cut: boolean }>
}

export function createReader(store: Store, naming: Naming, queue: SearchQueue): Reader {
  const location: Reader['location'] = (id, base) => `${base}/${naming.path}/${id}`

  /**
   * The resource without its memberships. `schemas` are those in use, regardless of what the client sent; a copy of
   * `groups` that a client sent stays in `raw` and is not shown, as groups are computed.
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

  /** Throws 400 tooMany (RFC 7644, section 3.12). */
  async function withMembers(resource: Resource, base: string): Promise<JsonObject> {
    const { id } = resource
    if (await hasMoreMembers(store, id, limits.membershipsPerResource)) {
      const detail = `The group ${id} has more than ${limits.membershipsPerResource} members: add excludedAttributes=members. Whether a user is one is told by the filter members eq "<id of the user>".`
      throw new ScimError(400, detail, 'tooMany')
    }
    return { ...plain(resource, base), members: viewScimMembers(await allMembers(store, id), base) }
  }

  const wantsMembers = ({ projection, withoutMembers = false }: ViewOptions): boolean =>
    naming.type === 'group' && !withoutMembers && projection.shows('members')

  async function whole(resource: Resource, options: ViewOptions, groupsOf: GroupsOf): Promise<JsonObject> {
    if (wantsMembers(options)) return withMembers(resource, options.base)
    const view = plain(resource, options.base)
    if (naming.type === 'group' || !options.projection.asksFor('groups')) return view
    return { ...view, groups: await groupsOf(resource, options.base) }
  }

  const view: Reader['view'] = async (resource, options) =>
    options.projection.apply(
      await whole(resource, options, createGroupsOf(store, createYield(options.signal))),
    )

  const search = createSearch(store, naming.type, { plain, withMembers }, queue)

  /** At least one resource, and further ones while their members or groups fit on a page. */
  async function viewPage(hits: readonly Resource[], options: ViewOptions): Promise<JsonObject[]> {
    const yieldNow = createYield(options.signal)
    const groupsOf = createGroupsOf(store, yieldNow)
    const shown: JsonObject[] = []
    let carried = 0
    for (const hit of hits) {
      const resource = await whole(hit, options, groupsOf)
      carried += lengthOf(resource.members) + lengthOf(resource.groups)
      if (shown.length > 0 && carried > limits.membershipsPerPage) break
      shown.push(options.projection.apply(resource))
      await yieldNow()
    }
    return shown
  }

  return {
    load: (directory, id) => load(store, directory, naming.type, id),
    location,
    view,
    carriesMore: async ({ id }, options, most) => wantsMembers(options) && hasMoreMembers(store, id, most),
    async list(directory, question, options) {
      const { total, hits } = await search(directory, question, options.base, options.signal)
      const resources = await viewPage(hits, options)
      return { total, resources, cut: resources.length < hits.length }
    },
  }
}

const lengthOf = (value: JsonValue | undefined): number => (Array.isArray(value) ? value.length : 0)

/** The groups of a user as SCIM shows them. */
type GroupsOf = (user: Resource, base: string) => Promise<JsonObject[]>

/**
 * For the users of one response: a group that they share is read once. `yieldNow` is called between the reads. Throws 400
 * tooMany (RFC 7644, section 3.12).
 */
function createGroupsOf(store: Store, yieldNow: () => Promise<void>): GroupsOf {
  const names = new Map<string, string>()
  return async ({ id, directoryId }, base) => {
    const ids = await store.groupIdsOf(id)
    if (ids.length > limits.membershipsPerResource) {
      const detail = `The user ${id} is in more than ${limits.membershipsPerResource} groups: ask without groups, and page through /Groups with the filter members eq "${id}".`
      throw new ScimError(400, detail, 'tooMany')
    }
    const unread = ids.filter(groupId => !names.has(groupId))
    for (const some of batchesOf(unread, limits.resourcesAtOnce)) {
      for (const group of await store.resourcesById(directoryId, 'group', some)) {
        names.set(group.id, group.label)
      }
      await yieldNow()
    }
    return ids
      .filter(groupId => names.has(groupId))
      .map(value => ({ value, $ref: `${base}/Groups/${value}`, display: names.get(value) ?? '' }))
  }
}
