/** A worker that takes another's place knows the keys in force, though their file or their issuer cannot be read any more. */
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { sluice } from '../../helpers/command.js'
import type { GatewayProcess } from '../../helpers/gateway-process.js'
import { send } from '../../helpers/http.js'
import { temporaryFolder } from '../../helpers/scope.js'
import { sleep, waitUntil } from '../../helpers/wait.js'
import { AUDIENCE, ISSUER, newKey, startIssuer, token } from '../identify/jwt/issuer.js'
import { replaceWorker, twoWorkers, workersOf } from './workers.js'

/** Each over a connection of its own, so that both workers get some. */
async function statusesOf({ url }: GatewayProcess, headers: Readonly<Record<string, string>>) {
  const all = Array.from({ length: 16 }, () => send(url, { headers: { ...headers, connection: 'close' } }))
  return [...new Set((await Promise.all(all)).map(({ status }) => status))]
}

t.test(
  'API keys stay in force while their file is broken, or gone, whichever worker is replaced',
  async t => {
    const started = await twoWorkers(t, { apiKeys: 'api-keys.json', identify: [{ plugin: 'api-key' }] })
    if (started === undefined) return
    const { folder, gateway } = started
    const file = join(folder, 'api-keys.json')
    const { out } = await sluice(['keys', 'add', '--project', 'acme', '--name', 'ci', '--config', folder])
    const headers = { 'x-api-key': out.trim() }
    await waitUntil(
      'the key in both workers',
      async () => (await statusesOf(gateway, headers)).join() === '200',
    )

    await waitUntil('the supervisor knows it', async () => {
      return (await send(`${gateway.adminUrl}/keys`)).json<{ total: number }>().total === 1
    })

    const text = readFileSync(file, 'utf8')
    writeFileSync(file, '{bro')
    await replaceWorker(gateway)
    await replaceWorker(gateway)
    t.same(await statusesOf(gateway, headers), [200], 'broken, and no worker of before is left')

    rmSync(file)
    await replaceWorker(gateway)
    t.same(await statusesOf(gateway, headers), [200], 'gone')

    const revoked = text.replace('"created"', `"revoked": "2026-01-01T00:00:00Z",\n      "created"`)
    writeFileSync(`${file}.new`, revoked)
    renameSync(`${file}.new`, file)
    await waitUntil('the file counts again', async () => !(await statusesOf(gateway, headers)).includes(200))
  },
)

const NO_KEYS = '{"version":1,"keys":[]}'

t.test('the keys of another file, and an empty list, stay in force while their file is broken', async t => {
  const started = await twoWorkers(t, { apiKeys: 'api-keys.json', identify: [{ plugin: 'api-key' }] })
  if (started === undefined) return
  const { folder, gateway } = started
  writeFileSync(join(folder, 'api-keys.json'), NO_KEYS)
  const { out } = await sluice(['keys', 'add', '--project', 'acme', '--name', 'ci', '--config', folder])
  const headers = { 'x-api-key': out.trim() }
  const others = join(folder, 'others.json')
  renameSync(join(folder, 'api-keys.json'), others)
  const settings = readFileSync(join(folder, 'gateway.yaml'), 'utf8')
  writeFileSync(join(folder, 'gateway.yaml'), settings.replace('api-keys.json', 'others.json'))
  t.match((await send(`${gateway.adminUrl}/reload`, { method: 'POST' })).body, '"loaded"')
  writeFileSync(others, '{bro')
  t.same(await statusesOf(gateway, headers), [200])
  await replaceWorker(gateway)
  await replaceWorker(gateway)
  t.same(await statusesOf(gateway, headers), [200], 'no worker of before is left')

  writeFileSync(others, NO_KEYS)
  await waitUntil('no keys', async () => !(await statusesOf(gateway, headers)).includes(200))
  await waitUntil('the supervisor knows it', async () => {
    return (await send(`${gateway.adminUrl}/keys`)).json<{ total: number }>().total === 0
  })
  writeFileSync(others, '{bro')
  await replaceWorker(gateway)
  await replaceWorker(gateway)
  // After many of them the sender has to wait; 503 would say that none can be checked.
  const wrong = (await statusesOf(gateway, headers)).filter(status => status !== 429)
  t.ok(
    wrong.every(status => status === 401),
    `an empty list is known, too: ${wrong}`,
  )
})

t.test(
  'a key whose end one worker has read is at its end in all, though the file is broken since',
  async t => {
    const started = await twoWorkers(t, { apiKeys: 'api-keys.json', identify: [{ plugin: 'api-key' }] })
    if (started === undefined) return
    const { folder, gateway } = started
    const keys = async (...args: string[]) => (await sluice(['keys', ...args, '--config', folder])).out.trim()
    const headers = { 'x-api-key': await keys('add', '--project', 'acme', '--name', 'ci') }
    await waitUntil('in both workers', async () => (await statusesOf(gateway, headers)).join() === '200')

    const [stopped = 0] = await workersOf(gateway)
    process.kill(stopped, 'SIGSTOP')
    await keys('revoke', 'ci')
    await waitUntil('the supervisor knows it', async () => {
      return (await send(`${gateway.adminUrl}/keys`)).body.includes('"revoked"')
    })
    writeFileSync(join(folder, 'api-keys.json'), '{bro')
    await sleep(1500)
    process.kill(stopped, 'SIGCONT')
    await sleep(500)
    t.notOk((await statusesOf(gateway, headers)).includes(200))
    await replaceWorker(gateway)
    t.notOk((await statusesOf(gateway, headers)).includes(200), 'in one that starts later, too')
  },
)

t.test('tokens stay valid while their issuer is away, and all workers trust the same keys', async t => {
  const key = await newKey('first')
  const issuer = await startIssuer(t, [key])
  const jwt = {
    plugin: 'jwt',
    issuer: ISSUER,
    audience: AUDIENCE,
    jwks: issuer.url,
    allowPrivate: true,
    project: 'azp',
  }
  const started = await twoWorkers(t, { identify: [jwt] })
  if (started === undefined) return
  const { gateway } = started
  const bearer = async (of: typeof key) => ({ authorization: `Bearer ${await token(of)}` })
  const headers = await bearer(key)
  await waitUntil(
    'its keys in both workers',
    async () => (await statusesOf(gateway, headers)).join() === '200',
  )

  issuer.status = 500
  await replaceWorker(gateway)
  t.same(await statusesOf(gateway, headers), [200])
  t.same(await statusesOf(gateway, await bearer(key)), [200], 'a token that no worker has seen')

  issuer.status = 200
  const next = await newKey('second')
  issuer.keys = [next]
  const before = issuer.asked
  await waitUntil('one worker reads the set', async () => {
    await statusesOf(gateway, await bearer(next))
    return issuer.asked > before
  })
  await waitUntil(
    'both trust the new key',
    async () => (await statusesOf(gateway, await bearer(next))).join() === '200',
  )
  t.notOk((await statusesOf(gateway, headers)).includes(200), 'neither trusts the one that has left')
})

t.test(
  'a file of token keys stays in force while it is broken, or gone, whichever worker is replaced',
  async t => {
    const key = await newKey('first')
    const jwks = join(temporaryFolder(t, 'jwks'), 'jwks.json')
    const text = (...keys: (typeof key)[]) => JSON.stringify({ keys: keys.map(({ jwk }) => jwk) })
    writeFileSync(jwks, text(key))
    const jwt = { plugin: 'jwt', issuer: ISSUER, audience: AUDIENCE, jwks, project: 'azp' }
    const started = await twoWorkers(t, { identify: [jwt] })
    if (started === undefined) return
    const { gateway } = started
    const headersOf = async (of: typeof key) => ({ authorization: `Bearer ${await token(of)}` })
    const headers = await headersOf(key)
    await waitUntil('in both workers', async () => (await statusesOf(gateway, headers)).join() === '200')

    writeFileSync(jwks, '{bro')
    await replaceWorker(gateway)
    await replaceWorker(gateway)
    t.same(await statusesOf(gateway, headers), [200], 'broken, and no worker of before is left')

    rmSync(jwks)
    await replaceWorker(gateway)
    t.same(await statusesOf(gateway, headers), [200], 'gone')
    const refused = await send(`${gateway.adminUrl}/reload`, { method: 'POST' })
    t.match(refused.body, /jwks\.json cannot be read/, 'a reload checks it')

    const next = await newKey('second')
    writeFileSync(jwks, text(next))
    const isNew = async () => (await statusesOf(gateway, await headersOf(next))).join() === '200'
    await waitUntil('the file counts again', isNew)
    t.notOk((await statusesOf(gateway, headers)).includes(200))
  },
)

t.test('an answer of the issuer that comes late brings no key back that has left since', async t => {
  const [old, next] = [await newKey('old'), await newKey('next')]
  const issuer = await startIssuer(t, [old])
  const jwt = { plugin: 'jwt', issuer: ISSUER, audience: AUDIENCE, jwks: issuer.url, project: 'azp' }
  const started = await twoWorkers(t, { identify: [{ ...jwt, allowPrivate: true }] })
  if (started === undefined) return
  const { gateway } = started
  const headersOf = async (of: typeof old) => ({ authorization: `Bearer ${await token(of)}` })
  const statuses = async (of: typeof old) => statusesOf(gateway, await headersOf(of))
  await waitUntil('in both workers', async () => (await statuses(old)).join() === '200')
  const before = issuer.asked

  issuer.delay = 4000
  const slow = send(gateway.url, { headers: await headersOf(next) })
  await waitUntil('one worker asks', () => issuer.asked === before + 1)
  const answered = performance.now() + issuer.delay
  issuer.keys = [next]
  issuer.delay = 0
  await waitUntil('the other worker asks', async () => {
    await statuses(next)
    return issuer.asked === before + 2
  })
  await waitUntil('both trust the new key', async () => (await statuses(next)).join() === '200')
  t.notOk((await statuses(old)).includes(200))
  t.ok(performance.now() < answered, 'the first answer is still to come')

  await sleep(answered - performance.now() + 500)
  await slow
  t.notOk((await statuses(old)).includes(200))
  t.same(await statuses(next), [200])
})
