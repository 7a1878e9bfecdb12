/** What several workers require, how their start fails, and what share of the limits each has. */
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { Agent, type ServerResponse } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { loadOrFail } from '../../../gateway/configured/load.js'
import { openOverrides } from '../../../gateway/overrides/open.js'
import { openCore } from '../../../gateway/run/core.js'
import { openUsageStore } from '../../../gateway/usage/store.js'
import { writeConfig } from '../../helpers/gateway-process.js'
import { send, startApp } from '../../helpers/http.js'
import { inProject } from '../../helpers/root.js'
import { waitUntil } from '../../helpers/wait.js'

const LIMITS = `version: 1
kind: project-limits
buckets: { counted: [/counted], other: ["*"] }
limits:
  - for: [{ environments: [development, staging, production] }]
    quotas: { counted: { burst: 1000, sustained: 40 }, other: { burst: 10000, sustained: 100000 } }
`

t.test(
  'while Redis is away one of four workers admits a quarter of the quota and of the connections',
  async t => {
    const held: ServerResponse[] = []
    const upstream = await startApp(t, (req, res) => (req.url === '/held' ? held.push(res) : res.end()))
    const folder = writeConfig(
      t,
      `version: 1
listen: { host: 127.0.0.1, port: 0, workers: 4, maxConnections: 8 }
redis: redis://127.0.0.1:9
upstreams: { app: { url: "${upstream}" } }
routes: [{ path: /**, upstream: app }]
`,
      { 'limits.yaml': LIMITS },
    )
    const log = { debug() {}, info() {}, warn() {}, error() {} }
    const first = await loadOrFail(folder, {}, log)
    const embedded = async () => ({ url: '', secret: '' })
    const openRuntime = async () => (await openOverrides('', log)).runtime
    const secret = Buffer.from('test')
    const core = await openCore({
      ...{ first, certificate: undefined, workers: 4, embedded, secret, openRuntime, log },
      countWrongCredential: async () => undefined,
      usageStore: openUsageStore('', log),
      notifications: { claim: async () => false, shorten() {}, async send() {} },
    })
    const url = await core.listen()
    t.teardown(() => core.drain())
    const ask = (path: string) =>
      send(url + path, { agent: new Agent(), headers: { host: 'acme.localhost' } })
    let passed = 0
    for (let i = 0; i < 20; i += 1) if ((await ask('/counted')).status === 200) passed += 1
    t.equal(passed, 10)

    const under = [ask('/held'), ask('/held')]
    await waitUntil('both to be under way', () => held.length === 2)
    t.equal((await ask('/other')).status, 503)
    for (const res of held) res.end()
    for (const { status } of await Promise.all(under)) t.equal(status, 200)
  },
)

t.test('a start fails', async t => {
  const run = async (folder: string, more: Readonly<Record<string, string>> = {}) => {
    const command = [inProject('dist', 'gateway', 'cli.js'), 'serve', '--config', folder]
    const env = { PATH: process.env.PATH ?? '', DATA_DIR: folder, LOG_LEVEL: 'error', ...more }
    return promisify(execFile)(process.execPath, command, { env, timeout: 60_000 }).catch(
      (error: { code: number; stdout: string; stderr: string }) => error,
    )
  }
  const gateway = (listen: string, redis: string) => `version: 1
listen: { host: 127.0.0.1, ${listen} }
admin: { host: 127.0.0.1, port: 0 }
redis: "${redis}"
upstreams: { app: { url: "http://127.0.0.1:9" } }
routes: [{ path: /**, upstream: app }]
`

  t.test('without Redis, with one sentence that says where and what to do', async t => {
    const ended = await run(writeConfig(t, gateway('port: 0, workers: 2', ''), {}))
    t.match(ended, { code: 1, stdout: '' })
    t.match(ended.stderr, /gateway\.yaml:2:46 listen\.workers: Several workers need Redis/)
  })

  t.test('when workers end as soon as they start, instead of restarting them forever', async t => {
    const folder = writeConfig(t, gateway('port: 0, workers: 2', 'redis://127.0.0.1:9'), {})
    const crash = join(folder, 'crash.mjs')
    writeFileSync(crash, "import cluster from 'node:cluster'\nif (cluster.isWorker) process.exit(7)\n")
    const ended = await run(folder, { NODE_OPTIONS: `--import=${pathToFileURL(crash)}` })
    t.match(ended, { code: 1 })
    t.match(ended.stderr, /^Workers end as soon as they are started \(exit code 7\)/)
  })

  t.test('on a taken port, with the error of the workers', async t => {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.teardown(() => server.close())
    const { port } = server.address() as AddressInfo
    const ended = await run(writeConfig(t, gateway(`port: ${port}, workers: 2`, 'redis://127.0.0.1:9'), {}))
    t.match(ended, { code: 1 })
    t.match(
      ended.stderr,
      /^Port \d+ on 127\.0\.0\.1 is in use.*\. Choose another \(listen\.port in gateway\.yaml, or PORT where it says so\)\.\n$/m,
    )
  })
})
