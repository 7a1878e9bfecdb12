import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { start } from '../../../../services/directory/index.js'
import { apiKey, okta, startService } from '../harness.js'

const quiet = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }

t.test('a directory is created and read back with the documented fields', async t => {
  const service = await startService(t)
  const fields = { name: 'Acme', tenant: 'acme', product: 'crm', type: 'okta-scim-v2' }
  const webhook = { webhook_url: 'https://example.com/hook', webhook_secret: 'hush-hush' }
  const forwarded = { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'sync.example.com' }
  const { status, body } = await service.manage('POST', '', { ...fields, ...webhook }, forwarded)
  t.equal(status, 201)
  const { id, scim } = body.data
  t.same(body, {
    data: {
      id,
      ...fields,
      log_webhook_events: false,
      deactivated: false,
      scim: {
        path: `/api/scim/v2.0/${id}`,
        secret: scim.secret,
        endpoint: `https://sync.example.com/api/scim/v2.0/${id}`,
      },
      webhook: { endpoint: 'https://example.com/hook', secret: 'hush-hush' },
    },
    error: null,
  })
  t.match(scim.secret, /^[\w-]{43}$/)
  t.same((await service.manage('GET', `/${id}`, undefined, forwarded)).body, body)
  t.same((await service.manage('GET', '?tenant=acme&product=crm', undefined, forwarded)).body, {
    data: [body.data],
    error: null,
  })
  t.same((await service.manage('GET', '?tenant=acme&product=other')).body, { data: [], error: null })
  const alias = await service.call('GET', `/api/v1/dsync/${id}`, undefined, {
    authorization: `Bearer ${apiKey}`,
  })
  t.equal(alias.body.data.id, id)
  t.match(alias.body.data.scim.endpoint, `${service.url}/api/scim/v2.0/`)
  const evil = await service.manage('GET', `/${id}`, undefined, { 'x-forwarded-host': 'a b"<' })
  t.match(evil.body.data.scim.endpoint, service.url, 'a malformed forwarded host is ignored')
})

t.test('a directory gets a default name, type and webhook, and an endpoint under BASE_URL', async t => {
  const service = await startService(t, { BASE_URL: 'https://fixed.example/' })
  const { body } = await service.manage('POST', '', { tenant: 't', product: 'p' })
  t.match(body.data, { name: 'scim-t-p', type: 'generic-scim-v2', webhook: { endpoint: '', secret: '' } })
  t.match(body.data.scim.endpoint, 'https://fixed.example/api/scim/v2.0/')
})

t.test('each refusal has the right status, the error envelope and a helpful message', async t => {
  const service = await startService(t)
  const good = { tenant: 't', product: 'p' }
  const hook = (webhook_url: string, webhook_secret = 'hush-hush') => ({ webhook_url, webhook_secret })
  const bodies: [unknown, RegExp][] = [
    [{ product: 'p' }, /tenant is required/],
    [{ tenant: 't' }, /product is required/],
    [{ ...good, tenant: 'a:b' }, /tenant must not contain the character ":"/],
    [{ ...good, product: 'a:b' }, /product must not contain/],
    [{ ...good, tenant: 7 }, /tenant must be a string/],
    [{ ...good, tenant: { $ne: null } }, /tenant must be a string/],
    [{ ...good, tenant: 'x'.repeat(300) }, /longer than 256/],
    [{ ...good, name: 'a\u0000b' }, /control characters/],
    [{ ...good, type: 'ldap' }, /type must be one of azure-scim-v2, /],
    [
      { ...good, webhook_url: 'ftp://x/', webhook_secret: 'hush-hush' },
      /webhook_url must be an http or https address/,
    ],
    [{ ...good, webhook_url: 'nonsense', webhook_secret: 'hush-hush' }, /webhook_url/],
    [{ ...good, webhook_url: 'https://u:p@x/', webhook_secret: 'hush-hush' }, /must not hold a user/],
    [{ ...good, tenant: 'half \ud83d' }, /half a character/],
    [{ ...good, webhook_url: 'https://example.com' }, /webhook_url and webhook_secret belong together/],
    [{ ...good, webhook_secret: 'hush-hush' }, /webhook_url and webhook_secret belong together/],
    [{ ...good, ...hook('https://[::1]/') }, /::1 is not a public address/],
    [{ ...good, ...hook('https://169.254.169.254/') }, /is not a public address/],
    [{ ...good, ...hook('https://example.com/', 'hush') }, /webhook_secret must have at least 6 characters/],
    [{ ...good, ...hook('https://example.com/', 'whsec_') }, /at least 16 bytes in base64/],
    [
      { ...good, ...hook('https://example.com/', 'whsec_????????????????????????') },
      /at least 16 bytes in base64/,
    ],
    [{ ...good, ...hook('https://example.com/', 'whsec_c2hvcnQ=') }, /at least 16 bytes in base64/],
    [[], /must be a JSON object/],
    ['', /must be a JSON object/],
    ['{"tenant":', /not valid JSON/],
    ['"text"', /must be a JSON object/],
  ]
  for (const [body, message] of bodies) {
    const answer = await service.manage('POST', '', body)
    t.equal(answer.status, 400, JSON.stringify(body)?.slice(0, 60))
    t.match(answer.body, { data: null, error: { message, code: 400 } })
  }
  const key = { authorization: `Api-Key ${apiKey}` }
  const calls: [number, string, string, unknown, Record<string, string>][] = [
    [401, 'GET', '/api/v1/directory-sync?tenant=t&product=p', undefined, {}],
    [401, 'GET', '/api/v1/directory-sync/users', undefined, { authorization: 'Api-Key wrong' }],
    [401, 'GET', '/api/v1/directory-sync/users', undefined, { authorization: `Basic ${apiKey}` }],
    [400, 'GET', '/api/v1/directory-sync?tenant=t', undefined, key],
    [400, 'GET', '/api/v1/directory-sync/users', undefined, key],
    [400, 'GET', '/api/v1/directory-sync/users?tenant=t&product=p&product=q', undefined, key],
    [400, 'GET', '/api/v1/directory-sync?tenant=a:b&product=p', undefined, key],
    [400, 'GET', '/api/v1/directory-sync/users?tenant=t&product=a:b', undefined, key],
    [401, 'GET', `/api/v1/directory-sync/${'x'.repeat(9000)}`, undefined, {}],
    [404, 'GET', `/api/v1/directory-sync/${'x'.repeat(9000)}`, undefined, key],
    [404, 'GET', `/api/v1/directory-sync/users/${'x'.repeat(300)}?tenant=t&product=p`, undefined, key],
    [400, 'GET', '/api/v1/directory-sync/users?tenant[$ne]=t&tenant=t&product=p', undefined, key],
    [400, 'GET', '/api/v1/directory-sync/users?tenant=t&product=p&pageOffset=-1', undefined, key],
    [400, 'GET', '/api/v1/directory-sync/users?tenant=t&product=p&pageLimit=x', undefined, key],
    [400, 'GET', '/api/v1/directory-sync/users?tenant=t&product=p&pageLimit=', undefined, key],
    [400, 'GET', '/api/v1/%zz', undefined, key],
    [404, 'GET', '/api/v1/directory-sync/unknown', undefined, key],
    [404, 'GET', '/api/v1/directory-sync/users?directoryId=unknown', undefined, key],
    [404, 'GET', '/api/v1/directory-sync/users/unknown?tenant=t&product=p', undefined, key],
    [404, 'GET', '/api/v1/directory-sync/groups/unknown/members?tenant=t&product=p', undefined, key],
    [404, 'GET', '/elsewhere', undefined, key],
    [405, 'DELETE', '/api/v1/directory-sync', undefined, key],
    [405, 'PUT', '/api/v1/directory-sync/users', {}, key],
    [413, 'POST', '/api/v1/directory-sync', `"${'x'.repeat(1024 * 1024)}"`, key],
    [
      415,
      'POST',
      '/api/v1/directory-sync',
      'tenant=t',
      { ...key, 'content-type': 'application/x-www-form-urlencoded' },
    ],
  ]
  for (const [status, method, path, body, headers] of calls) {
    const answer = await service.call(method, path, body, headers)
    t.equal(answer.status, status, `${status} ${method} ${path}`)
    t.match(answer.body, { data: null, error: { message: String, code: status } })
    if (status === 405) t.match(answer.headers.get('allow'), 'GET')
    if (status === 401) t.equal(answer.headers.get('www-authenticate'), 'Api-Key realm="management"')
  }
})

t.test('lists cover all directories of a tenant and product, page by page, and no other tenant', async t => {
  const service = await startService(t)
  const one = await service.directory({ tenant: 'acme' })
  const two = await service.directory({ tenant: 'acme' })
  const other = await service.directory({ tenant: 'other' })
  const made: string[] = []
  for (const [n, directory] of [one, two, one].entries())
    made.push((await directory.scim('POST', '/Users', okta(`u${n}`))).body.id)
  const stranger = (await other.scim('POST', '/Users', okta('u0'))).body.id
  const listed = async (query: string) =>
    (await service.manage('GET', `/users?${query}`)).body.data.map((user: { id: string }) => user.id)
  t.same(await listed('tenant=acme&product=app'), made)
  t.same(await listed('tenant=acme&product=app&pageOffset=1&pageLimit=1'), made.slice(1, 2))
  t.same(await listed('tenant=acme&product=app&offset=2'), made.slice(2))
  t.same(await listed(`directoryId=${two.id}`), [made[1]])
  t.equal((await service.manage('GET', `/users/${stranger}?tenant=acme&product=app`)).status, 404)
  t.equal((await service.manage('GET', `/users/${made[0]}?directoryId=${two.id}`)).status, 404)
  t.equal((await service.manage('GET', `/users?directoryId=${two.id}&tenant=other&product=app`)).status, 404)

  const members = made.slice(0, 1).map(value => ({ value }))
  const group = (await one.scim('POST', '/Groups', { displayName: 'Team', members })).body.id
  const scope = '?tenant=acme&product=app'
  t.same((await service.manage('GET', `/groups${scope}`)).body, {
    data: [
      {
        id: group,
        name: 'Team',
        raw: {
          schemas: ['urn:ietf:params:scim:schemas:core:2.0:Group'],
          displayName: 'Team',
          members: [{ value: made[0], display: 'Ada Lovelace' }],
          id: group,
        },
      },
    ],
    error: null,
  })
  const single = (await service.manage('GET', `/groups/${group}${scope}`)).body
  t.same(single.data.members, [{ group_id: group, user_id: made[0] }])
  t.same(single.data.raw.members, [{ value: made[0], display: 'Ada Lovelace' }])
  t.same((await service.manage('GET', `/groups/${group}/members${scope}&pageOffset=0&pageLimit=10`)).body, {
    data: [{ user_id: made[0] }],
  })
  t.match((await service.manage('GET', `/users/${made[0]}${scope}`)).body, {
    data: {
      id: made[0],
      first_name: 'Ada',
      last_name: 'Lovelace',
      email: 'u0',
      active: true,
      raw: { userName: 'u0', id: made[0] },
    },
    error: null,
  })
})

t.test('the first start creates a key, shows it once and stores no secret in plain text', async t => {
  const dataDir = join(t.testdir(), 'data')
  const first = await start({ env: { DATA_DIR: dataDir }, log: quiet })
  const [note = '', advice] = first.notes
  t.match(advice, `delete ${join(dataDir, 'api-key.sha256')}`)
  const key = note.replace('Management API key (shown once): ', '')
  t.match(key, /^sk_[\w-]{43}$/)
  const body = JSON.stringify({
    tenant: 't',
    product: 'p',
    webhook_url: 'https://example.com',
    webhook_secret: 'canary-secret',
  })
  const create = (url: string) =>
    fetch(`${url}/api/v1/directory-sync`, {
      method: 'POST',
      headers: { authorization: `api-key ${key}`, 'content-type': 'application/json' },
      body,
    })
  const answer = await create(first.url)
  t.equal(answer.status, 201)
  const { data } = (await answer.json()) as { data: { scim: { secret: string } } }
  await first.close()
  t.notOk(
    readdirSync(dataDir).some(file => /-(wal|shm)$/.test(file)),
    'a closed database leaves no log files',
  )
  t.equal(statSync(dataDir).mode & 0o777, 0o700)
  for (const file of readdirSync(dataDir)) {
    t.equal(statSync(join(dataDir, file)).mode & 0o777, 0o600, file)
    const text = readFileSync(join(dataDir, file), 'latin1')
    for (const secret of [key, data.scim.secret, 'canary-secret']) t.notOk(text.includes(secret), file)
  }
  const second = await start({ env: { DATA_DIR: dataDir }, log: quiet })
  t.same(second.notes, [])
  t.equal((await create(second.url)).status, 201)
  await second.close()
  const ENCRYPTION_KEY = Buffer.alloc(32, 1).toString('base64')
  await t.rejects(start({ env: { DATA_DIR: dataDir, ENCRYPTION_KEY }, log: quiet }), {
    message: /cannot be decrypted with this key/,
  })
})

t.test('a failed start stores no key that nobody has seen', async t => {
  const dataDir = t.testdir({ 'directory.db': { 'a folder': '' } })
  await t.rejects(start({ env: { DATA_DIR: dataDir }, log: quiet }), {
    message: /directory.db cannot be opened/,
  })
  t.notOk(readdirSync(dataDir).includes('api-key.sha256'))
})

t.test('a wrong setting stops the start with a message that names it', async t => {
  const DATA_DIR = t.testdir({ file: '' })
  const table: [NodeJS.ProcessEnv, RegExp][] = [
    [{ MONGODB_URL: 'localhost' }, /MONGODB_URL must begin with mongodb:/],
    [{ API_KEYS: 'fifteen-letters' }, /API_KEYS must be keys of at least 16/],
    [{ ENCRYPTION_KEY: 'abc' }, /ENCRYPTION_KEY must be 32 bytes/],
    [{ API_KEYS: 'a', API_KEYS_FILE: 'b' }, /Both API_KEYS and API_KEYS_FILE are set/],
    [{ API_KEYS_FILE: join(DATA_DIR, 'file') }, /named by API_KEYS_FILE is empty/],
    [{ EXTERNAL_CLIENT_SECRET_FILE: join(DATA_DIR, 'none') }, /EXTERNAL_CLIENT_SECRET_FILE cannot be read/],
    [{ WEBHOOK_ALLOW_PRIVATE: 'yes' }, /WEBHOOK_ALLOW_PRIVATE must be true or false/],
    [{ BASE_URL: 'example.com' }, /BASE_URL must be an http/],
    [{ DATA_DIR: join(DATA_DIR, 'file') }, /DATA_DIR .* cannot be used/],
  ]
  for (const [env, message] of table) {
    await t.rejects(start({ env: { DATA_DIR, ...env }, log: quiet }), { message }, Object.keys(env)[0] ?? '')
  }
})
