/** `plugin new`: what it writes runs, and the gateway loads it. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { sluice } from '../helpers/command.js'
import { serveProcess, writeConfig } from '../helpers/gateway-process.js'
import { send, startApp } from '../helpers/http.js'
import { inProject, root } from '../helpers/root.js'
import { waitUntil } from '../helpers/wait.js'

const gatewayYaml = (upstream: string, plugin: string, setting: string) => `version: 1
listen: { host: 127.0.0.1, port: 0 }
admin: { host: 127.0.0.1, port: 0 }
upstreams: { app: { url: "${upstream}" } }
routes: [{ path: /**, upstream: app }]
plugins: [./${plugin}]
${setting}
`

/** Runs the command in a folder where Sluice is installed. */
function begin(folder: string, ...args: string[]) {
  mkdirSync(join(folder, 'node_modules'), { recursive: true })
  symlinkSync(root, join(folder, 'node_modules', 'sluicegate'))
  const cli = inProject('dist', 'gateway', 'cli.js')
  return spawnSync(process.execPath, [cli, 'plugin', 'new', ...args], { cwd: folder, encoding: 'utf8' })
}

for (const [kind, setting] of [
  ['limit', ''],
  ['identify', 'identify: [mine, host]'],
  ['observe', 'observe: [mine]'],
] as const) {
  t.test(
    `a new ${kind} plugin passes its own test and the check of a configuration that uses it`,
    async t => {
      const policy =
        'version: 1\nkind: mine\nrules:\n  - { id: my-mine, match: [POST /**], key: [client-ip], requests: 10 }\n'
      const folder = writeConfig(
        t,
        gatewayYaml('http://127.0.0.1:9', 'mine', setting),
        kind === 'limit' ? { 'mine.yaml': policy } : {},
      )
      const { status, stdout, stderr } = begin(folder, 'mine', '--kind', kind)
      t.equal(status, 0, stderr)
      t.match(stdout, 'plugins: [./mine]')
      if (kind === 'limit') for (const line of policy.trim().split('\n')) t.match(stdout, line)
      else t.match(stdout, setting)
      t.notMatch(stdout, 'npm install')
      const tested = spawnSync(process.execPath, ['--test'], {
        cwd: join(folder, 'mine'),
        encoding: 'utf8',
        env: { PATH: process.env.PATH },
      })
      t.equal(tested.status, 0, tested.stdout)
      t.match(tested.stdout, /pass 1/)
      const checked = await sluice(['check', '--config', folder])
      t.equal(checked.code, 0, checked.err)
    },
  )
}

t.test('a new identify plugin asks its service, and routes may require what it checks', async t => {
  const upstream = await startApp(t, (req, res) => res.end(String(req.headers['x-sluice-project'])))
  const service = await startApp(t, (req, res) => {
    const sessions: Record<string, number> = { 'Bearer right': 200, 'Bearer broken': 500 }
    res.statusCode = sessions[String(req.headers.authorization)] ?? 401
    res.end('{"project":"acme"}')
  })
  const yaml = gatewayYaml(upstream, 'mine', `identify: [{ plugin: mine, url: "${service}" }]`)
  const folder = writeConfig(t, yaml.replace('upstream: app', 'upstream: app, auth: required'), {})
  begin(folder, 'mine', '--kind', 'identify')
  const { url } = await serveProcess(t, ['--config', folder])
  const get = (authorization?: string) => send(url, authorization ? { headers: { authorization } } : {})
  t.match(await get('Bearer right'), { status: 200, body: 'acme' })
  t.match(await get('Bearer wrong'), { status: 401, body: /credential-invalid/ })
  t.match(await get('Bearer broken'), { status: 503, body: /credential-unchecked/ })
  t.match(await get(), { status: 401, headers: { 'www-authenticate': 'Bearer' } })
})

t.test('invalid names and arguments are refused, and nothing is overwritten', async t => {
  for (const [args, sentence] of [
    [['plugin', 'old', 'x'], '"plugin" knows "new", not "old".'],
    [['plugin', 'new', 'My Plugin'], 'its "name" must begin with a lowercase letter'],
    [['plugin', 'new', '../x'], 'its "name" must begin with a lowercase letter'],
    [['plugin', 'new', 'a'.repeat(65)], 'up to 63 lowercase letters, digits'],
    [['plugin', 'new', 'fs'], 'Node.js has a module called "fs"'],
    [['plugin', 'new', 'node_modules'], 'npm reserves it'],
    [['plugin', 'new', 'sluicegate'], 'it is the name of the package that plugins import'],
    [['plugin', 'new', 'volumetric'], 'it is the name of a built-in limit plugin'],
    [['plugin', 'new', 'gateway'], 'a policy kind cannot be called "gateway"'],
    [['plugin', 'new', 'x', '--kind', 'limits'], 'Did you mean limit?'],
    [['plugin', 'new', 'docs'], 'docs is already there. Nothing was written.'],
  ] as const) {
    const { code, err } = await sluice(args)
    t.equal(code, 2, args.join(' '))
    t.match(err, sentence)
  }
})

const limitOf = (requests: number) => `export default {
  name: 'mine',
  kind: 'limit',
  schema: { type: 'object', properties: {} },
  create: () => ({ demand: () => ({ kind: 'meter', quota: ${requests}, ms: 60000, blockMs: 0 }) }),
}
`
const RULE = 'version: 1\nkind: mine\nrules:\n  - { id: mine-all, match: [POST /**], key: [client-ip] }\n'

t.test('--watch loads changed code, and keeps the running code while the new one is broken', async t => {
  const upstream = await startApp(t, (_req, res) => res.end())
  const folder = writeConfig(t, gatewayYaml(upstream, 'mine.js', ''), { 'mine.yaml': RULE })
  const file = join(folder, 'mine.js')
  const write = (text: string) => {
    writeFileSync(`${file}.new`, text)
    renameSync(`${file}.new`, file)
  }
  write(limitOf(1))
  const gateway = await serveProcess(t, ['--watch', '--config', folder])
  const post = async (url: string) => (await send(url, { method: 'POST' })).status
  t.same([await post(gateway.url), await post(gateway.url)], [200, 429])

  write('export default {')
  await waitUntil(
    'the problem',
    () => gateway.out().includes('The gateway keeps running with the old code.'),
    20_000,
  )
  t.match(
    gateway.out(),
    /watch: A plugin has changed, and cannot be used:\n.*gateway.yaml:6:11 plugins\[0\]: "\.\/mine\.js" could not be loaded/,
  )
  t.equal(await post(gateway.url), 429, 'the gateway still runs the old code')

  write(limitOf(3))
  const readyLines = () => [...gateway.out().matchAll(/Sluice is ready on (\S+),/g)]
  await waitUntil('the second start', () => readyLines().length === 2, 60_000)
  const url = readyLines()[1]?.[1] as string
  t.same([await post(url), await post(url), await post(url), await post(url)], [200, 200, 200, 429])

  gateway.signal('SIGTERM')
  t.same(await gateway.exited(), [0, null])
  await t.rejects(send(url), { code: 'ECONNREFUSED' }, 'the gateway has stopped')
})

t.test('--watch is refused without a configuration', async t => {
  const { err } = await sluice(['serve', '--watch', '--upstream', 'http://127.0.0.1:9'])
  t.match(err, '--upstream runs without files: leave --watch out.')
})
