import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { createInterface } from 'node:readline'
import t, { type Test } from 'tap'
import {
  type DirectoryEvent,
  type DirectoryRequest,
  type EmbeddedDirectory,
  open,
  start,
} from '../../../../services/directory/index.js'
import { mongoUrl } from '../../../helpers/mongo.js'
import { inProject } from '../../../helpers/root.js'
import { waitUntil } from '../../../helpers/wait.js'
import { okta, patchOp, startReceiver } from '../harness.js'

const logged: string[] = []
const write = (fields: object, message: string): void => {
  logged.push(`${message} ${JSON.stringify(fields)}`)
}
const log = { debug: write, info: write, warn: write, error: write }

async function opened(t: Test, env: NodeJS.ProcessEnv = {}) {
  const service = await open({ env: { DATA_DIR: t.testdir(), ...env }, log })
  t.teardown(() => service.close())
  return { service, ...(await connected(service)) }
}

async function connected(service: EmbeddedDirectory, fields: object = {}) {
  const { data: directory } = await service.directories.create({ tenant: 'acme', product: 'crm', ...fields })
  if (!directory) throw new Error('no directory')
  const events: DirectoryEvent[] = []
  const of = (method: string, resourceType: string, resourceId = '', body?: unknown): DirectoryRequest => {
    const { id: directoryId, scim } = directory
    return { method, body, directoryId, resourceType, resourceId, apiSecret: scim.secret }
  }
  const ask = (...request: Parameters<typeof of>) =>
    service.handle(of(...request), event => {
      events.push(event)
    })
  return { directory, events, of, ask }
}

const idOf = ({ data }: { data: unknown }): string => (data as { id: string }).id
const names = (events: DirectoryEvent[]): string[] => events.map(({ event }) => event)

async function wholeLife(t: Test, env: NodeJS.ProcessEnv): Promise<void> {
  const { service, directory, events, of, ask } = await opened(t, env)
  const created = await ask('POST', 'Users', '', okta('ada@acme.example'))
  t.match(created, { status: 201, data: { id: String, userName: 'ada@acme.example', active: true } })
  const ada = idOf(created)
  t.match(events[0], {
    event: 'user.created',
    ...{ tenant: 'acme', product: 'crm', directory_id: directory.id, id: /^evt_/, sequence: 1 },
    data: { id: ada, first_name: 'Ada', last_name: 'Lovelace', email: 'ada@acme.example', active: true },
  })
  t.match(await ask('put', 'USERS', ada, okta('ada@acme.example', { displayName: 'Countess' })), {
    status: 200,
  })
  t.match(await ask('PATCH', 'users', ada, patchOp({ op: 'replace', value: { active: false } })), {
    status: 200,
    data: { active: false },
  })
  const group = idOf(await ask('POST', 'groups', '', { displayName: 'Team', members: [{ value: ada }] }))
  const remove = patchOp({ op: 'remove', path: `members[value eq "${ada}"]` })
  t.match(await ask('PATCH', 'groups', group, remove), { status: 200 })
  t.match(await ask('PUT', 'groups', group, { displayName: 'Crew' }), {
    status: 200,
    data: { displayName: 'Crew' },
  })
  const list = {
    ...of('GET', 'users'),
    query: { filter: 'userName eq "ADA@acme.example"', count: 1, startIndex: 1 },
  }
  t.match(await service.handle(list), { status: 200, data: { totalResults: 1, Resources: [{ id: ada }] } })
  t.match(await ask('GET', 'groups', group), { status: 200, data: { id: group, members: { length: 0 } } })
  t.same(await ask('DELETE', 'groups', group), { status: 204, data: null })
  t.same(await ask('DELETE', 'users', ada), { status: 204, data: null })
  t.match(await ask('GET', 'users', ada), { status: 404, data: { status: '404' } })
  t.same(names(events), [
    ...['user.created', 'user.updated', 'user.updated', 'group.created', 'group.user_added'],
    ...['group.user_removed', 'group.updated', 'group.deleted', 'user.deleted'],
  ])
  t.same(
    events.map(event => event.sequence),
    events.map((_, index) => index + 1),
  )
}

t.test('the handler serves every SCIM request and passes its events to the callback, on SQLite', async t =>
  wholeLife(t, {}),
)
t.test('the handler serves every SCIM request and passes its events to the callback, on MongoDB', async t => {
  const url = await mongoUrl(t)
  if (url !== undefined) await wholeLife(t, { MONGODB_URL: url })
})

t.test('the handler refuses any wrong input with a SCIM error', async t => {
  const { service, of, events } = await opened(t)
  const user = of('POST', 'users', '', okta('ada@acme.example'))
  const cyclic: Record<string, unknown> = { userName: 'x' }
  cyclic.self = cyclic
  for (const [change, status, detail] of [
    [{ directoryId: 'unknown' }, 404, /no directory with this id/],
    [{ directoryId: { $ne: '' } }, 400, /must be a string/],
    [{ apiSecret: 'wrong' }, 401, /secret is wrong/],
    [{ apiSecret: undefined }, 401, /secret is wrong/],
    [{ apiSecret: { $ne: '' } }, 400, /must be a string/],
    [{ resourceType: 'devices' }, 404, /nothing at this path/],
    [{ resourceType: 'constructor' }, 404, /nothing at this path/],
    [{ method: 'TRACE' }, 405, /TRACE is not allowed here; allowed: POST, GET/],
    [{ method: undefined }, 405, /not a method/],
    [{ method: 'DELETE' }, 405, /DELETE is not allowed here/],
    [{ resourceId: 'x' }, 405, /POST is not allowed here/],
    [{ method: 'GET', resourceId: '..' }, 400, /must be a string/],
    [{ method: 'GET', resourceId: '\ud800' }, 404, /./],
    [{ headers: { 'if-match': 5 } }, 400, /if-match must be a string/],
    [{ method: 'GET', resourceId: { $gt: '' } }, 400, /must be a string/],
    [{ body: undefined }, 400, /must be a JSON object/],
    [{ body: '{"userName":' }, 400, /not valid JSON/],
    [{ body: cyclic }, 400, /not valid JSON/],
    [{ body: () => 1 }, 400, /not valid JSON/],
    [{ body: { userName: 1n } }, 400, /not valid JSON/],
    [{ body: 'x'.repeat(1024 * 1024 + 1) }, 413, /larger than 1 MiB/],
    [{ body: JSON.parse('{"userName":"x","__proto__":{"admin":true}}') }, 400, /__proto__/],
    [{ body: { name: {} } }, 400, /userName is required/],
    [{ method: 'GET', query: { count: 'many' } }, 400, /count must be a whole number/],
    [{ method: 'GET', query: { startIndex: {} } }, 400, /startIndex must be a string, a number/],
    [{ method: 'GET', query: { filter: ['x'] } }, 400, /filter must be a string/],
    [{ method: 'GET', query: { filter: 'userName is "x"' } }, 400, /./],
  ] as const) {
    const answer = await service.handle({ ...user, ...change } as DirectoryRequest)
    const error = { schemas: ['urn:ietf:params:scim:api:messages:2.0:Error'], status: String(status), detail }
    t.match(
      answer,
      { status, data: error },
      JSON.stringify(change, (_, value) =>
        typeof value === 'bigint' ? 'bigint' : value === cyclic ? 'cyclic' : value,
      )?.slice(0, 80),
    )
  }
  t.match(await service.handle(undefined as never), { status: 400 })
  t.match(
    await service.handle({ ...user, body: JSON.stringify(user.body) }),
    { status: 201 },
    'a body may be JSON text',
  )
  t.match(await service.handle(user), { status: 409, data: { scimType: 'uniqueness' } })
  t.match(await service.handle({ ...of('GET', 'users'), query: { count: '1' as never } }), {
    data: { itemsPerPage: 1 },
  })
  t.equal(events.length, 0)
  t.match(await service.directories.create({ tenant: 'a:b', product: 'x' }), {
    data: null,
    error: { code: 400 },
  })
  t.match(await service.directories.get('unknown'), { data: null, error: { code: 404 } })
  t.match(await service.directories.get({} as never), { data: null, error: { code: 400 } })
})

t.test(
  'the callback runs after the change is stored and before the response, and gets only its own events',
  async t => {
    const { service, of, ask } = await opened(t)
    let answered = false
    const seen: unknown[] = []
    const done = service
      .handle(of('POST', 'users', '', okta('ada@acme.example')), async ({ data }) => {
        seen.push(await service.handle(of('GET', 'users', String(data.id))), answered)
        await new Promise(resolve => setTimeout(resolve, 20))
        seen.push(answered)
      })
      .finally(() => {
        answered = true
      })
    const ada = idOf(await done)
    t.match(seen, [{ status: 200, data: { userName: 'ada@acme.example' } }, false, false])

    const users = await Promise.all(
      Array.from({ length: 50 }, async (_, n) => {
        const own: DirectoryEvent[] = []
        const { status } = await service.handle(
          of('POST', 'users', '', okta(`user${n}@acme.example`)),
          event => {
            own.push(event)
          },
        )
        return [status, own.length, own[0]?.data.email]
      }),
    )
    t.same(
      users,
      Array.from({ length: 50 }, (_, n) => [201, 1, `user${n}@acme.example`]),
    )

    const failing = service.handle(of('DELETE', 'users', ada), () => {
      throw new Error('no room')
    })
    await t.rejects(failing, { message: 'no room' })
    t.match(await ask('GET', 'users', ada), { status: 404 }, 'the deletion stays done')
    const silent = await service.handle(of('PATCH', 'users', 'unknown', patchOp()), () => {
      t.fail('a request without a change calls no callback')
    })
    t.equal(silent.status, 404)
  },
)

t.test('beside HTTP the handler serves the same data, and the webhook gets the events of both', async t => {
  const receiver = await startReceiver(t)
  const env = { DATA_DIR: t.testdir(), API_KEYS: 'test-key-0123456789', WEBHOOK_ALLOW_PRIVATE: 'true' }
  const service = await start({ env, log })
  t.teardown(() => service.close())
  const webhook = { webhook_url: receiver.url, webhook_secret: 'webhook-secret' }
  const { directory, ask, events } = await connected(service, webhook)
  const byHttp = async (method: string, path: string, body?: object) => {
    const headers = { authorization: `Bearer ${directory.scim.secret}`, 'content-type': 'application/json' }
    const request = { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) }
    const answer = await fetch(`${service.url}${directory.scim.path}${path}`, request)
    return { status: answer.status, data: JSON.parse((await answer.text()) || 'null') }
  }
  const ada = idOf(await ask('POST', 'users', '', okta('ada@acme.example')))
  const group = idOf(await byHttp('POST', '/Groups', { displayName: 'Team' }))
  const more = await Promise.all(
    Array.from({ length: 20 }, (_, n) =>
      n % 2
        ? ask('POST', 'users', '', okta(`user${n}@acme.example`))
        : byHttp('POST', '/Users', okta(`user${n}@acme.example`)),
    ),
  )
  const add = (id: string) => patchOp({ op: 'add', path: 'members', value: [{ value: id }] })
  await Promise.all(
    more.map((answer, n) =>
      n % 2
        ? byHttp('PATCH', `/Groups/${group}`, add(idOf(answer)))
        : ask('PATCH', 'groups', group, add(idOf(answer))),
    ),
  )
  const withoutPlaces = ({ status, data }: { status: number; data: unknown }) =>
    JSON.parse(JSON.stringify({ status, data }).replaceAll(service.url, ''))
  const inside = await ask('GET', 'groups', group)
  t.equal((inside.data?.members as unknown[] | undefined)?.length, 20, 'no parallel change is lost')
  t.same(withoutPlaces(await byHttp('GET', `/Groups/${group}`)), withoutPlaces(inside))
  t.same(withoutPlaces(await byHttp('GET', `/Users/${ada}`)), withoutPlaces(await ask('GET', 'users', ada)))
  t.same(await byHttp('GET', '/Users/unknown'), await ask('GET', 'users', 'unknown'))
  const told = 1 + 1 + 20 + 20
  await waitUntil('all webhooks', () => receiver.calls.length === told)
  const ids = new Set(receiver.calls.map(call => call.event.id))
  t.equal(ids.size, told)
  t.ok(
    events.every(event => ids.has(event.id)),
    'the webhook gets the same events under the same ids',
  )
})

const built = inProject('dist', 'services', 'directory', 'index.js')
t.test(
  'the example in examples/ runs unchanged',
  { skip: !existsSync(built) && 'npm run build makes dist/' },
  async t => {
    const child: ChildProcess = spawn(process.execPath, [inProject('examples', 'in-process.mjs')], {
      env: { PATH: process.env.PATH, DATA_DIR: t.testdir() },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    t.teardown(() => child.kill('SIGKILL'))
    const lines: Array<Record<string, string>> = []
    createInterface({ input: child.stdout as NodeJS.ReadableStream }).on('line', line =>
      lines.push(JSON.parse(line)),
    )
    const { endpoint, secret } = await waitUntil('the example listens', () => lines[0], 30_000)
    const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/scim+json' }
    const created = await fetch(`${endpoint}/Users`, {
      method: 'POST',
      headers,
      body: JSON.stringify(okta('ada@acme.example')),
    })
    t.equal(created.status, 201)
    const { id } = (await created.json()) as { id: string }
    const group = { displayName: 'Team', members: [{ value: id }] }
    t.equal(
      (await fetch(`${endpoint}/Groups`, { method: 'POST', headers, body: JSON.stringify(group) })).status,
      201,
    )
    const found = await fetch(
      `${endpoint}/Users?count=5&filter=${encodeURIComponent('userName eq "ada@acme.example"')}`,
      { headers },
    )
    t.match(await found.json(), { totalResults: 1, Resources: [{ id }] })
    t.equal((await fetch(`${endpoint}/Users`, { headers: { authorization: 'Bearer wrong' } })).status, 401)
    t.equal((await fetch(`${endpoint}/Users/${id}`, { method: 'DELETE', headers })).status, 204)
    t.same(
      lines.slice(1).map(line => line.event),
      ['user.created', 'group.created', 'group.user_added', 'group.user_removed', 'user.deleted'],
    )
    child.kill('SIGTERM')
    t.same(await once(child, 'exit'), [0, null], 'the example exits on SIGTERM')
  },
)
