/** API keys as `sluice keys` makes them, while a gateway runs. */
import { execFile, execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import type { KeyList } from '../../../../gateway/admin/key-list.js'
import { sluice } from '../../../helpers/command.js'
import { testGateway } from '../../../helpers/gateway.js'
import { send, startApp } from '../../../helpers/http.js'
import { rawClient } from '../../../helpers/raw.js'
import { inProject } from '../../../helpers/root.js'
import { waitUntil } from '../../../helpers/wait.js'

async function start(t: Test, { plugin = '', routeSettings = 'auth: required' } = {}) {
  const upstream = await startApp(t, (req, res) =>
    res.end(`${req.headers['x-sluice-project']} ${req.headers.authorization} ${req.headers['x-api-key']}`),
  )
  const gateway = await testGateway(t, {
    upstream,
    routeSettings,
    settings: `apiKeys: api-keys.json\nidentify: [{ plugin: api-key${plugin} }, host]\n`,
  })
  const keys = async (...args: string[]) => {
    const { code, out, err } = await sluice(['keys', ...args, '--config', gateway.folder])
    return { code, out, err }
  }
  const add = async (...args: string[]) => (await keys('add', ...args)).out.trim()
  const get = (headers: Record<string, string>) => send(`${gateway.url}/x`, { headers })
  const file = join(gateway.folder, 'api-keys.json')
  return { ...gateway, keys, add, get, file }
}

t.test('a key works within seconds after it was made, and no longer once it is revoked', async t => {
  const { add, keys, get, file, lines } = await start(t)
  t.notOk(existsSync(file), 'without the file there are no keys')
  t.equal((await get({ 'x-api-key': 'made-up' })).status, 401)
  const key = await add('--project', 'acme', '--name', 'ci')
  t.match(key, /^sluice_[a-z0-9]{8}_\w{43}$/)
  t.notMatch(readFileSync(file, 'utf8'), key)
  await waitUntil('the key', async () => (await get({ 'x-api-key': key })).status === 200)
  t.match(await get({ 'x-api-key': key }), { body: /^acme / })
  t.match(await keys('list'), { code: 0, out: /acme +ci +sluice_\w{8}… +active/ })
  t.match(await keys('revoke', 'ci'), { code: 0 })
  await waitUntil('the end of the key', async () => (await get({ 'x-api-key': key })).status >= 400)
  t.notMatch(JSON.stringify(lines), key.slice(16))
})

t.test('while a key is rotated, both work until the overlap ends; a broken file changes nothing', async t => {
  const { add, keys, get, file } = await start(t)
  const old = await add('--project', 'acme', '--name', 'ci', '--scope', 'a')
  const next = (await keys('rotate', 'ci', '--overlap', '3s')).out.trim()
  const status = async (key: string) => (await get({ 'x-api-key': key })).status
  await waitUntil('the new key', async () => (await status(next)) === 200)
  t.equal(await status(old), 200)
  const good = readFileSync(file, 'utf8')
  writeFileSync(file, 'not JSON')
  await waitUntil('the end of the overlap', async () => (await status(old)) >= 400)
  t.equal(await status(next), 200, 'those known stay in force')
  writeFileSync(file, good)
  t.match(JSON.parse((await keys('list', '--json')).out).keys, [
    { state: 'expired' },
    { state: 'active', scopes: ['a'] },
  ])
})

t.test(
  'with a scheme, other credentials of the field are left alone; strip hides the key from the upstream',
  async t => {
    const { add, get } = await start(t, {
      plugin: ', header: authorization, scheme: Api-Key, strip: true',
      routeSettings: 'auth: optional',
    })
    const key = await add('--project', 'acme', '--name', 'ci')
    await waitUntil('the key', async () =>
      /^acme/.test((await get({ authorization: `api-key ${key}` })).body),
    )
    t.equal((await get({ authorization: `Api-Key ${key}` })).body, 'acme undefined undefined')
    t.match((await get({ authorization: 'Bearer abc' })).body, /Bearer abc/)
  },
)

t.test('strip hides a key that is not where it belongs, too', async t => {
  const { add, url } = await start(t, {
    plugin: ', header: authorization, scheme: Api-Key, strip: true',
    routeSettings: 'auth: optional',
  })
  const key = await add('--project', 'acme', '--name', 'ci')
  const { port } = new URL(url)
  for (const fields of [
    `Authorization: Bearer abc\r\nAuthorization: Api-Key ${key}\r\n`,
    `Authorization: Api-Key ${key}\r\nAuthorization: Bearer abc\r\n`,
    `Authorization: Api-Key\t${key}\r\n`,
  ]) {
    const client = await rawClient(Number(port))
    const { line, body } = await client.send(`GET / HTTP/1.1\r\nHost: a\r\n${fields}\r\n`).message()
    t.match(line, / 200 /)
    t.match(body, / undefined undefined$/, fields)
    t.notMatch(body, key)
  }
})

t.test('scopes of a key are those it was made with', async t => {
  const { add, get } = await start(t, { routeSettings: 'auth: required, scopes: [read]' })
  const reader = await add('--project', 'acme', '--name', 'reader', '--scope', 'read', '--scope', 'x')
  const other = await add('--project', 'acme', '--name', 'other')
  await waitUntil('the key', async () => (await get({ 'x-api-key': reader })).status === 200)
  t.match(await get({ 'x-api-key': other }), { status: 403, body: /insufficient-scope/ })
})

t.test('the key that replaces another lives as long as that was made for', async t => {
  const { add, keys, file } = await start(t)
  await add('--project', 'acme', '--name', 'ci', '--expires', '90d')
  const day = 86_400_000
  const made = JSON.parse(readFileSync(file, 'utf8'))
  const [created, expires] = [-89, 1].map(days => new Date(Date.now() + days * day).toISOString())
  writeFileSync(file, JSON.stringify({ ...made, keys: [{ ...made.keys[0], created, expires }] }))
  await keys('rotate', 'ci', '--overlap', '7d')
  const [old, next] = JSON.parse((await keys('list', '--json')).out).keys
  t.equal(old.expires, expires, 'an overlap does not lengthen the life of the old one')
  t.equal(Math.round((Date.parse(next.expires) - Date.now()) / day), 90)
})

t.test('many commands at once lose no key', async t => {
  const { folder, keys } = await start(t)
  const cli = inProject('dist', 'gateway', 'cli.js')
  const made = Array.from({ length: 5 }, (_, i) =>
    promisify(execFile)(process.execPath, [
      cli,
      'keys',
      'add',
      '--config',
      folder,
      '--project',
      'acme',
      '--name',
      `n${i}`,
    ]),
  )
  await Promise.all(made)
  t.equal(JSON.parse((await keys('list', '--json')).out).keys.length, 5)
})

t.test('wrong use is named', async t => {
  const { keys } = await start(t)
  t.match(await keys('add', '--project', 'nobody', '--name', 'x'), { code: 1, err: /no project "nobody"/ })
  t.match(await keys('add', '--project', 'acme'), { code: 2, err: /needs --project and --name/ })
  t.match(await keys('revoke', 'nothing'), { code: 1, err: /No key that works is called "nothing"/ })
  t.match(await keys('add', '--project', 'acme', '--name', 'x', '--expires', 'soon'), {
    code: 2,
    err: /soon/,
  })
  t.match(await keys('mend'), { code: 2, err: /knows add, list, revoke and rotate/ })
})

t.test('the admin port lists the keys with their last use, and never a key', async t => {
  const { add, keys, get, adminUrl, folder } = await start(t)
  const listed = async (query = '') => (await send(`${adminUrl}/keys${query}`)).json() as KeyList
  t.match(await listed(), { file: /api-keys\.json$/, trouble: null, total: 0, keys: [] })
  const key = await add('--project', 'acme', '--name', 'ci', '--expires', '90d')
  await add('--project', 'dev', '--name', 'unused')
  await keys('revoke', 'unused')
  await waitUntil('the key', async () => (await get({ 'x-api-key': key })).status === 200)
  const { total, keys: all } = await listed()
  t.equal(total, 2)
  t.match(all, [
    { project: 'acme', name: 'ci', state: 'active', prefix: key.slice(0, 15), revoked: null },
    { project: 'dev', name: 'unused', state: 'revoked', last_used: null },
  ])
  t.ok(Date.now() - Date.parse(all[0]?.last_used ?? '') < 10_000, 'it was used just now')
  t.same(
    (await listed('?project=dev')).keys.map(({ name }) => name),
    ['unused'],
  )
  t.notMatch(JSON.stringify(all), new RegExp(`${key}|[0-9a-f]{64}`))
  const live = await keys('list', '--live', folder)
  t.equal(live.code, 1, 'its own admin port is a free one, which the file does not say')
  t.match(
    (await keys('list', '--live', adminUrl)).out,
    /name: ci\n.*state: active\n.*last used: 20.*last used: not yet/s,
  )
  writeFileSync(join(folder, 'api-keys.json'), 'broken')
  await waitUntil('the trouble', async () => (await listed()).trouble !== null)
  t.match(await listed(), { trouble: 'It is not JSON.', total: 2 }, 'those known stay in force')
})

t.test('to explain a request with a key is no use of that key', async t => {
  const { add, adminUrl } = await start(t)
  const key = await add('--project', 'acme', '--name', 'ci')
  const explain = () => sluice(['explain', 'GET', '/x', '--header', `x-api-key: ${key}`, '--live', adminUrl])
  await waitUntil('the key', async () => /found by api-key/.test((await explain()).out))
  t.match((await send(`${adminUrl}/keys`)).json(), { keys: [{ name: 'ci', last_used: null }] })
})

t.test('a gateway does not start with a file of keys that cannot be used, and does without one', async t => {
  const { folder, reloader, file } = await start(t)
  writeFileSync(file, '{"version":1,"keys":[{}]}')
  t.match(await reloader.reload('admin'), {
    result: 'refused',
    problems: [{ message: /keys\[0\]\.id must be 8 lower-case letters/ }],
  })
  t.match(await sluice(['check', '--config', folder]), {
    code: 1,
    err: /api-keys\.json cannot be used: keys\[0\]/,
  })
})

t.test('a file that is gone, or is no file, revokes no key', async t => {
  const { add, get, file, lines } = await start(t)
  const key = await add('--project', 'acme', '--name', 'ci')
  await waitUntil('the key', async () => (await get({ 'x-api-key': key })).status === 200)
  const text = readFileSync(file, 'utf8')
  rmSync(file)
  await waitUntil('the fault', () => lines.some(({ msg }) => /The API keys cannot be read/.test(String(msg))))
  t.equal((await get({ 'x-api-key': key })).status, 200)
  rmSync(file, { force: true })
  execFileSync('mkfifo', [file])
  await waitUntil('the fault of a FIFO', () =>
    lines.some(({ err }) => /It is not a regular file/.test(String((err as Error | undefined)?.message))),
  )
  t.equal((await get({ 'x-api-key': key })).status, 200)
  rmSync(file)
  writeFileSync(file, text)
  t.equal((await get({ 'x-api-key': key })).status, 200)
})

t.test('a file of the same size and time of modification is read again', async t => {
  const { get, file } = await start(t)
  const time = new Date('2026-01-01')
  const entries = ['aaaaaaaa', 'bbbbbbbb'].map(id => ({
    ...{
      id,
      project: 'acme',
      name: id,
      prefix: `sluice_${id}`,
      scopes: [],
      created: '2026-01-01T00:00:00.000Z',
    },
    hash: createHash('sha256').update(`the-key-${id}`).digest('hex'),
  }))
  const isIn = async (id: string) => (await get({ 'x-api-key': `the-key-${id}` })).status === 200
  for (const entry of entries) {
    writeFileSync(file, JSON.stringify({ version: 1, keys: [entry] }))
    utimesSync(file, time, time)
    await waitUntil(entry.id, () => isIn(entry.id))
  }
  t.notOk(await isIn('aaaaaaaa'))
})

t.test('check names a route that nobody can take for lack of a key', async t => {
  const { add, keys, folder, file } = await start(t)
  const check = async () => (await sluice(['check', '--config', folder])).out.replace(/\s+/g, ' ')
  const closed =
    /routes\[0\]\.auth: warning: No request can take a route with "auth: required": no API key works/
  t.match(await check(), closed, 'there is no file')
  await add('--project', 'acme', '--name', 'ci')
  t.notMatch(await check(), closed)
  const made = readFileSync(file, 'utf8')
  writeFileSync(file, made.replace('"acme"', '"gone"'))
  t.match(await check(), closed, 'the only key is of a project that is not listed')
  writeFileSync(file, made)
  await keys('revoke', 'ci')
  t.match(await check(), closed, 'the only key is revoked')
  const projects = join(folder, 'projects.yaml')
  const text = readFileSync(projects, 'utf8')
  writeFileSync(projects, text.replace('hosts: [acme', `apiKeyHashes: ["${'a'.repeat(64)}"], hosts: [acme`))
  t.notMatch(await check(), closed, 'projects.yaml lists a key')
  writeFileSync(projects, text)
  const gateway = join(folder, 'gateway.yaml')
  writeFileSync(gateway, readFileSync(gateway, 'utf8').replace('auth: required', 'auth: optional'))
  t.notMatch(await check(), closed, 'no route requires one')
})

t.test('check names keys that let nobody in', async t => {
  const { add, folder, file } = await start(t)
  const check = async () => (await sluice(['check', '--config', folder])).out
  t.match(await check(), /apiKeys: note: There is no \S+api-keys\.json yet/)
  await add('--project', 'acme', '--name', 'ci')
  t.notMatch(await check(), /apiKeys/)
  writeFileSync(file, readFileSync(file, 'utf8').replace('"acme"', '"gone"'))
  t.match(await check(), /apiKeys: warning: Keys of projects .* are refused: \w{8} \(gone\)\./)
  const gateway = join(folder, 'gateway.yaml')
  const text = readFileSync(gateway, 'utf8')
  writeFileSync(
    gateway,
    text.replace('{ plugin: api-key }, ', '').replace('auth: required', 'auth: optional'),
  )
  t.match(await check(), /apiKeys: warning: No key of this file lets anybody in/)
})
