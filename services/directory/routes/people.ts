import type { Member, Page, Resource, ResourceType } from '../model.js'
import { viewGroup, viewMembers } from '../scim/group.js'
import { viewUser } from '../scim/user.js'
import type { Store } from '../store/contract.js'
import { allMembers } from '../sync/members.js'
import { listOf, refTo } from './api-schemas.js'
import { endpoint, pageQuery, scopeQuery } from './describe.js'
import { HttpError, param, type Request, resource, type Server } from './http.js'
import { listOfScope, readOn } from './paging.js'
import { readScope } from './scope.js'

const tag = 'Users and groups'
const listQuery = { ...scopeQuery, ...pageQuery }

/** The spec's endpoints 4 to 8: users, groups and members as integrators read them. */
export function addPeople(server: Server, store: Store, baseUrl: string | undefined): void {
  const list = (type: ResourceType, view: (item: Resource) => object) =>
    listOfScope(
      { store, baseUrl },
      (scope, page) => store.resources(scope, type, page),
      view,
      item => item,
    )
  const single = async (request: Request, type: ResourceType): Promise<Resource> => {
    const found = await store.resource(await readScope(request, store), type, param(request, 'id'))
    if (!found) throw new HttpError(404, `There is no ${type} with this id.`)
    return found
  }
  const path = ['id']

  resource(server, '/users', {
    GET: endpoint(
      { tag, summary: 'List users', query: listQuery, data: listOf('User'), paged: true },
      list('user', viewUser),
    ),
  })
  resource(server, '/users/:id', {
    GET: endpoint(
      { tag, summary: 'Read a user', path, query: scopeQuery, data: refTo('User') },
      async request => ({ data: viewUser(await single(request, 'user')), error: null }),
    ),
  })
  resource(server, '/groups', {
    GET: endpoint(
      {
        tag,
        summary: 'List groups, without their members',
        query: listQuery,
        data: listOf('Group'),
        paged: true,
      },
      list('group', viewGroup),
    ),
  })
  resource(server, '/groups/:id', {
    GET: endpoint(
      {
        tag,
        summary: 'Read a group with its members',
        path,
        query: scopeQuery,
        data: refTo('GroupWithMembers'),
      },
      async request => {
        const group = await single(request, 'group')
        return { data: withMembers(group, await allMembers(store, group.id)), error: null }
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
        data: listOf('Member'),
        answer: { type: 'object', properties: { data: listOf('Member') }, required: ['data'] },
      },
      async (request, reply) => {
        const group = await single(request, 'group')
        const read = (page: Page) => store.members(group.id, page)
        const { items } = await readOn(request, reply, baseUrl, read, placeOfMember)
        return { data: items.map(({ userId }) => ({ user_id: userId })) }
      },
    ),
  })
}

const placeOfMember = ({ userId }: Member) => ({ created: '', id: userId })

function withMembers(group: Resource, members: Member[]): object {
  const view = viewGroup(group)
  const raw = { ...view.raw, members: viewMembers(members) }
  const pairs = members.map(({ userId }) => ({ group_id: group.id, user_id: userId }))
  return { ...view, raw, members: pairs }
}
