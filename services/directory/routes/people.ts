import { Type } from 'typebox'
import { limits } from '../limits.js'
import type { GroupMember, ListPage, Resource, ResourceType } from '../model.js'
import { listOf, refTo } from '../schemas/parts.js'
import {
  type FullGroupView,
  fullGroupSchema,
  type GroupView,
  groupSchema,
  memberSchema,
  userSchema,
} from '../schemas/people.js'
import { viewGroup, viewListedGroup, viewMembers } from '../scim/group.js'
import { viewUser } from '../scim/user.js'
import { byEmail, byName, lookUp } from '../sync/lookup.js'
import { allMembers, hasMoreMembers, listedMembers } from '../sync/members.js'
import { endpoint, pageQuery, scopeQuery } from './describe.js'
import {
  HttpError,
  param,
  query,
  type Reply,
  type Request,
  type RouteParts,
  resource,
  type Server,
} from './http.js'
import { readOn, readScope } from './paging.js'

const tag = 'Users and groups'
const listQuery = { ...scopeQuery, ...pageQuery }
const wanted = (description: string) => Type.Optional(Type.String({ minLength: 1, description }))
const userQuery = {
  email: wanted('Only users with this e-mail address, or this userName, in any letter case'),
  group: wanted('Only members of the group with this id, in order of their ids'),
  ...listQuery,
}
const groupQuery = { name: wanted('Only groups of this name, in any letter case'), ...listQuery }

/** The spec's endpoints 4 to 8: users, groups and members as integrators read them. */
export function addPeople(server: Server, { store, baseUrl }: RouteParts): void {
  const list = async (
    request: Request,
    reply: Reply,
    type: ResourceType,
    view: (items: Resource[]) => object[] | Promise<object[]>,
    terms?: readonly string[],
  ): Promise<object> => {
    const scope = await readScope(request, store)
    const read = (page: ListPage) =>
      terms ? lookUp(store, scope, type, terms, page) : store.resources(scope, type, page)
    const { items, more } = await readOn(request, reply, baseUrl, read, item => item)
    return { data: await view(items), ...more }
  }
  const single = async (
    request: Request,
    type: ResourceType,
    id = param(request, 'id'),
  ): Promise<Resource> => {
    const found = await store.resource(await readScope(request, store), type, id)
    if (!found) throw new HttpError(404, `There is no ${type} with this id.`)
    return found
  }
  const usersOf = async (request: Request, reply: Reply, groupId: string): Promise<object> => {
    const group = await single(request, 'group', groupId)
    const read = (page: ListPage) => store.members(group.id, page)
    const { items, more } = await readOn(request, reply, baseUrl, read, placeOfMember)
    const ids = items.map(({ userId }) => userId)
    const users = await store.resourcesById(group.directoryId, 'user', ids)
    const byId = new Map(users.map(user => [user.id, user]))
    const found = ids.map(id => byId.get(id)).filter(user => user !== undefined)
    return { data: found.map(viewUser), ...more }
  }
  const viewGroups = async (groups: Resource[]): Promise<GroupView[]> => {
    const listed = await listedMembers(
      store,
      groups.map(({ id }) => id),
    )
    return groups.map((group, index) => {
      const { members, most } = listed[index] ?? { members: [], most: 0 }
      return viewListedGroup(group, members, most)
    })
  }
  const path = ['id']

  resource(server, '/users', {
    GET: endpoint(
      { tag, summary: 'List users', query: userQuery, data: listOf(userSchema), paged: true },
      async (request, reply) => {
        const email = sought(request, 'email')
        const group = sought(request, 'group')
        if (email !== undefined && group !== undefined) {
          throw new HttpError(400, 'email and group exclude each other: send one.')
        }
        if (group !== undefined) return usersOf(request, reply, group)
        return list(
          request,
          reply,
          'user',
          users => users.map(viewUser),
          email === undefined ? undefined : byEmail(email),
        )
      },
    ),
  })
  resource(server, '/users/:id', {
    GET: endpoint(
      { tag, summary: 'Read a user', path, query: scopeQuery, data: refTo(userSchema) },
      async request => viewUser(await single(request, 'user')),
    ),
  })
  resource(server, '/groups', {
    GET: endpoint(
      {
        tag,
        summary: 'List groups',
        description:
          'With the first 1000 members of each in `raw.members`, and at most 20000 on a page: `members_truncated` says that there are more.',
        query: groupQuery,
        data: listOf(groupSchema),
        paged: true,
      },
      async (request, reply) => {
        const name = sought(request, 'name')
        return list(request, reply, 'group', viewGroups, name === undefined ? undefined : byName(name))
      },
    ),
  })
  resource(server, '/groups/:id', {
    GET: endpoint(
      {
        tag,
        summary: 'Read a group with its members',
        path,
        query: scopeQuery,
        data: refTo(fullGroupSchema),
      },
      async request => {
        const group = await single(request, 'group')
        const most = limits.membershipsPerResource
        if (await hasMoreMembers(store, group.id, most)) {
          const message = `This group has more than ${most} members: read them in pages at /groups/{id}/members.`
          throw new HttpError(400, message)
        }
        return withMembers(group, await allMembers(store, group.id))
      },
    ),
  })
  resource(server, '/groups/:id/members', {
    GET: endpoint(
      {
        tag,
        summary: "List the ids of a group's members",
        description: 'The answer carries `data` only; the next page is in the header `Link`.',
        path,
        query: listQuery,
        data: listOf(memberSchema),
        answer: Type.Object({ data: listOf(memberSchema) }),
      },
      async (request, reply) => {
        const group = await single(request, 'group')
        const read = (page: ListPage) => store.members(group.id, page)
        const { items } = await readOn(request, reply, baseUrl, read, placeOfMember)
        return { data: items.map(({ userId }) => ({ user_id: userId })) }
      },
    ),
  })
}

/** The value of a filter parameter. An empty one is refused, as it would list everything. */
function sought(request: Request, name: string): string | undefined {
  const value = query(request, name)
  if (value === '') throw new HttpError(400, `The query parameter ${name} must not be empty.`)
  return value
}

const placeOfMember = ({ userId }: GroupMember) => ({ created: '', id: userId })

function withMembers(group: Resource, members: GroupMember[]): FullGroupView {
  const view = viewGroup(group)
  const raw = { ...view.raw, members: viewMembers(members) }
  const pairs = members.map(({ userId }) => ({ group_id: group.id, user_id: userId }))
  return { ...view, raw, members: pairs }
}
