/** Variables that no file names are checked like those that gateway.yaml names, all at once. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { sluice } from '../../helpers/command.js'
import { writeConfig } from '../../helpers/gateway-process.js'
import { inProject } from '../../helpers/root.js'

const EMBEDDED = `version: 1
listen: { port: 0 }
admin: { port: 0 }
upstreams: { d: { embedded: directory }, i: { embedded: identity } }
routes: [{ path: /**, upstream: d }, { path: /i/**, upstream: i }]
`
const ALONE = EMBEDDED.replace(/upstreams: .*/, 'upstreams: { d: { url: "http://127.0.0.1:9" } }').replace(
  /, \{ path: \/i.*\}/,
  '',
)

t.test('check refuses variables that serve would refuse', async t => {
  const folder = writeConfig(t, EMBEDDED, {})
  const file = join(folder, 'a-file')
  writeFileSync(file, 'text')
  const faults = async (env: NodeJS.ProcessEnv) => {
    const { code, err } = await sluice(['check', '--config', folder], { env })
    t.equal(code, err === '' ? 0 : 1)
    return err.replaceAll(`${folder}/`, '')
  }
  t.equal(
    await faults({ DATA_DIR: join(folder, 'new', 'data'), LOG_LEVEL: 'warn', BASE_URL: 'https://a.example' }),
    '',
  )
  const wrong: [NodeJS.ProcessEnv, string][] = [
    [{ LOG_LEVEL: 'loud' }, 'gateway.yaml:1:1: LOG_LEVEL is "loud"; it must be one of'],
    [
      { LOG_LEVEL_FILE: '/nowhere' },
      'gateway.yaml:1:1: The file named by LOG_LEVEL_FILE cannot be read (ENOENT).',
    ],
    [{ NODE_OPTIONS: '--insecure-http-parser' }, 'gateway.yaml:1:1: Sluice does not run with'],
    [{ DATA_DIR: file }, 'gateway.yaml:1:1: DATA_DIR a-file cannot be used: ENOTDIR'],
    [{ DATA_DIR: join(file, 'a', 'b') }, 'gateway.yaml:1:1: DATA_DIR a-file/a/b cannot be used: ENOTDIR'],
    [{ API_KEYS: 'short' }, 'upstreams.d.embedded: The directory service cannot start: API_KEYS must be'],
    [{ MONGODB_URL: 'x' }, 'upstreams.d.embedded: The directory service cannot start: MONGODB_URL must'],
    [
      { IDENTITY_SCHEMA: '/nowhere' },
      'upstreams.i.embedded: The identity service cannot start: identity schema',
    ],
    [
      { IDENTITY_LANGUAGES: '/nowhere' },
      'upstreams.i.embedded: The identity service cannot start: the folder',
    ],
  ]
  for (const [env, sentence] of wrong) t.match(await faults(env), sentence)
  const key = await faults({ ENCRYPTION_KEY: 'zz' })
  t.match(key, 'gateway.yaml:1:1: ENCRYPTION_KEY must be 32 bytes')
  t.match(key, '1 problem in', 'which both services would say, too')

  writeFileSync(join(folder, 'gateway.yaml'), ALONE)
  t.equal(await faults({ API_KEYS: 'short', MONGODB_URL: 'x' }), '', 'variables of services that do not run')
})

t.test('serve names the same problems, all of them', async t => {
  const folder = writeConfig(t, EMBEDDED, {})
  const env = { DATA_DIR: join(folder, 'gateway.yaml'), API_KEYS: 'short', IDENTITY_ADMIN_KEYS: 'x' }
  const { err } = await sluice(['check', '--config', folder], { env })
  t.match(err, '3 problems in')
  const child = spawn(
    process.execPath,
    [inProject('dist', 'gateway', 'cli.js'), 'serve', '--config', folder],
    {
      env,
    },
  )
  t.teardown(() => child.kill('SIGKILL'))
  let told = ''
  child.stderr.on('data', text => {
    told += text
  })
  const [code] = await once(child, 'close')
  t.equal(code, 1)
  t.equal(told, err)
})
