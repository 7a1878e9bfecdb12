import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createStateSigner } from '../../../../services/directory/external/consent.js'
import { readExternalSettings } from '../../../../services/directory/external/settings.js'
import { start } from '../../../../services/directory/index.js'
import { newSecret } from '../../../../services/directory/secrets.js'
import { mongoUrl } from '../../../helpers/mongo.js'
import { waitUntil } from '../../../helpers/wait.js'
import { apiKey, type Service, startReceiver, startService } from '../harness.js'
import { consent } from './consenting.js'
import { json, people, type StandIn, startProvider } from './provider.js'

const minute = 60_000

async function syncOf(service: Service, id: string, after?: string) {
  return waitUntil('the pull is over', async () => {
    const { external_sync: sync } = (await service.manage('GET', `/${id}`)).body.data
    return sync?.finished_at && sync.finished_at !== after ? sync : undefined
  })
}

async function lifecycle(t: Test, more: NodeJS.ProcessEnv): Promise<void> {
  const countLocally = await startProvider(t)
  const receiver = await startReceiver(t)
  const service = await startService(t, { ...countLocally.env, ...more, WEBHOOK_ALLOW_PRIVATE: 'true' })
  const made = await service.manage('POST', '', {
    ...{ tenant: 'acme', product: 'crm', type: 'external', external_domain: 'acme.example' },
    ...{ webhook_url: receiver.url, webhook_secret: 'webhook-secret' },
  })
  const { id } = made.body.data
  const empty = { external_domain: 'acme.example', external_access_token: '', external_refresh_token: '' }
  t.match(made.body.data, { type: 'external', ...empty, external_sync: null })
  const early = await service.manage('POST', `/cron/sync-external?directoryId=${id}`)
  t.match([early.status, early.body.error.message], [400, /not connected yet.*consent-link/])

  const { begun, location, ended } = await consent(service, id)
  t.equal(begun.status, 302)
  t.equal(location.href.split('?')[0], `${countLocally.url}/authorize`)
  const asked = Object.fromEntries(location.searchParams)
  t.match(asked, {
    ...{ response_type: 'code', client_id: 'client', access_type: 'offline', prompt: 'consent' },
    redirect_uri: `${service.url}/api/scim/oauth/callback`,
    scope: ['group', 'group.member']
      .map(name => `https://www.googleapis.com/auth/admin.directory.${name}.readonly`)
      .join(' '),
  })
  t.match(await begun.json(), { data: { authorizationUrl: location.href }, error: null })
  t.match(
    [ended.status, ended.body],
    [200, { data: { message: 'The directory is connected.' }, error: null }],
  )
  t.same(Object.fromEntries(countLocally.grants[0] ?? []), {
    ...{ grant_type: 'authorization_code', code: 'good-code', client_id: 'client' },
    ...{ client_secret: 'client-secret-canary', redirect_uri: asked.redirect_uri },
  })
  const connected = (await service.manage('GET', `/${id}`)).body.data
  t.match(connected, { external_access_token: /^access-canary/, external_refresh_token: /^refresh-canary/ })

  countLocally.users = people(3)
  countLocally.groups = [{ id: 'g1', name: 'Sales', email: 'sales@acme.example', members: ['p1', 'p2'] }]
  const authorization = `Api-Key ${apiKey}`
  const endpoint9 = '/api/v1/dsync/cron/sync-external'
  const triggered = await service.call('POST', endpoint9, undefined, { authorization })
  t.match([triggered.status, triggered.body], [200, { data: { message: 'Sync started' }, error: null }])
  const sync = await syncOf(service, id)
  t.match(sync, {
    ...{ status: 'complete', error: null, users: { created: 3, updated: 0, deleted: 0 } },
    ...{ groups: { created: 1 }, memberships: { added: 2, removed: 0 } },
  })
  await waitUntil('all webhooks', () => receiver.calls.length === 6)
  t.same(
    receiver.calls.map(call => call.event.event),
    [...Array(3).fill('user.created'), 'group.created', ...Array(2).fill('group.user_added')],
  )
  const users = (await service.manage('GET', '/users?tenant=acme&product=crm')).body.data
  t.match(users[0], { first_name: 'Person', email: 'person1@acme.example', raw: { externalId: 'p1' } })
  const list = (await service.manage('GET', '?tenant=acme&product=crm')).body.data
  t.same(list[0].external_sync, sync, 'a list shows the state of the pull too')

  countLocally.users = people(1)
  await service.manage('POST', `/cron/sync-external?directoryId=${id}`)
  const refused = await syncOf(service, id, sync.finished_at)
  t.match(refused, { status: 'refused', error: /2 of 3 users would be deleted.*allowDeletions=true/ })
  await service.manage('POST', `/cron/sync-external?directoryId=${id}&allowDeletions=true`)
  t.match(await syncOf(service, id, refused.finished_at), { status: 'complete', users: { deleted: 2 } })

  t.equal((await service.manage('PATCH', `/${id}`, { deactivated: true })).status, 200)
  const before = countLocally.asks.length
  await service.manage('POST', '/cron/sync-external')
  await new Promise(resolve => setTimeout(resolve, 100))
  t.equal(countLocally.asks.length, before, 'a deactivated directory is not pulled')
  t.equal((await service.manage('PATCH', `/${id}`, { deactivated: false, external_domain: '' })).status, 200)
  await service.manage('POST', '/cron/sync-external')
  const usersAsked = () => countLocally.asks.findLast(ask => ask.path === '/api/users')?.params
  await waitUntil('a pull of all domains', () => usersAsked()?.get('customer') === 'my_customer')

  t.equal((await service.manage('DELETE', `/${id}`)).status, 200)
  t.equal((await service.manage('POST', `/cron/sync-external?directoryId=${id}`)).status, 404)
  await service.close()
  t.notMatch(service.logged.join('\n'), /canary|@acme/, 'the log holds no secret and no personal data')
  for (const name of readdirSync(service.dataDir, { recursive: true, encoding: 'utf8' })) {
    t.notMatch(
      readFileSync(join(service.dataDir, name)).toString('latin1'),
      /canary/,
      `${name} holds no token in plain text`,
    )
  }
}

t.test('an external directory is connected, pulled and deleted, on SQLite', async t => lifecycle(t, {}))
t.test('an external directory is connected, pulled and deleted, on MongoDB', async t => {
  const url = await mongoUrl(t)
  if (url !== undefined) await lifecycle(t, { MONGODB_URL: url })
})

t.test('a connection that cannot be made is refused with a message that says why', async t => {
  const countLocally = await startProvider(t)
  const service = await startService(t, { ...countLocally.env, BASE_URL: 'https://sync.example.com' })
  const { body } = await service.manage('POST', '', { tenant: 'acme', product: 'crm', type: 'google' })
  const { id } = body.data
  const scim = await service.directory()
  t.equal((await consent(service, id)).ended.status, 200)
  const { state, location, cookie } = await consent(service, id, 'bad-code')
  t.equal(location.searchParams.get('redirect_uri'), 'https://sync.example.com/api/scim/oauth/callback')
  const bound = { directoryId: id, link: newSecret(), browser: newSecret() }
  const other = createStateSigner(randomBytes(32)).sign(bound)
  for (const [path, status, sentence] of [
    ['authorize', 400, /link or directoryId is required/],
    ['authorize?directoryId=unknown', 404, /no directory with this id/],
    [`authorize?directoryId=${scim.id}`, 400, /type okta-scim-v2 is not pulled/],
    ['callback', 400, /state is missing, unknown or older than ten minutes/],
    [`callback?code=good-code&state=${other}`, 400, /unknown/],
    [`callback?code=good-code&state=${state.replace(id, scim.id)}`, 400, /unknown/],
    [`callback?code=good-code&state=${state.slice(0, -2)}`, 400, /unknown/],
    [`callback?code=good-code&state=${state}&state=${state}`, 400, /given twice/],
    [`callback?state=${state}`, 400, /code is required/],
    [`callback?state=${state}&error=access_denied`, 400, /gave no consent \(access_denied\)/],
    [`callback?state=${state}&error=%3Cscript%3E`, 400, /gave no consent: open the link again/],
    [`callback?state=${state}&code=bad-code`, 400, /refused the authorization_code \(400: invalid_grant\)/],
  ] as const) {
    const headers = { authorization: `Api-Key ${apiKey}`, cookie }
    const answer = await service.call('GET', `/api/scim/oauth/${path}`, undefined, headers)
    t.match(
      [answer.status, answer.body.data, answer.body.error],
      [status, null, { code: status, message: sentence }],
      path,
    )
    t.equal(answer.headers.get('cache-control'), 'no-store')
  }
  t.equal((await service.call('POST', '/api/scim/oauth/authorize')).headers.get('allow'), 'GET, HEAD')
  const page = await fetch(`${service.url}/api/scim/oauth/callback`, { headers: { accept: 'text/html,*/*' } })
  t.match(
    [page.headers.get('content-type'), await page.text()],
    ['text/plain; charset=utf-8', /^The state is missing/],
  )

  const manage = async (method: string, path: string, content?: object) => {
    const answer = await service.manage(method, path, content)
    return [answer.status, answer.body.error?.message]
  }
  t.match(await manage('POST', '/cron/sync-external?allowDeletions=true'), [400, /needs a directoryId/])
  t.match(await manage('POST', `/cron/sync-external?directoryId=${id}&allowDeletions=yes`), [
    400,
    /true or false/,
  ])
  t.match(await manage('POST', `/cron/sync-external?directoryId=${scim.id}`), [400, /not of type external/])
  t.match(await manage('PATCH', `/${id}`, { external_domain: 'not a domain' }), [
    400,
    /must be a domain name/,
  ])
  t.match(await manage('PATCH', `/${scim.id}`, { external_domain: 'acme.example' }), [400, /type external/])
  const noKey = await service.call('POST', '/api/v1/dsync/cron/sync-external')
  t.equal(noKey.status, 401)

  countLocally.disturb = ({ path }, response) => {
    if (path === '/token') json(response, 302, {}, { location: `${countLocally.url}/elsewhere` })
    return path === '/token'
  }
  const redirected = await consent(service, id)
  t.match(
    [redirected.ended.status, redirected.ended.body.error.message],
    [502, /refused the authorization_code \(302\)/],
  )
  t.notOk(
    countLocally.asks.some(ask => ask.path === '/elsewhere'),
    'a redirect is not followed',
  )
  countLocally.disturb = ({ path }, response) => {
    if (path === '/token') json(response, 200, { access_token: 'access-canary' })
    return path === '/token'
  }
  t.equal(
    (await consent(service, id)).ended.status,
    200,
    'a grant without a refresh token keeps the earlier one',
  )
  const another = await service.manage('POST', '', { tenant: 'acme', product: 'crm', type: 'external' })
  const unrefreshed = await consent(service, another.body.data.id)
  t.match(unrefreshed.ended.body.error, { code: 400, message: /refreshToken is required/ })
  t.notMatch(service.logged.join('\n'), /canary/)

  const unset = await startService(t)
  const without = (await unset.manage('POST', '', { tenant: 'a', product: 'b', type: 'external' })).body.data
    .id
  const answer = await unset.manage('POST', `/${without}/consent-link`)
  t.match([answer.status, answer.body.error.message], [501, /EXTERNAL_CLIENT_ID/])
})

t.test('a hanging pull delays neither the API nor the shutdown of the service', async t => {
  const countLocally = await startProvider(t)
  const dataDir = t.testdir()
  const service = await startService(t, { ...countLocally.env, DATA_DIR: dataDir })
  const { body } = await service.manage('POST', '', { tenant: 'acme', product: 'crm', type: 'external' })
  const { id } = body.data
  await consent(service, id)
  countLocally.disturb = ({ path }) => path === '/api/users'
  await service.manage('POST', `/cron/sync-external?directoryId=${id}`)
  await waitUntil('the pull is under way', () => countLocally.asks.length > 0)
  const { external_sync: sync } = (await service.manage('GET', `/${id}`)).body.data
  t.match(sync, { status: 'running', finished_at: null, error: null })
  t.equal((await service.manage('POST', `/cron/sync-external?directoryId=${id}`)).status, 200)
  const special = await service.manage('POST', `/cron/sync-external?directoryId=${id}&allowDeletions=true`)
  t.match([special.status, special.body.error.message], [409, /being pulled right now/])
  const begun = Date.now()
  await service.close()
  t.ok(Date.now() - begun < 2000, 'the service closes without waiting for the provider')
  const next = await startService(t, { ...countLocally.env, DATA_DIR: dataDir })
  const after = (await next.manage('GET', `/${id}`)).body.data.external_sync
  t.match(after, { status: 'failed', error: 'The service was stopped during the pull' })
})

t.test('a state is valid for ten minutes', async t => {
  const signer = createStateSigner(randomBytes(32))
  const bound = { directoryId: 'a-directory', link: newSecret(), browser: newSecret() }
  const state = signer.sign(bound)
  t.same(signer.read(state), bound)
  const now = Date.now()
  const clock = t.capture(Date, 'now', () => now + 10 * minute - 1000)
  t.same(signer.read(state), bound)
  clock.restore()
  t.capture(Date, 'now', () => now + 10 * minute + 1000)
  t.equal(signer.read(state), undefined)
})

t.test('a directory is connected by three library calls and pulled by a fourth', async t => {
  const countLocally = await startProvider(t)
  const service = await library(t, countLocally, {})
  const created = await service.directories.create({ tenant: 'acme', product: 'crm', type: 'external' })
  const directoryId = created.data?.id ?? ''
  const redirectUrl = 'https://app.example/back'
  const { external } = service
  t.match(await external.generateAuthorizationUrl({ directoryId }), {
    error: { code: 400, message: /redirectUrl is required/ },
  })
  t.match(await external.generateAuthorizationUrl({ directoryId: 'x', redirectUrl }), {
    data: null,
    error: { code: 404 },
  })
  const step1 = await external.generateAuthorizationUrl({ directoryId, redirectUrl })
  t.equal(new URL(step1.data?.authorizationUrl ?? '').searchParams.get('redirect_uri'), redirectUrl)
  const step2 = await external.getAccessToken({ directoryId, code: 'good-code', redirectUrl })
  t.match(step2, {
    error: null,
    data: {
      access_token: /^access/,
      refresh_token: /^refresh/,
      scope: 'a b',
      token_type: 'Bearer',
      expiry_date: Number,
    },
  })
  t.match(await external.getAccessToken({ directoryId, code: 'bad', redirectUrl }), {
    data: null,
    error: { code: 400 },
  })
  t.match(await external.getAccessToken({ directoryId, redirectUrl } as never), {
    error: { code: 400, message: /code is required/ },
  })
  const { access_token: accessToken = '', refresh_token: refreshToken = '' } = step2.data ?? {}
  t.match(await external.setToken({ directoryId, accessToken } as never), {
    error: { code: 400, message: /refreshToken/ },
  })
  t.match(await external.setToken({ directoryId, accessToken: 'a\nb', refreshToken }), {
    error: { code: 400, message: /accessToken/ },
  })
  t.match(await external.setToken({ directoryId: { $ne: 1 } as never, accessToken, refreshToken }), {
    error: { code: 400 },
  })
  const step3 = await external.setToken({ directoryId, accessToken, refreshToken })
  t.match(step3, {
    error: null,
    data: { id: directoryId, external_access_token: accessToken, external_refresh_token: refreshToken },
  })
  countLocally.users = people(2)
  const events: string[] = []
  const synced = await service.sync(event => {
    events.push(event.event)
  })
  t.match(synced, {
    error: null,
    data: [{ directory_id: directoryId, status: 'complete', users: { created: 2 } }],
  })
  t.same(events, ['user.created', 'user.created'])
  t.match(
    await service.sync(),
    { data: [{ status: 'complete', users: { created: 0 } }] },
    'a pull works without a callback',
  )
  t.match((await service.directories.get(directoryId)).data?.external_sync, { status: 'complete' })
})

async function library(t: Test, countLocally: StandIn, env: NodeJS.ProcessEnv) {
  const quiet = () => undefined
  const log = { debug: quiet, info: quiet, warn: quiet, error: quiet }
  const service = await start({
    env: { API_KEYS: 'test-key-0123456789', DATA_DIR: t.testdir(), ...countLocally.env, ...env },
    log,
  })
  t.teardown(() => service.close())
  return service
}

t.test('a wrong setting is refused with a message that names it', async t => {
  for (const [env, sentence] of [
    [{ EXTERNAL_CLIENT_ID: 'x' }, /EXTERNAL_CLIENT_ID and EXTERNAL_CLIENT_SECRET belong together/],
    [{ EXTERNAL_TOKEN_URL: 'http://provider.example/token' }, /EXTERNAL_TOKEN_URL must be an https address/],
    [{ EXTERNAL_TOKEN_URL: 'http://127.evil.example/' }, /must be an https address/],
    [{ EXTERNAL_API_URL: 'ftp://127.0.0.1/' }, /EXTERNAL_API_URL/],
    [{ EXTERNAL_SCOPES: 'a "b"' }, /EXTERNAL_SCOPES must be OAuth scopes/],
    [
      { EXTERNAL_MAX_DELETIONS: '0.3' },
      /EXTERNAL_MAX_DELETIONS must be a whole number of percent, at most 100/,
    ],
    [
      { DSYNC_EXTERNAL_CRON_INTERVAL: '2h' },
      /DSYNC_EXTERNAL_CRON_INTERVAL must be a whole number of seconds/,
    ],
  ] as const) {
    t.throws(() => readExternalSettings(env), { message: sentence })
  }
  t.match(readExternalSettings({}), {
    client: undefined,
    apiUrl: 'https://admin.googleapis.com/admin/directory/v1',
    ...{ maxDeletions: 0.3, intervalMs: undefined },
  })
})
