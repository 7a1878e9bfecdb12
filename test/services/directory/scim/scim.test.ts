import t, { type Test } from 'tap'
import { mongoUrl } from '../../../helpers/mongo.js'
import { type Directory, okta, patchOp, type Service, startService } from '../harness.js'

const find = (filter: string, more = ''): string => `?filter=${encodeURIComponent(filter)}${more}`
const values = (members: { value: string }[]): string[] => members.map(member => member.value).sort()

function users(t: Test, service: Service): void {
  t.test(
    'a user is created, found, changed and deleted with the statuses and fields of RFC 7644',
    async t => {
      const { scim, id: directoryId } = await service.directory()
      const created = await scim(
        'POST',
        '/Users',
        okta('Ada@Example.com', { password: 'p', externalId: 'x1' }),
        {
          'content-type': 'application/scim+json; charset=utf-8',
        },
      )
      t.equal(created.status, 201)
      const { id, meta, ...rest } = created.body
      t.same(
        rest,
        okta('Ada@Example.com', { externalId: 'x1' }),
        'the user is returned as sent, without the password',
      )
      const location = `${service.url}/api/scim/v2.0/${directoryId}/Users/${id}`
      t.match(meta, { resourceType: 'User', created: /Z$/, lastModified: meta.created, location })
      t.equal(created.headers.get('location'), location)
      t.match(created.headers.get('content-type'), /^application\/scim\+json/)
      t.same((await scim('GET', `/Users/${id}`)).body, created.body)

      for (const filter of [
        'userName eq "ADA@example.com"',
        'externalId eq "x1"',
        'emails[type eq "work"].value eq "ada@example.com"',
        'emails[type eq "work"].value eq "ada@example.com" and active eq true',
      ]) {
        const { status, body } = await scim('GET', `/Users${find(filter)}`)
        t.match(
          { status, body },
          { status: 200, body: { totalResults: 1, itemsPerPage: 1, startIndex: 1, Resources: [{ id }] } },
          filter,
        )
      }
      t.match((await scim('GET', `/Users${find('userName eq "nobody"')}`)).body, {
        totalResults: 0,
        itemsPerPage: 0,
        Resources: { length: 0 },
      })

      const put = await scim('PUT', `/Users/${id}`, okta('eve@example.com'))
      t.match(put, { status: 200, body: { id, userName: 'eve@example.com', externalId: undefined } })
      t.match((await scim('GET', `/Users${find('userName eq "eve@example.com"')}`)).body, { totalResults: 1 })
      t.match((await scim('GET', `/Users${find('userName eq "ada@example.com"')}`)).body, { totalResults: 0 })
      const patch = await scim(
        'PATCH',
        `/Users/${id}`,
        patchOp({ op: 'Replace', path: 'active', value: 'False' }),
      )
      t.match(patch, { status: 200, body: { active: false } })
      t.match((await scim('PUT', `/Users/${id}`, { userName: 'eve@example.com' })).body, { active: false })
      for (const op of [
        { op: 'remove', path: 'active' },
        { op: 'replace', value: { active: null } },
      ]) {
        t.match(await scim('PATCH', `/Users/${id}`, patchOp(op)), { status: 200, body: { active: false } })
      }
      const nulled = await scim('PUT', `/Users/${id}`, { userName: 'eve@example.com', active: null })
      t.match(nulled.body, { active: false }, 'replacing active by null does not reactivate the user')
      t.match((await scim('GET', `/Users${find('active eq false')}`)).body, { totalResults: 1 })
      t.same(await scim('DELETE', `/Users/${id}`).then(({ status, body }) => [status, body]), [
        204,
        undefined,
      ])
      for (const method of ['GET', 'DELETE']) t.equal((await scim(method, `/Users/${id}`)).status, 404)
      t.equal((await scim('PUT', `/Users/${id}`, okta('x'))).status, 404, 'PUT does not create a user')
    },
  )

  t.test('userName is unique within a directory, whatever its letter case', async t => {
    const tenant = `unique-${Math.random()}`
    const one = await service.directory({ tenant })
    const two = await service.directory({ tenant })
    const first = await one.scim('POST', '/Users', okta('ada'))
    t.equal((await two.scim('POST', '/Users', okta('ada'))).status, 201)
    const conflict = { status: 409, body: { status: '409', scimType: 'uniqueness', detail: String } }
    t.match(await one.scim('POST', '/Users', okta('ADA')), conflict)
    const other = await one.scim('POST', '/Users', okta('eve'))
    t.match(await one.scim('PUT', `/Users/${other.body.id}`, okta('Ada')), conflict)
    t.match(
      await one.scim(
        'PATCH',
        `/Users/${other.body.id}`,
        patchOp({ op: 'replace', value: { userName: 'aDa' } }),
      ),
      conflict,
    )
    t.equal(
      (await one.scim('PUT', `/Users/${first.body.id}`, okta('ADA'))).status,
      200,
      'a user may change the letter case of its own userName',
    )
    for (const method of ['GET', 'DELETE'])
      t.equal((await two.scim(method, `/Users/${first.body.id}`)).status, 404)
  })

  t.test('lists are paged in a stable order and report the total', async t => {
    const { scim } = await service.directory()
    for (let n = 0; n < 7; n++)
      await scim('POST', '/Users', okta(`user${n}`, { nickName: n % 2 ? 'odd' : 'even' }))
    const names = async (query: string) => {
      const { body } = await scim('GET', `/Users${query}`)
      return [
        body.totalResults,
        body.startIndex,
        body.Resources.map((user: { userName: string }) => user.userName.slice(-1)).join(''),
      ]
    }
    t.same(await names('?startIndex=1&count=3'), [7, 1, '012'])
    t.same(await names('?startIndex=4&count=3'), [7, 4, '345'])
    t.same(await names('?startIndex=0&count=-1'), [7, 1, ''])
    t.same(await names('?startIndex=99'), [7, 99, ''])
    t.same(await names(find('nickName eq "odd"', '&startIndex=2&count=1')), [3, 2, '3'])
    t.same(await names(find('userName eq "user1" or userName eq "USER5"')), [2, 1, '15'])
    t.same(await names(find('userName sw "user" and not (nickName eq "even")')), [3, 1, '135'])
  })

  t.test('a request that changes nothing gets 200 and keeps lastModified', async t => {
    const { scim } = await service.directory()
    const { id, meta } = (await scim('POST', '/Users', okta('ada'))).body
    await new Promise(resolve => setTimeout(resolve, 5))
    t.match(await scim('PUT', `/Users/${id}`, okta('ada')), { status: 200, body: { meta } })
    t.match(await scim('PATCH', `/Users/${id}`, patchOp({ op: 'replace', value: { active: 'true' } })), {
      status: 200,
      body: { meta },
    })
  })

  t.test('parallel PATCHes of a user are all kept, and only one of several equal POSTs succeeds', async t => {
    const { scim, tenant, product } = await service.directory()
    const { id } = (await scim('POST', '/Users', okta('ada'))).body
    const keys = Array.from({ length: 50 }, (_, n) => `key${n}`)
    await Promise.all(
      keys.map(key => scim('PATCH', `/Users/${id}`, patchOp({ op: 'add', path: key, value: key }))),
    )
    const { body } = await scim('GET', `/Users/${id}`)
    t.same(
      keys.filter(key => body[key] !== key),
      [],
    )
    const answers = await Promise.all(keys.map(() => scim('POST', '/Users', okta('twin'))))
    t.same(answers.map(answer => answer.status).sort(), [201, ...keys.slice(1).map(() => 409)])
    const all = await service.manage('GET', `/users?tenant=${tenant}&product=${product}`)
    t.equal(all.body.data.length, 2)
  })
}

function groups(t: Test, service: Service): void {
  const made = async ({ scim }: Directory, count: number): Promise<string[]> => {
    const ids: string[] = []
    for (let n = 0; n < count; n++) ids.push((await scim('POST', '/Users', okta(`member${n}`))).body.id)
    return ids.sort()
  }

  t.test('POST, PUT and PATCH change the members of a group, and unknown members are ignored', async t => {
    const directory = await service.directory()
    const { scim } = directory
    const [a = '', b = '', c = ''] = await made(directory, 3)
    const members = (...ids: string[]) => ids.map(value => ({ value }))
    const created = await scim('POST', '/Groups', { displayName: 'Team', members: members(a, b, 'unknown') })
    t.equal(created.status, 201)
    const path = `/Groups/${created.body.id}`
    const current = async () => values((await scim('GET', path)).body.members)
    t.same(values(created.body.members), [a, b])
    const put = await scim('PUT', path, { displayName: 'Team', members: members(b, c) })
    t.same([put.status, values(put.body.members)], [200, [b, c]])
    t.match((await scim('PUT', path, { displayName: 'Renamed' })).body, {
      displayName: 'Renamed',
      members: { length: 2 },
    })
    const steps: [object[], string[]][] = [
      [[{ op: 'Add', path: 'members', value: members(a) }], [a, b, c]],
      [[{ op: 'Remove', path: 'members', value: [{ $ref: null, value: b }] }], [a, c]],
      [
        [
          { op: 'remove', path: `members[value eq "${a}"]` },
          { op: 'add', path: 'members', value: members(b) },
        ],
        [b, c],
      ],
      [[{ op: 'remove', path: 'members', value: [] }], [b, c]],
      [[{ op: 'replace', path: 'members', value: members(a) }], [a]],
      [[{ op: 'add', value: { members: members(c) } }], [a, c]],
      [[{ op: 'remove', path: 'members' }], []],
    ]
    for (const [operations, expected] of steps) {
      t.equal((await scim('PATCH', path, patchOp(...operations))).status, 200)
      t.same(await current(), expected, JSON.stringify(operations))
    }
    const half = patchOp(
      { op: 'add', path: 'members', value: members(a) },
      { op: 'replace', path: 'id', value: 'x' },
    )
    t.equal((await scim('PATCH', path, half)).status, 400)
    t.same(await current(), [], 'a PATCH applies all of its operations or none')
    t.equal((await scim('DELETE', path)).status, 204)
    t.equal((await scim('GET', path)).status, 404)
  })

  t.test('parallel joins are all kept, and a deleted user leaves its groups', async t => {
    const directory = await service.directory()
    const ids = await made(directory, 8)
    const { scim } = directory
    const { id } = (await scim('POST', '/Groups', { displayName: 'Team' })).body
    const join = (value: string) => ({ op: 'add', path: 'members', value: [{ value }] })
    const keys = Array.from({ length: 50 - ids.length }, (_, n) => `key${n}`)
    const changes = [...ids.map(join), ...keys.map(key => ({ op: 'add', path: key, value: key }))]
    await Promise.all(changes.map(change => scim('PATCH', `/Groups/${id}`, patchOp(change))))
    const { body } = await scim('GET', `/Groups/${id}`)
    t.same(values(body.members), ids)
    t.same(
      keys.filter(key => body[key] !== key),
      [],
    )
    await scim('DELETE', `/Users/${ids[0]}`)
    t.same(values((await scim('GET', `/Groups/${id}`)).body.members), ids.slice(1))
  })

  t.test(
    'groups are found by name and member, have unique names, and can be shown without members',
    async t => {
      const directory = await service.directory()
      const { scim } = directory
      const [a = ''] = await made(directory, 1)
      const { id } = (await scim('POST', '/Groups', { displayName: 'Team', members: [{ value: a }] })).body
      await scim('POST', '/Groups', { displayName: 'Other' })
      t.match(await scim('POST', '/Groups', { displayName: 'TEAM' }), {
        status: 409,
        body: { scimType: 'uniqueness' },
      })
      t.match((await scim('GET', `/Groups${find('displayName eq "team"')}`)).body, {
        totalResults: 1,
        Resources: [{ id }],
      })
      const entra = await scim(
        'GET',
        `/Groups${find(`id eq "${id}" and members eq "${a}"`, '&excludedAttributes=members')}`,
      )
      t.match(entra.body, { totalResults: 1, Resources: [{ id }] })
      t.notOk('members' in entra.body.Resources[0])
      t.match((await scim('GET', `/Groups${find(`members.value eq "${a}"`)}`)).body, {
        totalResults: 1,
        Resources: [{ members: [{ value: a }] }],
      })
      t.match((await scim('GET', '/Groups?count=1&startIndex=2')).body, {
        totalResults: 2,
        Resources: [{ displayName: 'Other' }],
      })
      t.notOk('members' in (await scim('GET', `/Groups/${id}?excludedAttributes=members`)).body)
      t.match(await scim('POST', '/Groups', {}), { status: 400, body: { scimType: 'invalidValue' } })
    },
  )
}

t.test('SCIM on SQLite', async t => {
  const service = await startService(t)
  users(t, service)
  groups(t, service)
})

t.test('SCIM on MongoDB', async t => {
  const MONGODB_URL = await mongoUrl(t)
  if (MONGODB_URL === undefined) return
  const service = await startService(t, { MONGODB_URL })
  users(t, service)
  groups(t, service)
})
