/** Users and groups, found by what integrators know of them. */
import t, { type Test } from 'tap'
import { mongoUrl } from '../../../helpers/mongo.js'
import { okta, startService } from '../harness.js'

async function lookups(t: Test, more: NodeJS.ProcessEnv): Promise<void> {
  const service = await startService(t, more)
  const tenant = `lookup-${Math.random()}`
  const [one, two, stranger] = [
    await service.directory({ tenant }),
    await service.directory({ tenant }),
    await service.directory(),
  ]
  const scope = `tenant=${tenant}&product=app`
  const shared = { emails: [{ value: 'Shared@Example.com' }, { value: 'second@example.com' }] }
  const made: string[] = []
  for (const [directory, name] of [
    [one, 'ada'],
    [two, 'bob'],
    [one, 'eve'],
  ] as const) {
    made.push((await directory.scim('POST', '/Users', okta(name, shared))).body.id)
  }
  const plain = (await one.scim('POST', '/Users', { userName: 'Zoe@example.com' })).body.id
  await stranger.scim('POST', '/Users', okta('ada', shared))
  const members = [made[0], made[2], plain].map(value => ({ value }))
  const group = (await one.scim('POST', '/Groups', { displayName: 'Sales', members })).body.id
  const twin = (await two.scim('POST', '/Groups', { displayName: 'SALES' })).body.id
  await one.scim('POST', '/Groups', { displayName: 'Other' })

  const get = (path: string) => service.manage('GET', path)
  const idsOf = async (path: string) => (await get(path)).body.data.map(({ id }: { id: string }) => id)
  /** Reads page by page, with the token of each for the next. */
  async function walk(path: string): Promise<string[][]> {
    const pages: string[][] = []
    let token = ''
    do {
      const { body } = await get(`${path}&pageLimit=2${token && `&pageToken=${token}`}`)
      pages.push(body.data.map(({ id }: { id: string }) => id))
      token = body.pageToken ?? ''
    } while (token)
    return pages
  }

  t.same(
    await idsOf(`/users?${scope}&email=shared@example.COM`),
    made,
    'users of all directories are found, in order of creation',
  )
  t.same(await idsOf(`/users?${scope}&email=second%40example.com&pageOffset=1`), made.slice(1))
  t.same(await walk(`/users?${scope}&email=shared@example.com`), [made.slice(0, 2), made.slice(2)])
  t.same(await idsOf(`/users?directoryId=${two.id}&email=shared@example.com`), [made[1]])
  t.same(
    await idsOf(`/users?${scope}&email=zoe@example.com`),
    [plain],
    'a userName without e-mails counts as the e-mail address',
  )
  t.same(await idsOf(`/users?${scope}&email=nobody@example.com`), [])

  t.same(await idsOf(`/groups?${scope}&name=sales`), [group, twin])
  t.same(await idsOf(`/groups?directoryId=${one.id}&name=Sales`), [group])
  t.same(await idsOf(`/groups?${scope}&name=Sal`), [], 'a group is found by its whole name only')

  const sorted = [made[0], made[2], plain].toSorted()
  t.same(await walk(`/users?${scope}&group=${group}`), [sorted.slice(0, 2), sorted.slice(2)])
  t.match((await get(`/users?${scope}&group=${group}`)).body.data[0], {
    email: String,
    raw: { userName: String },
  })
  t.same(await idsOf(`/users?${scope}&group=${twin}`), [])
  for (const [path, status, message] of [
    [`/users?${scope}&group=unknown`, 404, /no group/],
    [`/users?directoryId=${stranger.id}&group=${group}`, 404, /no group/],
    [`/users?${scope}&group=${group}&email=a`, 400, /exclude each other/],
    [`/users?${scope}&email=`, 400, /email must not be empty/],
    [`/groups?${scope}&name=`, 400, /name must not be empty/],
    [`/users?${scope}&email=a&email=b`, 400, /given twice/],
    [`/users?${scope}&pageLimit=2&limit=3`, 400, /pageLimit and limit mean the same/],
  ] as const) {
    t.match(await get(path), { status, body: { error: { message } } }, path)
  }
  for (const alias of ['limit=1', 'page_size=1']) t.equal((await idsOf(`/users?${scope}&${alias}`)).length, 1)
  const { pageToken } = (await get(`/users?${scope}&page_size=2`)).body
  const next = await get(`/users?${scope}&page_size=2&page_token=${pageToken}`)
  t.equal(next.body.data.length, 2)
  t.equal(
    (await idsOf(`/users?${scope}&pageLimit=99999`)).length,
    4,
    'a page limit above the maximum means the maximum',
  )
}

t.test('users are found by e-mail and group, and groups by name, on SQLite', async t => lookups(t, {}))
t.test('users are found by e-mail and group, and groups by name, on MongoDB', async t => {
  const MONGODB_URL = await mongoUrl(t)
  if (MONGODB_URL !== undefined) await lookups(t, { MONGODB_URL })
})

t.test('an unknown query parameter is refused rather than ignored', async t => {
  const service = await startService(t)
  const { id } = await service.directory()
  const ask = async (method: string, path: string) => {
    const { status, body } = await service.manage(method, path)
    return [status, body.error?.message]
  }
  t.same(await ask('GET', `/users?directoryId=${id}&name=x`), [
    400,
    'Unknown query parameter "name". Known here: email, group, tenant, product, directoryId, pageOffset, offset, pageLimit, limit, page_size, pageToken, page_token.',
  ])
  t.same(await ask('GET', `/users?directoryId=${id}&emai=x`), [
    400,
    'Unknown query parameter "emai". Did you mean "email"?',
  ])
  t.same(await ask('POST', `/cron/process-events?directoryId=${id}`), [
    400,
    'Unknown query parameter "directoryId". None is known here.',
  ])
  for (const alias of ['offset=0', 'limit=1', 'page_size=1']) {
    t.match(await ask('GET', `/users?directoryId=${id}&${alias}`), [200], alias)
  }
  t.match(await ask('GET', `/${id}?tenant=acme&product=app`), [200], 'the scope is accepted beside an id')
})
