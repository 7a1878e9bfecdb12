import { randomUUID } from 'node:crypto'
import t, { type Test } from 'tap'
import { mongoUrl } from '../../../helpers/mongo.js'
import { type Service, startService } from '../harness.js'
import { core, enterprise, errorUrn, find, listUrn, patch, seen } from '../providers.js'

/** Traffic as each identity provider sends it; the responses it expects, and what an integrator sees in the end. */

function okta(t: Test, service: Service): void {
  const user = (userName: string, more: object = {}): object => ({
    schemas: [`${core}:User`],
    userName,
    name: { givenName: 'Test', familyName: 'User' },
    emails: [{ primary: true, value: userName, type: 'work' }],
    displayName: 'Test User',
    locale: 'en-US',
    externalId: `00u${userName.length}ujl29u0le5T6Aj10h7`,
    groups: [],
    password: '1mz050nq',
    active: true,
    ...more,
  })

  t.test(
    "each of the eleven requests of Okta's SCIM specification test gets the expected response",
    async t => {
      const { scim } = await service.directory({ type: 'okta-scim-v2' })
      await scim('POST', '/Users', user('existing@example.com'))
      const random = `runscope${Date.now()}@atko.com`

      const list = await scim('GET', '/Users?count=1&startIndex=1')
      t.equal(list.status, 200, '1: required test: users endpoint')
      t.match(list.body.schemas, [listUrn])
      for (const field of ['itemsPerPage', 'startIndex', 'totalResults'])
        t.ok(Number.isInteger(list.body[field]))
      const shape = {
        id: /.+/,
        name: { familyName: /.+/, givenName: /.+/ },
        userName: /.+/,
        active: Boolean,
        emails: [{ value: /.+/ }],
      }
      t.match(list.body.Resources[0], shape)
      t.match(
        await scim('GET', `/Users/${list.body.Resources[0].id}`),
        { status: 200, body: shape },
        '2: read a user',
      )
      t.match(
        await scim('GET', `/Users${find(`userName eq "${random}"`)}`),
        { status: 200, body: { schemas: [listUrn], totalResults: 0 } },
        '3: filter on a username that does not exist',
      )
      t.match(
        await scim('GET', '/Users/010101001010101011001010101011'),
        { status: 404, body: { detail: /.+/, schemas: [errorUrn] } },
        '4: a user that does not exist',
      )
      t.equal(
        (await scim('GET', `/Users${find(`userName eq "${randomUUID()}@atko.com"`)}`)).body.totalResults,
        0,
        '5: filter on a second username that does not exist',
      )
      const created = await scim('POST', '/Users', user(random), { 'content-type': 'application/json' })
      const expected = {
        active: true,
        id: /.+/,
        userName: random,
        name: { familyName: 'User', givenName: 'Test' },
      }
      t.match(created, { status: 201, body: { ...expected, schemas: [`${core}:User`] } }, '6: create')
      t.match(
        await scim('GET', `/Users/${created.body.id}`),
        { status: 200, body: expected },
        '7: the created user can be read',
      )
      t.equal((await scim('POST', '/Users', user(random))).status, 409, '8: a duplicate')
      const upper = await scim('GET', `/Users${find(`userName eq "${random.toUpperCase()}"`)}`)
      t.match(upper, { status: 200, body: { totalResults: 1 } }, '9: the filter ignores letter case')
      const before = performance.now()
      t.match(await scim('GET', '/Groups'), { status: 200, body: { schemas: [listUrn] } }, '10: groups')
      t.ok(performance.now() - before < 3000, 'the response takes less than 3 s (Okta asks for 600 ms)')
      t.match(
        await scim('GET', '/Users', undefined, { authorization: 'non-token' }),
        { status: 401, body: { status: '401', detail: /.+/, schemas: [errorUrn] } },
        '11: a bad token',
      )
      t.match(await scim('GET', '/Users/00919288221112222'), {
        status: 404,
        body: { status: '404', schemas: [errorUrn] },
      })
    },
  )

  t.test('Okta, an app of the catalog: PATCH changes users, and group pushes rename the group', async t => {
    const directory = await service.directory({ type: 'okta-scim-v2' })
    const { scim } = directory
    const ids: Record<string, string> = {}
    for (const name of ['ada', 'bob', 'cid']) {
      t.equal(
        (await scim('GET', `/Users${find(`userName eq "${name}@example.com"`, '&startIndex=1&count=100')}`))
          .body.totalResults,
        0,
      )
      ids[name] = (await scim('POST', '/Users', user(`${name}@example.com`))).body.id
    }
    const { id } = (
      await scim('POST', '/Groups', { schemas: [`${core}:Group`], displayName: 'Sales', members: [] })
    ).body
    const member = (name: string) => ({ value: ids[name], display: `${name}@example.com` })
    const push = async (...operations: object[]) =>
      t.ok([200, 204].includes((await scim('PATCH', `/Groups/${id}`, patch(...operations))).status))
    await push({ op: 'add', path: 'members', value: [member('ada'), member('bob')] })
    await push(
      { op: 'remove', path: `members[value eq "${ids.ada}"]` },
      { op: 'add', path: 'members', value: [member('cid')] },
    )
    await push({ op: 'replace', value: { id, displayName: 'Sales and Marketing' } })
    t.same((await seen(service, directory)).groups, {
      'Sales and Marketing': ['bob@example.com', 'cid@example.com'],
    })
    await push(
      { op: 'replace', path: 'members', value: [member('ada')] },
      { op: 'replace', value: { id, displayName: 'Sales' } },
    )
    t.same((await seen(service, directory)).groups, { Sales: ['ada@example.com'] })

    await scim('PATCH', `/Users/${ids.ada}`, patch({ op: 'replace', value: { active: false } }))
    await scim('PATCH', `/Users/${ids.bob}`, patch({ op: 'replace', value: { password: 'n3w-pass' } }))
    t.match((await seen(service, directory)).users, {
      'ada@example.com': { active: false, email: 'ada@example.com', first_name: 'Test', last_name: 'User' },
      'bob@example.com': { active: true },
    })
    await scim('PATCH', `/Users/${ids.ada}`, patch({ op: 'replace', value: { active: true } }))
    t.equal((await seen(service, directory)).users['ada@example.com']?.active, true)
    t.equal((await scim('DELETE', `/Groups/${id}`)).status, 204)
    t.same((await seen(service, directory)).groups, {})
  })

  t.test('Okta, a custom app: PUT replaces whole users and groups', async t => {
    const directory = await service.directory({ type: 'okta-scim-v2' })
    const { scim } = directory
    const ada = (await scim('POST', '/Users', user('ada@example.com'))).body
    const bob = (await scim('POST', '/Users', user('bob@example.com'))).body
    const { id } = (
      await scim('POST', '/Groups', {
        schemas: [`${core}:Group`],
        displayName: 'All',
        members: [{ value: ada.id, display: 'ada@example.com' }],
      })
    ).body
    t.same((await seen(service, directory)).groups, { All: ['ada@example.com'] })
    const renamed = {
      ...ada,
      ...user('ada.king@example.com'),
      name: { givenName: 'Ada', familyName: 'King' },
    }
    t.match(await scim('PUT', `/Users/${ada.id}`, renamed), {
      status: 200,
      body: { id: ada.id, userName: 'ada.king@example.com' },
    })
    const group = (await scim('GET', `/Groups/${id}`)).body
    await scim('PUT', `/Groups/${id}`, {
      ...group,
      displayName: 'Everyone',
      members: [...group.members, { value: bob.id, display: 'bob@example.com' }],
    })
    await scim('PUT', `/Users/${bob.id}`, { ...bob, active: false })
    t.match(await seen(service, directory), {
      users: {
        'ada.king@example.com': { first_name: 'Ada', last_name: 'King', email: 'ada.king@example.com' },
        'bob@example.com': { active: false },
      },
      groups: { Everyone: ['ada.king@example.com', 'bob@example.com'] },
    })
  })
}

function others(t: Test, service: Service): void {
  t.test('OneLogin: PUT and PATCH change users, and PATCH changes members', async t => {
    const directory = await service.directory({ type: 'onelogin-scim-v2' })
    const { scim } = directory
    const user = (userName: string, more: object = {}): object => ({
      schemas: [`${core}:User`, enterprise],
      userName,
      name: { givenName: 'One', familyName: 'Login' },
      emails: [{ value: userName, type: 'work', primary: true }],
      [enterprise]: { department: 'Sales' },
      ...more,
    })
    t.equal((await scim('GET', `/Users${find('userName eq "ada@example.com"')}`)).body.totalResults, 0)
    const ada = (await scim('POST', '/Users', user('ada@example.com'))).body.id
    const bob = (await scim('POST', '/Users', user('bob@example.com'))).body.id
    t.equal(
      (await scim('PUT', `/Users/${ada}`, user('ada@example.com', { title: 'Lead', active: true }))).status,
      200,
    )
    t.match((await scim('GET', '/Groups')).body, { totalResults: 0, Resources: { length: 0 } })
    const { id } = (await scim('POST', '/Groups', { schemas: [`${core}:Group`], displayName: 'Role: Sales' }))
      .body
    t.match((await scim('GET', `/Groups${find('displayName eq "Role: Sales"')}`)).body, {
      Resources: [{ id }],
    })
    await scim(
      'PATCH',
      `/Groups/${id}`,
      patch({ op: 'add', path: 'members', value: [{ value: ada }, { value: bob }] }),
    )
    await scim('PATCH', `/Groups/${id}`, patch({ op: 'remove', path: 'members', value: [{ value: bob }] }))
    await scim('PATCH', `/Users/${bob}`, patch({ op: 'replace', path: 'active', value: false }))
    t.match(await seen(service, directory), {
      users: {
        'ada@example.com': { active: true, email: 'ada@example.com' },
        'bob@example.com': { active: false },
      },
      groups: { 'Role: Sales': ['ada@example.com'] },
    })
    t.equal((await scim('DELETE', `/Users/${bob}`)).status, 204)
  })

  t.test('JumpCloud: PUT deactivates users, and PATCH changes members', async t => {
    const directory = await service.directory({ type: 'jumpcloud-scim-v2' })
    const { scim } = directory
    const user = (userName: string, more: object = {}): object => ({
      schemas: [`${core}:User`],
      userName,
      externalId: `jc-${userName}`,
      name: { givenName: 'Jump', familyName: 'Cloud', formatted: 'Jump Cloud' },
      displayName: 'Jump Cloud',
      emails: [{ value: `${userName}@example.com`, type: 'work', primary: true }],
      phoneNumbers: [],
      addresses: [],
      active: true,
      ...more,
    })
    t.equal(
      (await scim('GET', `/Users${find('userName eq "ada"', '&count=100&startIndex=1')}`)).body.totalResults,
      0,
    )
    const ada = (await scim('POST', '/Users', user('ada'))).body.id
    const bob = (await scim('POST', '/Users', user('bob'))).body.id
    const { id } = (
      await scim('POST', '/Groups', {
        schemas: [`${core}:Group`],
        displayName: 'Admins',
        externalId: 'jc-g',
        members: [],
      })
    ).body
    for (const value of [ada, bob]) {
      const joined = await scim(
        'PATCH',
        `/Groups/${id}`,
        patch({ op: 'add', path: 'members', value: [{ value }] }),
      )
      t.ok([200, 204].includes(joined.status))
    }
    await scim('PATCH', `/Groups/${id}`, patch({ op: 'remove', path: `members[value eq "${bob}"]` }))
    t.match((await scim('PUT', `/Users/${bob}`, user('bob', { active: false }))).body, { active: false })
    t.match(await scim('PUT', `/Groups/${id}`, { displayName: 'Administrators' }), { status: 200 })
    t.match(await seen(service, directory), {
      users: { ada: { active: true, email: 'ada@example.com' }, bob: { active: false } },
      groups: { Administrators: ['ada'] },
    })
    t.equal((await scim('DELETE', `/Groups/${id}`)).status, 204)
  })

  t.test("two directories of one tenant and product cannot see or change each other's resources", async t => {
    const tenant = `shared-${randomUUID()}`
    const [one, two] = [await service.directory({ tenant }), await service.directory({ tenant })]
    const user = { schemas: [`${core}:User`], userName: 'ada' }
    const { id } = (await one.scim('POST', '/Users', user)).body
    const group = (await one.scim('POST', '/Groups', { displayName: 'Team', members: [{ value: id }] })).body
    t.equal((await two.scim('POST', '/Users', user)).status, 201, 'the same userName is free')
    const mine = (await two.scim('POST', '/Groups', { displayName: 'Team', members: [{ value: id }] })).body
    t.same(mine.members, [], 'a user of another directory is not added as a member')
    for (const [method, path, body] of [
      ['GET', `/Users/${id}`, undefined],
      ['PUT', `/Users/${id}`, user],
      ['PATCH', `/Users/${id}`, patch({ op: 'replace', value: { active: false } })],
      ['DELETE', `/Users/${id}`, undefined],
      ['PATCH', `/Groups/${group.id}`, patch({ op: 'remove', path: 'members' })],
      ['DELETE', `/Groups/${group.id}`, undefined],
    ] as const) {
      t.equal((await two.scim(method, path, body)).status, 404, `${method} ${path}`)
    }
    const bulk = { Operations: [{ method: 'DELETE', path: `/Users/${id}` }] }
    t.match((await two.scim('POST', '/Bulk', bulk)).body.Operations, [{ status: '404' }])
    t.equal((await two.scim('GET', `/Users${find(`id eq "${id}"`)}`)).body.totalResults, 0)
    t.equal((await two.scim('GET', `/Groups${find(`members eq "${id}"`)}`)).body.totalResults, 0)
    t.match((await one.scim('GET', `/Groups/${group.id}`)).body, { members: [{ value: id }] })
  })
}

for (const store of ['SQLite', 'MongoDB']) {
  t.test(`identity providers on ${store}`, async t => {
    const MONGODB_URL = store === 'MongoDB' ? await mongoUrl(t) : ''
    if (MONGODB_URL === undefined) return
    const service = await startService(t, { MONGODB_URL })
    okta(t, service)
    others(t, service)
  })
}
