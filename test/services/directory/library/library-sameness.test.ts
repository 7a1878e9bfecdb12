/** The library gives the same answers as HTTP, whatever the request. */
import t from 'tap'
import { type DirectoryRequest, start } from '../../../../services/directory/index.js'
import { patchOp } from '../harness.js'

const quiet = () => undefined
const faults: unknown[] = []
const log = { debug: quiet, info: quiet, warn: quiet, error: (...of: unknown[]) => faults.push(of) }

t.test('the handler and HTTP respond to SCIM requests with the same status and body', async t => {
  const env = { DATA_DIR: t.testdir(), API_KEYS: 'test-key-0123456789', BASE_URL: 'https://scim.example' }
  const service = await start({ env, log })
  t.teardown(() => service.close())
  const { data: directory } = await service.directories.create({ tenant: 'acme', product: 'crm' })
  if (!directory) throw new Error('no directory')
  const ask = (method: string, resourceType: string, resourceId: string, more: object = {}) => {
    const apiSecret = directory.scim.secret
    const request = { method, resourceType, resourceId, directoryId: directory.id, apiSecret, ...more }
    return service.handle(request as DirectoryRequest)
  }
  interface More {
    body?: unknown
    query?: Record<string, string>
    headers?: Record<string, string>
  }
  const byHttp = async (method: string, type: string, id: string, { body, query, headers }: More) => {
    const path = [type, id].filter(part => part !== '').map(part => `/${encodeURIComponent(part)}`)
    const url = `${service.url}${new URL(directory.scim.endpoint ?? '').pathname}${path.join('')}`
    const answer = await fetch(`${url}?${new URLSearchParams(query)}`, {
      method,
      headers: {
        authorization: `Bearer ${directory.scim.secret}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const text = await answer.text()
    const { etag, location } = Object.fromEntries(answer.headers)
    const marks = { ...(etag ? { etag } : {}), ...(location ? { location } : {}) }
    return { status: answer.status, data: text === '' ? null : JSON.parse(text), ...marks }
  }

  const user = (await ask('POST', 'Users', '', { body: { userName: 'ada' } })).data?.id as string
  const counts = ['1e3', '0x1', ' 5', '1.0', '', '-0', '+5', 'abc', '1']
  const cases: [string, string, string, More][] = [
    ...counts.map((count): [string, string, string, More] => ['GET', 'Users', '', { query: { count } }]),
    ['GET', 'Users', '', { query: { startIndex: 'abc' } }],
    ['GET', 'Users', '', { query: { filter: '', sortBy: '', attributes: '' } }],
    ['GET', 'Users', '', { query: { 'filter[x]': 'y' } }],
    ['GET', 'Users', user, { query: { attributes: 'groups' } }],
    ['GET', 'Users', user, { headers: { 'if-none-match': '*' } }],
    ['HEAD', 'Users', '', {}],
    ['HEAD', 'Users', user, {}],
    ['OPTIONS', 'Users', '', {}],
    ['GET', 'Me', '', {}],
    ['POST', 'Me', '', { body: {} }],
    ['GET', 'Nope', '', {}],
    ['GET', '', '', {}],
    ['GET', 'Users', 'a/b', {}],
    ['GET', 'Users', '.search', {}],
    ['GET', 'Bulk', '', {}],
    ['POST', 'Bulk', 'x', { body: {} }],
    ['GET', 'ServiceProviderConfig', 'x', {}],
    ['GET', 'Schemas', 'x', {}],
    ['POST', 'Schemas', '', { body: {} }],
    ['POST', 'Users', user, { body: { userName: 'z' } }],
    ['PUT', 'Users', user, { body: { userName: 'ada' }, headers: { 'if-match': 'W/"nope"' } }],
    ['PATCH', 'Users', user, { body: patchOp() }],
    ['DELETE', 'Users', 'nope', { headers: { 'if-match': '*' } }],
    ['POST', 'Users', '', {}],
    ['POST', 'Users', '', { body: '' }],
    ['POST', 'Users', '', { body: '{' }],
    ['POST', 'Users', '', { body: 'null' }],
    ['POST', 'Users', '', { body: { userName: 5 } }],
    ['POST', 'Users', '', { body: { userName: 'ada' } }],
    ['POST', 'Users', '', { body: `"${'x'.repeat(1024 * 1024)}"` }],
  ]
  for (const [method, type, id, more] of cases) {
    const words = `${method} ${type} ${id} ${JSON.stringify(more)}`.slice(0, 120)
    t.same(await ask(method, type, id, more), await byHttp(method, type, id, more), words)
  }

  t.match(await ask('GET', 'Users', '', { query: null, headers: null }), { status: 200 })
  const conditions = { body: { userName: 'ada' }, headers: new Headers({ 'If-Match': 'W/"nope"' }) }
  t.match(await ask('PUT', 'Users', user, conditions), { status: 412 }, 'conditions can be given as Headers')
  t.match(await ask('PUT', 'Users', user, { ...conditions, headers: { 'If-Match': 'W/"nope"' } }), {
    status: 412,
  })
  const apiSecret = `Bearer ${directory.scim.secret}`
  t.match(
    await ask('GET', 'Users', user, { apiSecret }),
    { status: 200 },
    'the secret is accepted with its Bearer prefix',
  )
  t.same(faults, [], 'no request was logged as a fault of the service')
})

t.test('management calls return data and error, whatever they are given', async t => {
  const service = await start({ env: { DATA_DIR: t.testdir(), API_KEYS: 'test-key-0123456789' }, log })
  const { data: directory } = await service.directories.create({ tenant: 'acme', product: 'crm' })
  if (!directory) throw new Error('no directory')
  const directoryId = directory.id
  const { scim } = directory
  const add = { method: 'POST', resourceType: 'Users', directoryId, apiSecret: scim.secret }
  await service.handle({ ...add, body: { userName: 'null' } })
  await service.handle({ ...add, body: { userName: 'ada' } })
  t.match(await service.users.get('\ud800', { directoryId }), { data: null, error: { code: 404 } })
  t.match(await service.users.list(null as never), { data: null, error: { code: 400 } })
  t.match(await service.directories.create({ tenant: 1n, product: 'p' } as never), {
    data: null,
    error: { code: 400, message: /not valid JSON/ },
  })
  t.match(await service.users.list({ directoryId: { $ne: '' } } as never), {
    error: { code: 400, message: /^directoryId must be a string/ },
  })
  t.match(await service.users.list({ directoryId, email: null } as never), {
    error: { code: 400, message: /^email must not be null/ },
  })
  const page = { directoryId, pageToken: null, pageLimit: null }
  t.match(await service.users.list(page as never), { data: { length: 2 } })
  t.match(await service.events.feed({ directoryId, cursor: null } as never), { error: null, cursor: String })
  await service.close()
  t.match(await service.directories.get(directoryId), { data: null, error: { code: 503, message: /closed/ } })
  t.match(await service.handle({ ...add, method: 'GET' }), { status: 503, data: { status: '503' } })
})
