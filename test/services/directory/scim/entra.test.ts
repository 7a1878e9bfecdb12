import { randomUUID } from 'node:crypto'
import t, { type Test } from 'tap'
import { mongoUrl } from '../../../helpers/mongo.js'
import { type Directory, type Service, startService } from '../harness.js'
import { core, enterprise, find, listUrn, patch, seen } from '../providers.js'

/** Traffic as each identity provider sends it; the responses it expects, and what an integrator sees in the end. */

/** What Entra ID sends depends on a flag in its tenant URL; the service does not have to know which. */
interface EntraDialect {
  readonly name: string
  readonly op: (op: 'add' | 'replace' | 'remove') => string
  readonly no: string | boolean
  /** How a member is removed from a group. */
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
    t.test(
      `Entra ID ${name}: the connection test works, and users, managers and groups are provisioned`,
      async t => {
        const { directory, scim } = await connect()
        const tested = await scim('GET', `/Users${find(`userName eq "${randomUUID()}"`)}`)
        t.match(tested, {
          status: 200,
          body: { schemas: [listUrn], totalResults: 0, Resources: { length: 0 } },
        })
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
          (
            await update(
              ...change({ userName: 'ada.king@contoso.com', active: no === false ? true : 'True' }),
            )
          ).body.active,
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
          'only the named member is removed',
        )
        t.equal(
          (await scim('GET', `/Groups${find(`id eq "${id}" and members eq "${ada}"`, '&attributes=id')}`))
            .body.totalResults,
          1,
        )
        t.equal((await scim('DELETE', `/Users/${ada}`)).status, 204)
        t.equal((await scim('GET', `/Users/${ada}`)).status, 404)
        t.same((await seen(service, directory)).groups, { Research: [] })
        t.equal((await scim('DELETE', `/Groups/${id}`)).status, 204)
      },
    )
  }

  t.test("each step of Entra ID's SCIM validator gets the expected response", async t => {
    const { scim } = await connect()
    const { Resources } = (await scim('GET', '/Schemas')).body
    const described = Resources.find((each: { id: string }) => each.id === `${core}:User`)
    t.ok(
      described.attributes.some((each: { name: string }) => each.name === 'userName'),
      'the schemas describe userName',
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
      Resources: { length: 0 },
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
      'rename the group',
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

for (const store of ['SQLite', 'MongoDB']) {
  t.test(`Entra ID on ${store}`, async t => {
    const MONGODB_URL = store === 'MongoDB' ? await mongoUrl(t) : ''
    if (MONGODB_URL === undefined) return
    const service = await startService(t, { MONGODB_URL })
    entra(t, service)
  })
}
