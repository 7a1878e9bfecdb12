import { isJsonObject } from '../../json.js'
import { limits } from '../limits.js'
import type { Directory, JsonObject, Resource, ResourceType } from '../model.js'
import { namings } from '../scim/attributes.js'
import { ScimError } from '../scim/error.js'
import { readProjection } from '../scim/projection.js'
import { type ListParameters, readQuestion } from '../scim/question.js'
import { type Conditions, isKnown, requireConditions, versionOf } from '../scim/version.js'
import type { Store } from '../store/contract.js'
import { createReader, type Reader, type ViewOptions } from './read.js'
import type { ResourceSync } from './resources.js'
import type { SearchQueue } from './search-queue.js'

/** One SCIM request for users or groups: from HTTP, from a Bulk request or from this process. */
export interface ScimRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly type: ResourceType
  /** Absent: all of the type. */
  readonly id?: string | undefined
  readonly body?: unknown
  /** The URL of the directory's intake, for locations. */
  readonly base: string
  readonly asked?: ListParameters
  readonly conditions?: Conditions
  /** Aborted when the client has gone; changes are completed all the same. */
  readonly signal?: AbortSignal | undefined
}

export interface ScimAnswer {
  readonly status: number
  readonly body?: JsonObject
  readonly location?: string
  readonly version?: string
}

/** The intake of identity providers (RFC 7644, section 3). All methods throw ScimError. */
export interface ScimIntake {
  handle(directory: Directory, request: ScimRequest): Promise<ScimAnswer>
  /** A list over several types, one after the other. */
  search(
    directory: Directory,
    types: readonly ResourceType[],
    asked: ListParameters,
    base: string,
    signal?: AbortSignal,
  ): Promise<JsonObject>
}

const maxMembersInPatchAnswer = 1000

export function createIntake(
  store: Store,
  users: ResourceSync,
  groups: ResourceSync,
  queue: SearchQueue,
): ScimIntake {
  const resources: Record<ResourceType, { sync: ResourceSync; reader: Reader }> = {
    user: { sync: users, reader: createReader(store, namings.user, queue) },
    group: { sync: groups, reader: createReader(store, namings.group, queue) },
  }

  const viewOptionsOf = ({ attributes, excludedAttributes }: ListParameters, base: string): ViewOptions => ({
    projection: readProjection(attributes, excludedAttributes),
    base,
  })

  async function search(
    directory: Directory,
    types: readonly ResourceType[],
    asked: ListParameters,
    base: string,
    signal?: AbortSignal,
  ): Promise<JsonObject> {
    if (types.length > 1 && asked.sortBy) {
      throw new ScimError(400, 'sortBy works on /Users and on /Groups, not on both at once.', 'invalidValue')
    }
    const options = { ...viewOptionsOf(asked, base), signal }
    const Resources: JsonObject[] = []
    let total = 0
    let startIndex = 1
    // A page continues with the next type only if that of the previous one is complete: the next page begins where
    // this one ends.
    let cut = false
    for (const type of types) {
      const { start, count, ...question } = readQuestion(asked, type)
      startIndex = start
      const window = { start: Math.max(1, start - total), count: cut ? 0 : count - Resources.length }
      const found = await resources[type].reader.list(directory, { ...question, ...window }, options)
      total += found.total
      cut ||= found.cut
      Resources.push(...found.resources)
    }
    return {
      schemas: ['urn:ietf:params:scim:api:messages:2.0:ListResponse'],
      totalResults: total,
      startIndex,
      itemsPerPage: Resources.length,
      Resources,
    }
  }

  async function read(
    directory: Directory,
    id: string,
    request: ScimRequest,
    options: ViewOptions,
  ): Promise<ScimAnswer> {
    const { reader } = resources[request.type]
    const found = await reader.load(directory, id)
    const marks = { location: reader.location(id, request.base), version: versionOf(found) }
    // A user's version says nothing about its groups.
    const isVersioned = !options.projection.asksFor('groups')
    if (isVersioned && isKnown(found, request.conditions ?? {})) return { status: 304, ...marks }
    return { status: 200, body: await reader.view(found, options), ...marks }
  }

  async function write(
    directory: Directory,
    id: string,
    { method, type, body, base, conditions = {} }: ScimRequest,
    options: ViewOptions,
  ): Promise<ScimAnswer> {
    const { sync, reader } = resources[type]
    const check = (current: Resource): void => requireConditions(current, conditions)
    const location = reader.location(id, base)
    if (method === 'DELETE') {
      await sync.remove(directory, id, check)
      return { status: 204, location }
    }
    const written = await sync[method === 'PUT' ? 'replace' : 'patch'](directory, id, objectOf(body), check)
    const marks = { location, version: versionOf(written) }
    // RFC 7644, section 3.5.2, allows 204 for a PATCH: its cost stays that of the change, not of the group.
    const most = method === 'PATCH' ? maxMembersInPatchAnswer : limits.membershipsPerResource
    const withoutMembers = await reader.carriesMore(written, options, most)
    if (method === 'PATCH' && withoutMembers) return { status: 204, ...marks }
    // A change that is done must not get an error response.
    return { status: 200, body: await reader.view(written, { ...options, withoutMembers }), ...marks }
  }

  return {
    search,
    async handle(directory, request) {
      const { method, type, id, body, base, asked = {}, signal } = request
      const { sync, reader } = resources[type]
      if (id === undefined && method === 'GET') {
        return { status: 200, body: await search(directory, [type], asked, base, signal) }
      }
      const options = viewOptionsOf(asked, base)
      if (id === undefined && method === 'POST') {
        const created = await sync.create(directory, objectOf(body))
        const marks = { location: reader.location(created.id, base), version: versionOf(created) }
        return { status: 201, body: await reader.view(created, options), ...marks }
      }
      if (id === undefined || method === 'POST') {
        throw new ScimError(
          405,
          `${method} is not possible at ${id === undefined ? 'a list' : 'a resource'}.`,
        )
      }
      if (method === 'GET') return read(directory, id, request, options)
      return write(directory, id, request, options)
    },
  }
}

function objectOf(body: unknown): JsonObject {
  if (!isJsonObject(body)) throw new ScimError(400, 'The body must be a JSON object.', 'invalidSyntax')
  return body
}
