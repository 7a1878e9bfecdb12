import { batchesOf, limits } from '../limits.js'
import type { Directory, JsonObject, Resource, ResourceType } from '../model.js'
import { ScimError } from '../scim/error.js'
import type { Filter } from '../scim/filter.js'
import { idsOfFilter, membersAskedFor, membersOfFilter, termsOfFilter } from '../scim/filter-query.js'
import { viewScimMembers } from '../scim/group.js'
import { type Looked, matches } from '../scim/match.js'
import type { SearchQuery } from '../scim/question.js'
import { compareKeys, type Order, type SortKey, sortKey } from '../scim/question.js'
import type { Store } from '../store/contract.js'
import { inOrder } from './resources.js'
import type { SearchQueue } from './search-queue.js'
import { createYield } from './yield.js'

/** The number of matching resources, and those of the window. */
export interface SearchResult {
  readonly total: number
  readonly hits: readonly Resource[]
}

/** The forms of a resource that a filter is compared with. */
export interface Views {
  plain(resource: Resource, base: string): JsonObject
  withMembers(resource: Resource, base: string): Promise<JsonObject>
}

/** The attributes with an index, for the error that asks for a narrower search. */
const lookedUp = {
  user: 'userName, externalId, emails or id',
  group: 'displayName, externalId, members or id',
} as const

/**
 * Searches of one resource type. Equality on id, externalId, userName, displayName, e-mail and members is looked up;
 * everything else scans the directory, and so does sorting. Long searches of a directory run one at a time. Throws 400
 * tooMany (RFC 7644, section 3.4.2) when a query would have to read too many resources (at once, before reading any,
 * when the directory to scan is larger) or to compare too many values.
 */
export function createSearch(
  store: Store,
  type: ResourceType,
  { plain, withMembers }: Views,
  queue: SearchQueue,
) {
  /** Resources that may match, in order of creation, in pages. The directory's queue ends when the generator does. */
  async function* candidates(
    directory: Directory,
    filter: Filter | undefined,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<Resource[]> {
    let leave: (() => void) | undefined
    const enter = async (): Promise<void> => {
      leave ??= await queue(directory.id, signal)
    }
    try {
      yield* read(directory, filter, enter, createYield(signal))
    } finally {
      leave?.()
    }
  }

  /** `enter` is called before what may take long: anything beyond one page that an index has found. */
  async function* read(
    directory: Directory,
    filter: Filter | undefined,
    enter: () => Promise<void>,
    yieldNow: () => Promise<void>,
  ): AsyncGenerator<Resource[]> {
    const terms = filter && termsOfFilter(filter)
    const ids = filter && (idsOfFilter(filter) ?? (terms ? undefined : await groupIdsWith(filter)))
    if (ids) {
      requireFew(ids.length)
      if (ids.length > limits.resourcesAtOnce) await enter()
      const found: Resource[] = []
      for (const some of batchesOf(ids, limits.resourcesAtOnce)) {
        found.push(...(await store.resourcesById(directory.id, type, some)))
        await yieldNow()
      }
      yield inOrder(found)
      return
    }
    if (!terms) {
      requireFew(await store.count(directory.id, type))
      await enter()
    }
    let after: Resource | undefined
    for (let looked = 0; ; ) {
      const scan = { directoryId: directory.id, type, terms, after, limit: limits.resourcesAtOnce }
      const page = await store.scan(scan)
      looked += page.length
      requireFew(looked)
      yield page
      after = page.at(-1)
      if (page.length < limits.resourcesAtOnce) return
      await enter()
    }
  }

  function requireFew(count: number): void {
    if (count <= limits.searchedResources) return
    const detail = `More than ${limits.searchedResources} ${type}s would have to be searched for this filter or order: add a condition that compares ${lookedUp[type]} by eq, or list all in pages.`
    throw new ScimError(400, detail, 'tooMany')
  }

  /** Counts the values that one search looks at. */
  function createBudget(): Looked {
    let left: number = limits.searchedValues
    return values => {
      left -= values
      if (left >= 0) return
      const detail = `More than ${limits.searchedValues} values would have to be compared with this filter: use fewer conditions, or add one that compares ${lookedUp[type]} by eq.`
      throw new ScimError(400, detail, 'tooMany')
    }
  }

  /** Ids of the groups with one of the members that the filter names, or undefined when it names none. */
  async function groupIdsWith(filter: Filter): Promise<string[] | undefined> {
    const userIds = type === 'group' ? membersOfFilter(filter) : undefined
    if (!userIds) return undefined
    const ids = await Promise.all(userIds.map(id => store.groupIdsOf(id)))
    return [...new Set(ids.flat())]
  }

  /** Reads only those members that the filter names. */
  function looker(filter: Filter): (resource: Resource, base: string) => Promise<JsonObject> {
    const ids = type === 'group' ? membersAskedFor(filter) : []
    if (ids === undefined) return withMembers
    if (ids.length === 0) return async (resource, base) => plain(resource, base)
    return async (resource, base) => {
      const present = await store.membersAmong(resource.id, ids)
      const members = viewScimMembers(
        [...present.keys()].map(userId => ({ userId, label: '' })),
        base,
      )
      return { ...plain(resource, base), members }
    }
  }

  async function* fitting(
    directory: Directory,
    filter: Filter | undefined,
    base: string,
    signal: AbortSignal | undefined,
  ) {
    const look = filter && looker(filter)
    const yieldNow = createYield(signal)
    const looked = createBudget()
    for await (const page of candidates(directory, filter, signal)) {
      for (const resource of page) {
        await yieldNow()
        if (!filter || !look || matches(await look(resource, base), filter, looked)) yield resource
      }
    }
  }

  async function everything(directory: Directory, { start, count }: SearchQuery): Promise<SearchResult> {
    const total = await store.count(directory.id, type)
    const page = { offset: start - 1, limit: count }
    const hits = count === 0 ? [] : await store.resources({ directoryId: directory.id }, type, page)
    return { total, hits }
  }

  async function filtered(
    directory: Directory,
    question: SearchQuery,
    base: string,
    signal: AbortSignal | undefined,
  ): Promise<SearchResult> {
    const { filter, start, count } = question
    const hits: Resource[] = []
    let total = 0
    for await (const resource of fitting(directory, filter, base, signal)) {
      total++
      if (total >= start && hits.length < count) hits.push(resource)
    }
    return { total, hits }
  }

  /** Keeps only keys and ids of the matches, and reads the window's resources again. */
  async function sorted(
    directory: Directory,
    question: SearchQuery,
    order: Order,
    base: string,
    signal: AbortSignal | undefined,
  ): Promise<SearchResult> {
    const { filter, start, count } = question
    const keys: { key: SortKey; id: string }[] = []
    for await (const resource of fitting(directory, filter, base, signal)) {
      keys.push({ key: sortKey(plain(resource, base), order), id: resource.id })
    }
    keys.sort((a, b) => compareKeys(a.key, b.key, order.descending))
    const ids = keys.slice(start - 1, start - 1 + count).map(({ id }) => id)
    const found = await store.resourcesById(directory.id, type, ids)
    const byId = new Map(found.map(resource => [resource.id, resource]))
    const hits = ids.map(id => byId.get(id)).filter(resource => resource !== undefined)
    return { total: keys.length, hits }
  }

  return async (
    directory: Directory,
    question: SearchQuery,
    base: string,
    signal: AbortSignal | undefined,
  ): Promise<SearchResult> => {
    if (question.order) return sorted(directory, question, question.order, base, signal)
    return question.filter ? filtered(directory, question, base, signal) : everything(directory, question)
  }
}
