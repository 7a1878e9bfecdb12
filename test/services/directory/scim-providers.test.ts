import { randomUUID } from 'node:crypto'
import t, { type Test } from 'tap'
import { mongoUrl } from '../../helpers/mongo.js'
import { type Directory, type Service, startService } from './harness.js'

/** Traffic as each identity provider sends it; what it expects of the answers, and what an integrator sees in the end. */

const core = 'urn:ietf:params:scim:schemas:core:2.0'
const enterprise = 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User'
const patchUrn = 'urn:ietf:params:scim:api:messages:2.0:PatchOp'
const errorUrn = 'urn:ietf:params:scim:api:messages:2.0:Error'
const listUrn = 'urn:ietf:params:scim:api:messages:2.0:ListResponse'

const find = (filter: string, more = ''): string => `?filter=${encodeURIComponent(filter)}${more}`
const patch = (...Operations: object[]): object => ({ schemas: [patchUrn], Operations })

interface Seen {
  users: Record<string, { active: boolean; email: string; first_name: string; last_name: string }>
  groups: Record<string, string[]>
}

/** The directory as an integrator sees it: users by userName, the members of groups by their names. */
async function seen(service: Service, directory: Directory): Promise<Seen> {
  const scope = `?directoryId=${directory.id}`
  const users = (await service.manage('GET', `/users${scope}`)).body.data
  const groups: Record<string, string[]> = {}
  for (const { id, name } of (await service.manage('GET', `/groups${scope}`)).body.data) {
    const members = (await service.manage('GET', `/groups/${id}/members${scope}`)).body.data
    const names = members.map(
      ({ user_id }: { user_id: string }) =>
        users.find((user: { id: string }) => user.id === user_id).raw.userName,
    )
    groups[name] = names.sort()
  }
  return {
    users: Object.fromEntries(
      users.map(
        ({
          raw,
          active,
          email,
          first_name,
          last_name,
        }: Seen['users'][string] & { raw: { userName: string } }) => [
          raw.userName,
          { active, email, first_name, last_name },
        ],
      ),
    ),
    groups,
  }
}

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

  t.test("Okta's SCIM specification test: its eleven requests", async t => {
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
    t.match(await scim('GET', `/Users/${list.body.Resources[0].id}`), { status: 200, body: shape }, '2: get')
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
      '5',
    )
    const created = await scim('POST', '/Users', user(random), { 'content-type': 'application/json' })
    const expected = {
      active: true,
      id: /.+/,
      userName: random,
      name: { familyName: 'User', givenName: 'Test' },
    }
    t.match(created, { status: 201, body: { ...expected, schemas: [`${core}:User`] } }, '6: create')
    t.match(await scim('GET', `/Users/${created.body.id}`), { status: 200, body: expected }, '7: it is there')
    t.equal((await scim('POST', '/Users', user(random))).status, 409, '8: a duplicate')
    const upper = await scim('GET', `/Users${find(`userName eq "${random.toUpperCase()}"`)}`)
    t.match(upper, { status: 200, body: { totalResults: 1 } }, '9: the filter does not mind letter case')
    const before = performance.now()
    t.match(await scim('GET', '/Groups'), { status: 200, body: { schemas: [listUrn] } }, '10: groups')
    t.ok(performance.now() - before < 600)
    t.match(
      await scim('GET', '/Users', undefined, { authorization: 'non-token' }),
      { status: 401, body: { status: '401', detail: /.+/, schemas: [errorUrn] } },
      '11: a bad token',
    )
    t.match(await scim('GET', '/Users/00919288221112222'), {
      status: 404,
      body: { status: '404', schemas: [errorUrn] },
    })
  })

  t.test(
    'Okta, an app of the catalog: PATCH, group push with a rename each time, no DELETE of users',
    async t => {
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
    },
  )

  t.test('Okta, a custom app: whole users and groups by PUT', async t => {
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

/** What a job of Entra ID sends depends on a flag in its tenant URL; nothing here has to know which. */
interface EntraDialect {
  readonly name: string
  readonly op: (op: 'add' | 'replace' | 'remove') => string
  readonly no: string | boolean
  /** How a member is taken out of a group. */
  readonly leave: (id: string) => object
  /** How several attributes are changed at once. */
  readonly change: (values: Record<string, unknown>) => object[]
}

const dialects: readonly EntraDialect[] = [
  {
    name: 'without the flag',
    op: op => op.charAt(0).toUpperCase() + op.slice(1),
    no: 'False',
    leave: id => ({ op: 'Remove', path: 'members', value: [{ $ref: null, value: id }] }),
    change: values => Object.entries(values).map(([path, value]) => ({ op: 'Replace', path, value })),
  },
  {
    name: 'with aadOptscim062020',
    op: op => op,
    no: false,
    leave: id => ({ op: 'remove', path: `members[value eq "${id}"]` }),
    change: values => [{ op: 'replace', value: values }],
  },
]

function entra(t: Test, service: Service): void {
  const user = (userName: string, more: object = {}): object => ({
    schemas: [`${core}:User`, enterprise],
    externalId: `ext-${userName}`,
    userName,
    active: true,
    displayName: 'Test User',
    emails: [{ primary: true, type: 'work', value: userName }],
    meta: { resourceType: 'User' },
    name: { formatted: 'Test User', familyName: 'User', givenName: 'Test' },
    roles: [],
    ...more,
  })
  const group = (displayName: string, externalId: string = randomUUID()): object => ({
    schemas: [`${core}:Group`, 'http://schemas.microsoft.com/2006/11/ResourceManagement/ADSCIM/2.0/Group'],
    externalId,
    displayName,
    meta: { resourceType: 'Group' },
  })
  const connect = async () => {
    const directory = await service.directory({ type: 'azure-scim-v2' })
    const scim: Directory['scim'] = (method, path, body) => {
      const [place, query = ''] = path.split('?')
      const flagged = `${place}?${query ? `${query}&` : ''}aadOptscim062020`
      return directory.scim(method, flagged, body, { 'content-type': 'application/scim+json; charset=utf-8' })
    }
    return { directory, scim }
  }

  for (const { name, op, no, leave, change } of dialects) {
    t.test(`Entra ID ${name}: connection test, users, manager, groups`, async t => {
      const { directory, scim } = await connect()
      const tested = await scim('GET', `/Users${find(`userName eq "${randomUUID()}"`)}`)
      t.match(tested, { status: 200, body: { schemas: [listUrn], totalResults: 0, Resources: [] } })
      t.match(tested.headers.get('content-type'), /^application\/scim\+json/)

      const ada = (await scim('POST', '/Users', user('ada@contoso.com'))).body.id
      const boss = (await scim('POST', '/Users', user('boss@contoso.com'))).body.id
      for (const filter of [
        'externalId eq "ext-ada@contoso.com"',
        'emails[type eq "work"].value eq "ADA@contoso.com"',
        'userName eq "ada@contoso.com" and active eq true',
      ]) {
        t.match(
          (await scim('GET', `/Users${find(filter)}`)).body,
          { totalResults: 1, Resources: [{ id: ada }] },
          filter,
        )
      }
      const update = (...operations: object[]) => scim('PATCH', `/Users/${ada}`, patch(...operations))
      t.equal(
        (
          await update(
            { op: op('add'), path: 'emails[type eq "home"].value', value: 'ada@home.example' },
            { op: op('add'), path: 'phoneNumbers[type eq "mobile"].value', value: '+1 555 0100' },
            { op: op('add'), path: 'addresses[type eq "work"].formatted', value: 'Redmond' },
            { op: op('replace'), path: 'emails[type eq "work"].value', value: 'ada.king@contoso.com' },
            { op: op('add'), path: `${enterprise}:department`, value: 'Research' },
            { op: op('add'), path: `${enterprise}:manager`, value: boss },
            { op: op('add'), path: 'roles[primary eq "True"].value', value: 'Admin' },
          )
        ).status,
        200,
      )
      const changed = await update(
        ...change({
          displayName: 'Ada King',
          'name.familyName': 'King',
          [`${enterprise}:employeeNumber`]: '7',
          title: 'Countess',
        }),
      )
      t.match(changed.body, {
        displayName: 'Ada King',
        name: { givenName: 'Test', familyName: 'King' },
        title: 'Countess',
        emails: [
          { type: 'work', value: 'ada.king@contoso.com' },
          { type: 'home', value: 'ada@home.example' },
        ],
        phoneNumbers: [{ type: 'mobile', value: '+1 555 0100' }],
        addresses: [{ type: 'work', formatted: 'Redmond' }],
        roles: [{ primary: true, value: 'Admin' }],
        [enterprise]: { department: 'Research', manager: { value: boss }, employeeNumber: '7' },
      })
      t.notOk(
        'manager' in
          ((await update({ op: op('remove'), path: `${enterprise}:manager` })).body[enterprise] ?? {}),
      )
      t.equal((await update({ op: op('replace'), path: 'active', value: no })).body.active, false)
      t.match(
        (await scim('GET', `/Users${find('userName eq "ada@contoso.com"')}`)).body,
        {
          totalResults: 1,
          Resources: [{ active: false }],
        },
        'a disabled user is still found',
      )
      t.equal(
        (await update(...change({ userName: 'ada.king@contoso.com', active: no === false ? true : 'True' })))
          .body.active,
        true,
      )
      t.equal((await scim('GET', `/Users${find('userName eq "ada@contoso.com"')}`)).body.totalResults, 0)

      const made = await scim('POST', '/Groups', group('Engineering'))
      t.match(made, { status: 201, body: { displayName: 'Engineering', meta: { resourceType: 'Group' } } })
      const { id } = made.body
      t.equal((await scim('POST', '/Groups', group('Engineering'))).status, 409)
      const light = await scim(
        'GET',
        `/Groups${find('displayName eq "Engineering"', '&excludedAttributes=members')}`,
      )
      t.match(light.body, { totalResults: 1, Resources: [{ id }] })
      t.notOk('members' in light.body.Resources[0])
      const regroup = async (...operations: object[]) =>
        t.ok([200, 204].includes((await scim('PATCH', `/Groups/${id}`, patch(...operations))).status))
      await regroup({
        op: op('add'),
        path: 'members',
        value: [
          { $ref: null, value: ada },
          { $ref: null, value: boss },
        ],
      })
      await regroup({ op: op('add'), path: 'members', value: [{ value: ada }] })
      await regroup({ op: op('replace'), path: 'displayName', value: 'Research' })
      t.same((await seen(service, directory)).groups, {
        Research: ['ada.king@contoso.com', 'boss@contoso.com'],
      })
      await regroup(leave(boss))
      t.same(
        (await seen(service, directory)).groups,
        { Research: ['ada.king@contoso.com'] },
        'only the one named',
      )
      t.equal(
        (await scim('GET', `/Groups${find(`id eq "${id}" and members eq "${ada}"`, '&attributes=id')}`)).body
          .totalResults,
        1,
      )
      t.equal((await scim('DELETE', `/Users/${ada}`)).status, 204)
      t.equal((await scim('GET', `/Users/${ada}`)).status, 404)
      t.same((await seen(service, directory)).groups, { Research: [] })
      t.equal((await scim('DELETE', `/Groups/${id}`)).status, 204)
    })
  }

  t.test("the steps of Entra ID's SCIM validator", async t => {
    const { scim } = await connect()
    const { Resources } = (await scim('GET', '/Schemas')).body
    const described = Resources.find((each: { id: string }) => each.id === `${core}:User`)
    t.ok(
      described.attributes.some((each: { name: string }) => each.name === 'userName'),
      'it draws attributes from Schemas',
    )
    const full = user('val@contoso.com', {
      nickName: 'Val',
      preferredLanguage: 'en',
      title: 'Tester',
      userType: 'Employee',
      locale: 'en-US',
      timezone: 'Europe/Berlin',
      profileUrl: 'https://contoso.com/val',
      phoneNumbers: [
        { type: 'work', value: '1' },
        { type: 'mobile', value: '2' },
        { type: 'fax', value: '3' },
      ],
      addresses: [
        {
          type: 'work',
          streetAddress: 'S',
          locality: 'L',
          region: 'R',
          postalCode: 'P',
          country: 'DE',
          formatted: 'F',
        },
      ],
      [enterprise]: {
        employeeNumber: '1',
        department: 'D',
        division: 'V',
        organization: 'O',
        costCenter: 'C',
      },
    })
    const created = await scim('POST', '/Users', full)
    const { id } = created.body
    const { schemas: _schemas, meta: _meta, ...sent } = full as Record<string, unknown>
    t.match(created, { status: 201, body: sent }, 'create: every attribute comes back')
    t.match(
      await scim('POST', '/Users', full),
      { status: 409, body: { scimType: 'uniqueness' } },
      'create a duplicate',
    )
    for (const filter of [
      'userName eq "val@contoso.com"',
      'userName eq "VAL@CONTOSO.COM"',
      'externalId eq "ext-val@contoso.com"',
    ]) {
      t.match(
        (await scim('GET', `/Users${find(filter)}`)).body,
        { totalResults: 1, Resources: [{ id }] },
        filter,
      )
    }
    t.match((await scim('GET', `/Users${find('userName eq "nobody"')}`)).body, {
      totalResults: 0,
      Resources: [],
    })
    const update = (...operations: object[]) => scim('PATCH', `/Users/${id}`, patch(...operations))
    const replaced = await update({
      op: 'replace',
      value: {
        displayName: 'R1',
        'name.givenName': 'R2',
        'name.formatted': 'R3',
        'emails[type eq "work"].value': 'r4@contoso.com',
        'phoneNumbers[type eq "fax"].value': 'R5',
        'addresses[type eq "work"].country': 'FR',
        [`${enterprise}:department`]: 'R6',
        userName: 'r7@contoso.com',
      },
    })
    t.match(
      replaced,
      {
        status: 200,
        body: {
          displayName: 'R1',
          name: { givenName: 'R2', formatted: 'R3', familyName: 'User' },
          emails: [{ type: 'work', value: 'r4@contoso.com', primary: true }],
          phoneNumbers: [{ value: '1' }, { value: '2' }, { type: 'fax', value: 'R5' }],
          addresses: [{ country: 'FR', locality: 'L' }],
          [enterprise]: { department: 'R6', division: 'V' },
          userName: 'r7@contoso.com',
        },
      },
      'replace attributes by dotted keys, value paths and URNs without a path',
    )
    t.equal(
      (await scim('GET', `/Users${find('userName eq "r7@contoso.com"')}`)).body.totalResults,
      1,
      'update the user name',
    )
    t.match(
      await update({ op: 'add', value: { nickName: 'A1', 'name.honorificPrefix': 'Dr' } }),
      { body: { nickName: 'A1', name: { honorificPrefix: 'Dr' } } },
      'add attributes',
    )
    const manager = (await scim('POST', '/Users', user('manager@contoso.com'))).body.id
    const other = (await scim('POST', '/Users', user('other@contoso.com'))).body.id
    for (const [op, value] of [
      ['add', manager],
      ['replace', other],
    ] as const) {
      t.match(
        (await update({ op, path: `${enterprise}:manager`, value })).body[enterprise],
        { manager: { value } },
        `${op} the manager`,
      )
    }
    t.notOk(
      'manager' in (await update({ op: 'remove', path: `${enterprise}:manager` })).body[enterprise],
      'remove the manager',
    )
    t.equal((await update({ op: 'replace', value: { active: false } })).body.active, false, 'disable')
    t.equal((await scim('GET', `/Users/${id}`)).body.active, false)
    t.match((await scim('GET', `/Users${find('userName eq "r7@contoso.com"')}`)).body.Resources, [
      { active: false },
    ])
    t.equal((await scim('DELETE', `/Users/${id}`)).status, 204, 'delete')
    t.equal((await scim('DELETE', `/Users/${id}`)).status, 404, 'delete again')

    const made = await scim('POST', '/Groups', group('Val', 'g-1'))
    t.match(made, { status: 201, body: { displayName: 'Val', externalId: 'g-1' } }, 'create a group')
    t.equal((await scim('POST', '/Groups', group('Val'))).status, 409, 'create a duplicate group')
    const path = `/Groups/${made.body.id}`
    for (const filter of ['displayName eq "VAL"', 'externalId eq "g-1"']) {
      t.equal(
        (await scim('GET', `/Groups${find(filter, '&excludedAttributes=members')}`)).body.totalResults,
        1,
        filter,
      )
    }
    t.match((await scim('GET', `/Groups${find('displayName eq "none"')}`)).body, { totalResults: 0 })
    t.equal(
      (await scim('PATCH', path, patch({ op: 'replace', value: { displayName: 'Val 2' } }))).status,
      200,
      'rename it',
    )
    await scim('PATCH', path, patch({ op: 'add', path: 'members', value: [{ value: manager }] }))
    t.match(
      (await scim('GET', path)).body,
      { displayName: 'Val 2', members: [{ value: manager }] },
      'add a member',
    )
    await scim('PATCH', path, patch({ op: 'remove', path: `members[value eq "${manager}"]` }))
    t.same((await scim('GET', path)).body.members, [], 'remove the member')
    t.equal((await scim('DELETE', path)).status, 204)
    t.equal((await scim('GET', path)).status, 404)
  })
}

function others(t: Test, service: Service): void {
  t.test('OneLogin: users by PUT and PATCH, groups never deleted', async t => {
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
    t.match((await scim('GET', '/Groups')).body, { totalResults: 0, Resources: [] })
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

  t.test('JumpCloud: users by PUT with active false, members by PATCH', async t => {
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

  t.test('two directories of one tenant and product see and touch nothing of each other', async t => {
    const tenant = `shared-${randomUUID()}`
    const [one, two] = [await service.directory({ tenant }), await service.directory({ tenant })]
    const user = { schemas: [`${core}:User`], userName: 'ada' }
    const { id } = (await one.scim('POST', '/Users', user)).body
    const group = (await one.scim('POST', '/Groups', { displayName: 'Team', members: [{ value: id }] })).body
    t.equal((await two.scim('POST', '/Users', user)).status, 201, 'the same name is free')
    const mine = (await two.scim('POST', '/Groups', { displayName: 'Team', members: [{ value: id }] })).body
    t.same(mine.members, [], 'a user of another directory is unknown')
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
  t.test(`Identity providers on ${store}`, async t => {
    const MONGODB_URL = store === 'MongoDB' ? await mongoUrl(t) : ''
    if (MONGODB_URL === undefined) return
    const service = await startService(t, { MONGODB_URL })
    okta(t, service)
    entra(t, service)
    others(t, service)
  })
}
