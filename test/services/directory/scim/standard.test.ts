import t, { type Test } from 'tap'
import { mongoUrl } from '../../../helpers/mongo.js'
import { okta, patchOp, type Service, startService } from '../harness.js'
import { refusal, search } from './tools.js'

const enterprise = 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User'
const listUrn = 'urn:ietf:params:scim:api:messages:2.0:ListResponse'
const namesOf = (answer: { body: { Resources: { userName?: string; displayName?: string }[] } }): string[] =>
  answer.body.Resources.map(({ userName, displayName }) => userName ?? displayName ?? '')

function standard(t: Test, service: Service): void {
  t.test('every resource has a version, and If-Match and If-None-Match are respected', async t => {
    const { scim } = await service.directory()
    const created = await scim('POST', '/Users', okta('ada'))
    const path = `/Users/${created.body.id}`
    const first = created.body.meta.version
    t.match(first, /^W\/"\w+"$/)
    t.equal(created.headers.get('etag'), first)
    const known = await scim('GET', path, undefined, { 'if-none-match': `"other", ${first}` })
    t.same([known.status, known.body, known.headers.get('etag')], [304, undefined, first])
    t.equal((await scim('GET', path, undefined, { 'if-none-match': '"other"' })).status, 200)

    const change = (title: string, headers?: Record<string, string>) =>
      scim('PATCH', path, patchOp({ op: 'replace', value: { title } }), headers)
    const second = await change('T', { 'if-match': first })
    t.equal(second.status, 200)
    t.not(second.body.meta.version, first)
    t.equal(
      (await change('T', { 'if-match': '*' })).body.meta.version,
      second.body.meta.version,
      'a change without effect keeps the version',
    )
    t.equal((await change('T', { 'if-match': '' })).status, 412, 'names no version')
    const stale = { 'if-match': first }
    t.match(await change('U', stale), refusal(412))
    t.match(await scim('PUT', path, okta('eve'), stale), refusal(412))
    t.match(await scim('DELETE', path, undefined, stale), refusal(412))
    t.match(await scim('PUT', path, okta('eve'), { 'if-none-match': '*' }), refusal(412))
    t.match(
      (await scim('GET', path)).body,
      { userName: 'ada', title: 'T' },
      'the refused changes have no effect',
    )
    const racing = { 'if-match': second.body.meta.version }
    const race = await Promise.all(['a', 'b', 'c'].map(title => change(title, racing)))
    t.same(race.map(({ status }) => status).sort(), [200, 412, 412])

    const group = (await scim('POST', '/Groups', { displayName: 'Team' })).body
    const members = [{ value: created.body.id }]
    const joined = await scim(
      'PATCH',
      `/Groups/${group.id}`,
      patchOp({ op: 'add', path: 'members', value: members }),
      {
        'if-match': group.meta.version,
      },
    )
    t.not(joined.headers.get('etag'), group.meta.version, 'a new member changes the version of the group')
    const version = (await scim('GET', path)).body.meta.version
    const asked = await scim('GET', `${path}?attributes=groups`, undefined, { 'if-none-match': version })
    t.match(
      asked,
      { status: 200, body: { groups: [{ value: group.id }] } },
      "a user's version does not cover its groups",
    )
    const old = { 'if-match': group.meta.version }
    const leave = patchOp({ op: 'remove', path: 'members' })
    t.match(await scim('PATCH', `/Groups/${group.id}`, leave, old), refusal(412))
    t.match(await scim('PUT', `/Groups/${group.id}`, { displayName: 'X' }, old), refusal(412))
    t.match(await scim('DELETE', `/Groups/${group.id}`, undefined, old), refusal(412))
    t.match((await scim('GET', `/Groups/${group.id}`)).body, { displayName: 'Team', members })
    t.equal((await scim('DELETE', path, undefined, { 'if-match': '*' })).status, 204)
  })

  t.test('responses show the requested attributes, and always the id', async t => {
    const { scim } = await service.directory()
    const body = okta('ada', {
      title: 'T',
      emails: [
        { value: 'w', type: 'work', primary: true },
        { value: 'h', type: 'home' },
      ],
      [enterprise]: { department: 'D', manager: { value: 'm' } },
    })
    const { id } = (await scim('POST', '/Users', body)).body
    const group = (await scim('POST', '/Groups', { displayName: 'Team', members: [{ value: id }] })).body
    const user = { schemas: ['urn:ietf:params:scim:schemas:core:2.0:User', enterprise], id }
    const shown = async (query: Record<string, string>) =>
      (await scim('GET', `/Users/${id}${search(query)}`)).body
    t.same(await shown({ attributes: 'USERNAME, name.givenName,emails.value' }), {
      ...user,
      userName: 'ada',
      name: { givenName: 'Ada' },
      emails: [{ value: 'w' }, { value: 'h' }],
    })
    t.same(await shown({ attributes: `${enterprise}:department` }), {
      ...user,
      [enterprise]: { department: 'D' },
    })
    t.same(await shown({ attributes: enterprise }), {
      ...user,
      [enterprise]: { department: 'D', manager: { value: 'm' } },
    })
    t.match(await shown({ attributes: 'groups' }), {
      ...user,
      groups: [{ value: group.id, display: 'Team', $ref: group.meta.location }],
    })
    const rest = await shown({ excludedAttributes: `id,emails,name.familyName,meta,${enterprise}:manager` })
    t.match(rest, {
      ...user,
      userName: 'ada',
      title: 'T',
      name: { givenName: 'Ada' },
      [enterprise]: { department: 'D' },
    })
    for (const name of ['emails', 'meta', 'groups']) t.notOk(name in rest, name)
    t.notOk('familyName' in rest.name || 'manager' in rest[enterprise])
    const posted = await scim('POST', '/Users?attributes=userName', okta('eve'))
    t.same(Object.keys(posted.body).sort(), ['id', 'schemas', 'userName'])
    const listed = await scim('GET', `/Groups${search({ attributes: 'displayName' })}`)
    t.same(Object.keys(listed.body.Resources[0]).sort(), ['displayName', 'id', 'schemas'])
    t.match(await scim('GET', '/Users?attributes=a..b'), refusal(400, 'invalidPath'))
  })

  t.test('lists are sorted and paged, with or without a filter', async t => {
    const { scim } = await service.directory()
    for (const [n, name] of ['Bea', 'ada', 'Cid', 'dora', 'Eve'].entries()) {
      const more = n === 2 ? {} : { title: `t${n % 2}` }
      await scim(
        'POST',
        '/Users',
        okta(name, { ...more, emails: [{ value: 'x' }, { value: `${9 - n}`, primary: true }] }),
      )
    }
    const sorted = async (query: Record<string, string | number>) =>
      namesOf(await scim('GET', `/Users${search(query)}`)).join(' ')
    t.equal(await sorted({ sortBy: 'userName' }), 'ada Bea Cid dora Eve')
    t.equal(await sorted({ sortBy: 'userName', sortOrder: 'descending' }), 'Eve dora Cid Bea ada')
    t.equal(await sorted({ sortBy: 'emails' }), 'Eve dora Cid ada Bea', 'emails sort by their primary value')
    t.equal(
      await sorted({ sortBy: 'title' }),
      'Bea Eve ada dora Cid',
      'users without the attribute come last',
    )
    t.equal(await sorted({ sortBy: 'TITLE', sortOrder: 'Descending' }), 'Cid ada dora Bea Eve')
    t.equal(await sorted({ sortBy: 'meta.created', sortOrder: 'descending' }), 'Eve dora Cid ada Bea')
    t.equal(await sorted({ sortBy: 'userName', startIndex: 2, count: 2 }), 'Bea Cid')
    const page = await scim(
      'GET',
      `/Users${search({ filter: 'title pr', sortBy: 'userName', count: 1, startIndex: 2 })}`,
    )
    t.match(page.body, { totalResults: 4, startIndex: 2, itemsPerPage: 1 })
    t.same(namesOf(page), ['Bea'])
    t.match(await scim('GET', '/Users?sortBy=userName&sortOrder=up'), refusal(400, 'invalidValue'))
    t.match(await scim('GET', '/Users?sortBy=a..b'), refusal(400, 'invalidPath'))
  })

  t.test('a search by POST finds the same as a GET, even over users and groups', async t => {
    const { scim } = await service.directory()
    const { id } = (await scim('POST', '/Users', okta('ada'))).body
    await scim('POST', '/Users', okta('bob'))
    await scim('POST', '/Groups', { displayName: 'Ada and friends', members: [{ value: id }] })
    const asked = {
      schemas: ['urn:ietf:params:scim:api:messages:2.0:SearchRequest'],
      filter: 'displayName sw "ada"',
      attributes: ['displayName'],
      startIndex: 1,
      count: 10,
    }
    const users = await scim('POST', '/Users/.search', asked)
    t.match(users, { status: 200, body: { schemas: [listUrn], totalResults: 2, itemsPerPage: 2 } })
    t.same(Object.keys(users.body.Resources[0]).sort(), ['displayName', 'id', 'schemas'])
    t.equal((await scim('POST', '/Groups/.search', asked)).body.totalResults, 1)
    t.match((await scim('POST', '/.search', asked)).body, { totalResults: 3, itemsPerPage: 3 })
    const windowed = await scim('POST', '/.search', { ...asked, startIndex: 2, count: 2 })
    t.same(
      [windowed.body.totalResults, ...namesOf(windowed)],
      [3, 'Ada Lovelace', 'Ada and friends'],
      'a page can span users and groups',
    )
    const both = await scim('GET', `/${search({ filter: 'meta.resourceType eq "Group"' })}`)
    t.same([both.body.totalResults, ...namesOf(both)], [1, 'Ada and friends'])
    for (const [path, body, scimType] of [
      ['/Users/.search', { filter: 7 }, 'invalidValue'],
      ['/Users/.search', { attributes: 'userName' }, 'invalidValue'],
      ['/Users/.search', { count: 1.5 }, 'invalidValue'],
      ['/Users/.search', { filter: 'userName' }, 'invalidFilter'],
      ['/Users/.search', { filter: 'groups.value eq "x"' }, 'invalidFilter'],
      ['/.search', { sortBy: 'userName' }, 'invalidValue'],
      ['/Users/.search', '[]', 'invalidSyntax'],
    ] as const) {
      t.match(await scim('POST', path, body), refusal(400, scimType), JSON.stringify(body))
    }
    t.match(await scim('GET', '/Groups/.search'), { status: 405 })
  })

  t.test('groups are found by their members', async t => {
    const { scim } = await service.directory()
    const ids: string[] = []
    for (const name of ['a', 'b', 'c']) ids.push((await scim('POST', '/Users', okta(name))).body.id)
    const [a = '', b = '', c = ''] = ids
    const group = (displayName: string, ...members: string[]) =>
      scim('POST', '/Groups', { displayName, members: members.map(value => ({ value })) })
    await group('one', a)
    await group('two', a, b)
    await group('none')
    const found = async (filter: string) =>
      namesOf(await scim('GET', `/Groups${search({ filter })}`)).join(' ')
    t.equal(await found(`members eq "${a}"`), 'one two')
    t.equal(await found(`members[value eq "${b}"]`), 'two')
    t.equal(await found(`members.value eq "${a}" and not (members.value eq "${b}")`), 'one')
    t.equal(await found(`members eq "${a}" or members eq "${c}"`), 'one two')
    t.equal(await found(`members eq "${a}" and displayName eq "two"`), 'two')
    t.equal(await found(`not (members eq "${a}")`), 'none')
    t.equal(await found('members pr'), 'one two')
    t.equal(await found(`members.display co "lace" and members.value ne "${b}"`), 'one')
    t.equal(await found(`members eq "unknown"`), '')
  })

  t.test('Bulk runs each operation separately and resolves bulkIds before their resources exist', async t => {
    const { scim, id: directory } = await service.directory()
    const bulk = (Operations: unknown[], more: object = {}) =>
      scim('POST', '/Bulk', {
        schemas: ['urn:ietf:params:scim:api:messages:2.0:BulkRequest'],
        Operations,
        ...more,
      })
    const taken = (await scim('POST', '/Users', okta('taken'))).body
    const { status, body } = await bulk([
      {
        method: 'POST',
        path: '/Groups',
        bulkId: 'team',
        data: { displayName: 'Team', members: [{ value: 'bulkId:ada' }] },
      },
      { method: 'post', path: '/Users', bulkId: 'ada', data: okta('ada', { password: 'canary' }) },
      { method: 'PATCH', path: '/Users/bulkId:ada', data: patchOp({ op: 'add', path: 'title', value: 'T' }) },
      { method: 'POST', path: '/Users', bulkId: 'twin', data: okta('TAKEN') },
      { method: 'PUT', path: `/Users/${taken.id}`, data: okta('eve'), version: 'W/"stale"' },
      { method: 'PUT', path: '/Users/unknown', data: okta('x') },
      { method: 'DELETE', path: `/Users/${taken.id}`, version: taken.meta.version },
      { method: 'PATCH', path: '/Groups/bulkId:nobody', data: {} },
      { method: 'GET', path: '/Users/1' },
      { method: 'POST', path: '/Users', data: okta('no-bulk-id') },
      { method: 'DELETE', path: '/Elsewhere/1' },
      'nonsense',
    ])
    t.equal(status, 200)
    t.same(body.schemas, ['urn:ietf:params:scim:api:messages:2.0:BulkResponse'])
    t.same(
      body.Operations.map((each: { status: string }) => each.status),
      ['201', '201', '200', '409', '412', '404', '204', '409', '400', '400', '400', '400'],
      'the outcomes are in the order of the operations',
    )
    const [team, ada, , twin] = body.Operations
    t.match(team, {
      method: 'POST',
      bulkId: 'team',
      version: /^W\//,
      location: `${service.url}/api/scim/v2.0/${directory}/Groups/`,
    })
    t.match(twin, { bulkId: 'twin', response: { status: '409', scimType: 'uniqueness' } })
    t.notOk('response' in ada)
    const made = await scim('GET', new URL(ada.location).pathname.split(directory)[1] ?? '')
    t.match(made.body, { userName: 'ada', title: 'T', meta: { location: ada.location } })
    const group = await scim('GET', `/Groups${search({ filter: 'displayName eq "team"' })}`)
    const $ref = `${service.url}/api/scim/v2.0/${directory}/Users/${made.body.id}`
    t.same(group.body.Resources[0].members, [
      { value: made.body.id, $ref, type: 'User', display: 'Ada Lovelace' },
    ])
    t.equal((await scim('GET', $ref.split(directory)[1] ?? '')).body.userName, 'ada')
    t.notOk(JSON.stringify([body, made, service.logged]).includes('canary'))

    const bad = { method: 'DELETE', path: '/Users/unknown' }
    const stopped = await bulk(
      [bad, bad, { method: 'POST', path: '/Users', bulkId: 'x', data: okta('late') }],
      {
        failOnErrors: 2,
      },
    )
    t.equal(stopped.body.Operations.length, 2)
    t.equal((await scim('GET', `/Users${search({ filter: 'userName eq "late"' })}`)).body.totalResults, 0)
    const circle = await bulk(
      ['a', 'b'].map((name, n) => ({
        method: 'POST',
        path: '/Users',
        bulkId: name,
        data: okta(name, { [enterprise]: { manager: { value: `bulkId:${n === 0 ? 'b' : 'a'}` } } }),
      })),
    )
    t.match(circle.body.Operations, [{ status: '409' }, { status: '409', response: { detail: /bulkId:a/ } }])
    const twice = await bulk([
      { method: 'POST', path: '/Users', bulkId: 'same', data: okta('one') },
      { method: 'POST', path: '/Users', bulkId: 'same', data: okta('two') },
      {
        method: 'POST',
        path: '/Groups',
        bulkId: 'unclear',
        data: { displayName: 'Unclear', members: [{ value: 'bulkId:same' }] },
      },
    ])
    t.match(
      twice.body.Operations,
      [
        { status: '201' },
        { status: '201' },
        { status: '409', response: { detail: /"same": give each its own/ } },
      ],
      'a reference that could mean either user adds neither to the group',
    )
    t.match(await bulk([]), refusal(400, 'invalidSyntax'))
    t.match(await bulk([bad], { failOnErrors: 0 }), refusal(400, 'invalidSyntax'))
    t.match(await bulk(Array.from({ length: 10_000 }, () => bad)), refusal(413))
  })

  t.test(
    'the service describes itself, and every writable attribute of its schemas can be written',
    async t => {
      const { scim } = await service.directory()
      const config = await scim('GET', '/ServiceProviderConfig')
      t.match(config.body, {
        schemas: ['urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig'],
        patch: { supported: true },
        bulk: { supported: true, maxOperations: 1000, maxPayloadSize: 1024 * 1024 },
        filter: { supported: true, maxResults: 200 },
        sort: { supported: true },
        etag: { supported: true },
        changePassword: { supported: false },
        authenticationSchemes: [{ type: 'oauthbearertoken' }],
        meta: { resourceType: 'ServiceProviderConfig', location: String },
      })
      for (const path of ['/ResourceTypes', '/Schemas']) {
        const { body } = await scim('GET', path)
        t.match(body, { schemas: [listUrn], totalResults: body.Resources.length, startIndex: 1 })
        t.ok(body.Resources.length > 1)
        for (const each of body.Resources) {
          t.same((await scim('GET', `${path}/${each.id}`)).body, each)
          t.match(each.meta.location, `${path}/${each.id}`)
        }
        t.match(await scim('GET', `${path}/unknown`), refusal(404))
        t.match(await scim('GET', `${path}${search({ filter: 'id pr' })}`), refusal(403))
        t.match(await scim('POST', path, {}), refusal(405))
      }
      t.match(await scim('GET', '/Me'), refusal(501))

      // Every attribute that the schemas call writable can be written by PATCH, read back, and removed.
      interface Described {
        name: string
        type: string
        multiValued: boolean
        mutability: string
        required: boolean
        canonicalValues?: string[]
        subAttributes?: Described[]
      }
      const example = ({ type, canonicalValues, subAttributes = [] }: Described): unknown => {
        if (type === 'boolean') return true
        if (type !== 'complex') return canonicalValues?.[0] ?? 'example'
        const writable = subAttributes.filter(sub => sub.mutability !== 'readOnly')
        return Object.fromEntries(writable.map(sub => [sub.name, example(sub)]))
      }
      const { id } = (await scim('POST', '/Users', { userName: 'described' })).body
      const { Resources } = (await scim('GET', '/Schemas')).body
      const ofUsers = Resources.filter((each: { id: string }) => /User$/.test(each.id))
      t.equal(ofUsers.length, 2, 'the core and the enterprise schema')
      for (const schema of ofUsers) {
        for (const attribute of schema.attributes as Described[]) {
          t.ok(attribute.mutability && 'returned' in attribute && 'description' in attribute, attribute.name)
          if (attribute.mutability === 'readOnly') continue
          const prefix = schema.id === enterprise ? `${enterprise}:` : ''
          const value = attribute.multiValued ? [example(attribute)] : example(attribute)
          const written = await scim(
            'PATCH',
            `/Users/${id}`,
            patchOp({ op: 'add', path: prefix + attribute.name, value }),
          )
          const holder = prefix ? written.body[enterprise] : written.body
          t.same(holder[attribute.name], value, attribute.name)
          if (attribute.required) continue
          const removed = await scim(
            'PATCH',
            `/Users/${id}`,
            patchOp({ op: 'remove', path: prefix + attribute.name }),
          )
          t.equal(removed.status, 200)
          if (attribute.name !== 'active')
            t.notOk(attribute.name in ((prefix ? removed.body[enterprise] : removed.body) ?? {}))
        }
      }
    },
  )
}

for (const store of ['SQLite', 'MongoDB']) {
  t.test(`the SCIM standard on ${store}`, async t => {
    const MONGODB_URL = store === 'MongoDB' ? await mongoUrl(t) : ''
    if (MONGODB_URL === undefined) return
    standard(t, await startService(t, { MONGODB_URL }))
  })
}
