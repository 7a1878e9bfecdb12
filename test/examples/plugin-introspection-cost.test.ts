/** The example plugin as its reader would use it: installed beside gateway.yaml, checked, then run. */
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { sluice } from '../helpers/command.js'
import { gatewayProcess, writeConfig } from '../helpers/gateway-process.js'
import { send, startApp } from '../helpers/http.js'
import { inProject, root } from '../helpers/root.js'

const SECRET = 'the secret of the gateway'

/** A copy of the example with this project installed in it, as `npm install` links it. */
function installed(folder: string): string {
  const plugin = join(folder, 'node_modules', 'plugin-introspection-cost')
  cpSync(inProject('examples', 'plugin-introspection-cost'), plugin, {
    recursive: true,
    filter: path => !path.endsWith('node_modules'),
  })
  mkdirSync(join(plugin, 'node_modules'))
  symlinkSync(root, join(plugin, 'node_modules', 'sluicegate'))
  return plugin
}

const gatewayYaml = (upstream: string, server: string) => `version: 1
listen: { host: 127.0.0.1, port: 0 }
admin: { host: 127.0.0.1, port: 0 }
upstreams: { app: { url: "${upstream}" } }
routes:
  - { path: /**, upstream: app }
  - { path: /api/**, upstream: app, auth: required, scopes: [read] }
plugins: [plugin-introspection-cost]
identify: [{ plugin: introspection, url: "${server}", client: gateway, secret: "\${SECRET}", strip: true }]
`
const COSTS = `version: 1
kind: request-cost
rules:
  - id: api-cost
    match: [/api/**]
    key: [project]
    budget: { units: 25, per: 60s }
    weights: [{ path: /api/reports, cost: 20 }]
`

/** What the authorization server answers, by token. */
const TOKENS: Readonly<Record<string, object>> = {
  good: { active: true, client_id: 'acme', scope: 'read write' },
  writer: { active: true, client_id: 'acme', scope: 'write' },
}

async function configured(t: Test) {
  const upstream = await startApp(t, (req, res) =>
    res.end(`${req.headers['x-sluice-project']} ${req.headers.authorization}`),
  )
  const server = { asked: 0, hangs: false }
  const url = await startApp(t, async (req, res) => {
    server.asked += 1
    if (server.hangs) return
    const token = new URLSearchParams(await text(req)).get('token') ?? ''
    res.statusCode =
      req.headers.authorization === `Basic ${btoa(`gateway:${encodeURIComponent(SECRET)}`)}` ? 200 : 401
    res.end(JSON.stringify(TOKENS[token] ?? { active: false }))
  })
  const folder = writeConfig(t, gatewayYaml(upstream, url), { 'cost.yaml': COSTS })
  installed(folder)
  return { folder, server }
}

t.test('a gateway with the plugin asks whose a token is, and limits the cost of their requests', async t => {
  const { folder, server } = await configured(t)
  const gateway = await gatewayProcess(t, folder, { SECRET })
  const get = (path: string, token?: string) =>
    send(gateway.url + path, token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } })

  t.match(await get('/api/users'), { status: 401, headers: { 'www-authenticate': 'Bearer' } })
  t.match(await get('/api/users', 'made-up'), { status: 401, body: /credential-invalid/ })
  t.match(await get('/api/users', 'writer'), { status: 403, body: /insufficient-scope/ })
  t.match(await get('/other', 'made-up'), { status: 200, body: /^host:/ }, 'optional elsewhere')
  const report = await get('/api/reports/2026', 'good')
  t.match(report, { status: 200, body: 'acme undefined' }, 'the upstream does not get the token')
  t.equal(report.headers.ratelimit, '"api-cost";r=5;t=60')
  t.equal(report.headers['ratelimit-policy'], '"api-cost";q=25;w=60')
  for (let left = 4; left >= 0; left--) {
    t.match((await get('/api/users', 'good')).headers.ratelimit, new RegExp(`^"api-cost";r=${left};`))
  }
  const refused = await get('/api/users', 'good')
  t.match(refused, { status: 429, headers: { 'retry-after': /^\d+$/ } })
  t.match(refused.json(), { code: 'quota-exceeded', 'violated-policies': ['api-cost'] })
  t.equal((await get('/other', 'good')).status, 200, 'a request that matches no rule is not limited')
  t.equal(server.asked, 3, 'once for each token')

  server.hangs = true
  t.match(await get('/api/users', 'new'), { status: 503, body: /credential-unchecked/ })
  t.match(await get('/other', 'new'), { status: 200, body: /^host:/ })
  t.notMatch(gateway.out(), SECRET)
})

t.test('sluice check reports wrong settings of the plugin and never quotes the secret', async t => {
  const { folder } = await configured(t)
  const good = await sluice(['check', '--config', folder], { env: { SECRET } })
  t.match(good, { code: 0, out: /: good\./ })
  const long = await sluice(['check', '--config', folder], { env: { SECRET: 'x'.repeat(300) } })
  t.equal(long.code, 1)
  t.match(long.err, /identify\[0\]\.secret/)
  t.notMatch(long.err, /xxx/)
})

t.test("the plugin's own tests pass", async t => {
  const plugin = installed(t.testdir())
  const { status, stdout } = spawnSync(process.execPath, ['--test', 'test/plugin.test.js'], {
    cwd: plugin,
    // With the runner's variables it would report to the runner of this file.
    env: { PATH: process.env.PATH ?? '' },
    encoding: 'utf8',
  })
  t.equal(status, 0, stdout.slice(-2000))
})
