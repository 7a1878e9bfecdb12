/** Where the secret for counter keys comes from, and what is stored on disk for it. */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { Agent } from 'node:http'
import { join } from 'node:path'
import t from 'tap'
import { hashSecret } from '../../../gateway/run/secret.js'
import { gatewayProcess, writeConfig } from '../../helpers/gateway-process.js'
import { send, startApp } from '../../helpers/http.js'
import { redisUrl } from '../../helpers/redis.js'
import { inProject } from '../../helpers/root.js'

const gateway = (upstream: string) => `version: 1
listen: { host: 127.0.0.1, port: 0 }
admin: { host: 127.0.0.1, port: 0 }
upstreams: { app: ${upstream} }
routes: [{ path: /**, upstream: app }]
`

t.test('only a gateway with embedded services or a DATA_DIR creates a data folder', async t => {
  for (const [upstream, makes] of [
    ['{ url: "http://127.0.0.1:9" }', false],
    ['{ embedded: identity }', true],
  ] as const) {
    const folder = writeConfig(t, gateway(upstream), {})
    await gatewayProcess(t, folder, { DATA_DIR: '' }, folder)
    t.equal(existsSync(join(folder, 'data')), makes, upstream)
  }
  const named = writeConfig(t, gateway('{ url: "http://127.0.0.1:9" }'), {})
  await gatewayProcess(t, named, { DATA_DIR: 'kept' }, named)
  t.ok(existsSync(join(named, 'kept', 'gateway.key')), 'DATA_DIR gets a key')
})

t.test('workers without a data folder share one secret for counter keys', async t => {
  const redis = await redisUrl(t)
  if (redis === undefined) return
  const app = await startApp(t, (req, res) => req.resume() && res.end('done'))
  const text = gateway(`{ url: "${app}" }`).replace('port: 0 }', 'port: 0, workers: 2 }')
  const folder = writeConfig(t, `${text}redis: ${redis}\nstore: { deadline: 5s, onError: closed }\n`, {
    'logins.yaml': `version: 1
kind: volumetric
rules: [{ id: logins, match: [POST /login], key: [email-or-flow], missing: skip, quota: { requests: 3, per: 1h }, mode: enforce }]
`,
  })
  const { url } = await gatewayProcess(t, folder, { DATA_DIR: '' }, folder)
  const login = () =>
    send(`${url}/login?email=ann@example.org`, {
      method: 'POST',
      agent: new Agent(),
      headers: { host: 'acme.localhost' },
    })
  const statuses: number[] = []
  for (let i = 0; i < 8; i += 1) statuses.push((await login()).status)
  t.same(statuses, [200, 200, 200, 429, 429, 429, 429, 429])
  t.notOk(existsSync(join(folder, 'data')))
})

t.test('the secret is ENCRYPTION_KEY, else the key in the data folder, else a random one', async t => {
  const folder = t.testdir()
  const kept = { DATA_DIR: join(folder, 'kept') }
  t.same(hashSecret(kept, false), hashSecret(kept, true))
  const [first, second] = [1, 2].map(n => Buffer.alloc(32, n).toString('base64'))
  t.same(hashSecret({ ENCRYPTION_KEY: first }, false), hashSecret({ ENCRYPTION_KEY: first, ...kept }, true))
  const several = hashSecret({ ENCRYPTION_KEY: `${first}, ${second}` }, false)
  t.same(several, hashSecret({ ENCRYPTION_KEY: first }, false), 'the first of several keys is used')
  const file = join(folder, 'key')
  writeFileSync(file, `${first}\n`)
  t.same(hashSecret({ ENCRYPTION_KEY_FILE: file }, false), several)

  const before = process.cwd()
  process.chdir(folder)
  t.teardown(() => process.chdir(before))
  t.notSame(hashSecret({}, false), hashSecret({}, false))
  t.notOk(existsSync('data'))
  mkdirSync('data')
  writeFileSync(join('data', 'gateway.key'), Buffer.alloc(32, 7).toString('base64'))
  t.same(hashSecret({}, false), Buffer.alloc(32, 7), 'the key an earlier version stored is still used')
})

t.test('an invalid key is refused with a sentence', t => {
  const folder = t.testdir({ 'gateway.key': '', key: 'abc', empty: '' })
  const table: [NodeJS.ProcessEnv, RegExp][] = [
    [{ DATA_DIR: folder }, /gateway\.key is damaged: it must hold 32 bytes in base64/],
    [{ ENCRYPTION_KEY: 'k' }, /ENCRYPTION_KEY must be 32 bytes in base64/],
    [{ ENCRYPTION_KEY: `${Buffer.alloc(32, 1).toString('base64')},k` }, /ENCRYPTION_KEY must be 32 bytes/],
    [{ ENCRYPTION_KEY_FILE: join(folder, 'key') }, /ENCRYPTION_KEY must be 32 bytes/],
    [{ ENCRYPTION_KEY_FILE: join(folder, 'empty') }, /named by ENCRYPTION_KEY_FILE is empty/],
    [{ ENCRYPTION_KEY_FILE: join(folder, 'none') }, /ENCRYPTION_KEY_FILE cannot be read \(ENOENT\)/],
    [{ ENCRYPTION_KEY: 'k', ENCRYPTION_KEY_FILE: join(folder, 'key') }, /Both ENCRYPTION_KEY and/],
  ]
  for (const [env, message] of table) {
    t.throws(() => hashSecret({ DATA_DIR: folder, ...env }, true), { message }, JSON.stringify(env))
  }
  t.end()
})

t.test('a data folder that cannot be made ends the start with a sentence', t => {
  const cli = inProject('dist', 'gateway', 'cli.js')
  const folder = writeConfig(t, gateway('{ embedded: identity }'), {})
  const file = join(folder, 'gateway.yaml')
  const ENCRYPTION_KEY = Buffer.alloc(32, 1).toString('base64')
  for (const [env, sentence] of [
    [{ DATA_DIR: '/proc/sluice/data' }, /^DATA_DIR \/proc\/sluice\/data cannot be used: ENOENT.*\.$/m],
    [
      { DATA_DIR: '/proc/sluice/data', ENCRYPTION_KEY },
      /DATA_DIR \/proc\/sluice\/data cannot be used: ENOENT/,
    ],
    [{ DATA_DIR: file }, /: DATA_DIR .*gateway\.yaml cannot be used: ENOTDIR.*\.$/m],
  ] as const) {
    const started = spawnSync(process.execPath, [cli, 'serve', '--config', folder], {
      env: { PATH: process.env.PATH, ...env },
      encoding: 'utf8',
      timeout: 60_000,
    })
    t.equal(started.status, 1, env.DATA_DIR)
    t.match(started.stderr + started.stdout, sentence)
    t.notMatch(started.stderr, /\n {4}at /, 'no stack')
  }
  t.end()
})
