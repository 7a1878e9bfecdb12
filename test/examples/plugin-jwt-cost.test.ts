/** The example plugin as its reader would use it: installed beside gateway.yaml, checked, then run. */
import { spawnSync } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { cpSync, mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { sluice } from '../helpers/command.js'
import { gatewayProcess, writeConfig } from '../helpers/gateway-process.js'
import { send, startApp } from '../helpers/http.js'
import { inProject, root } from '../helpers/root.js'

const KEY = 'a secret of thirty-two characters'

/** A copy of the example with this project installed in it, as `npm install` links it. */
function installed(folder: string): string {
  const plugin = join(folder, 'node_modules', 'plugin-jwt-cost')
  cpSync(inProject('examples', 'plugin-jwt-cost'), plugin, {
    recursive: true,
    filter: path => !path.endsWith('node_modules'),
  })
  mkdirSync(join(plugin, 'node_modules'))
  symlinkSync(root, join(plugin, 'node_modules', 'sluicegate'))
  return plugin
}

const gatewayYaml = (upstream: string) => `version: 1
listen: { host: 127.0.0.1, port: 0 }
admin: { host: 127.0.0.1, port: 0 }
upstreams: { app: { url: "${upstream}" } }
routes: [{ path: /**, upstream: app }]
plugins: [plugin-jwt-cost]
identify: [{ plugin: jwt-claim, algorithm: HS256, key: "\${JWT_KEY}" }]
unknownProject: reject
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

async function configured(t: Test): Promise<string> {
  const upstream = await startApp(t, (_req, res) => res.end('done'))
  const folder = writeConfig(t, gatewayYaml(upstream), { 'cost.yaml': COSTS })
  installed(folder)
  return folder
}

function token(claims: object): string {
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const text = `${encode({ alg: 'HS256' })}.${encode(claims)}`
  return `${text}.${createHmac('sha256', KEY).update(text).digest('base64url')}`
}

t.test(
  'a gateway with the plugin identifies projects by token and limits the cost of their requests',
  async t => {
    const folder = await configured(t)
    const gateway = await gatewayProcess(t, folder, { JWT_KEY: KEY })
    const exp = Math.floor(Date.now() / 1000) + 60
    const bearer = (claims: object) => ({ authorization: `Bearer ${token(claims)}` })
    const get = (path: string, headers: Record<string, string> = bearer({ project: 'acme', exp })) =>
      send(gateway.url + path, { headers })

    t.equal((await get('/api/users', {})).status, 404, 'a request without a token is refused')
    t.equal(
      (await get('/api/users', bearer({ project: 'acme', exp: 1 }))).status,
      404,
      'a request with an expired token is refused',
    )
    const report = await get('/api/reports/2026')
    t.equal(report.status, 200, 'a request within the budget passes')
    t.equal(report.headers.ratelimit, '"api-cost";r=5;t=60')
    t.equal(report.headers['ratelimit-policy'], '"api-cost";q=25;w=60')
    for (let left = 4; left >= 0; left--) {
      t.match((await get('/api/users')).headers.ratelimit, new RegExp(`^"api-cost";r=${left};`))
    }
    const refused = await get('/api/users')
    t.match(refused, { status: 429, headers: { 'retry-after': /^\d+$/ } })
    t.match(refused.json(), { code: 'quota-exceeded', 'violated-policies': ['api-cost'] })
    t.equal((await get('/other')).status, 200, 'a request that matches no rule is not limited')
    t.notMatch(gateway.out(), KEY)
  },
)

t.test('sluice check reports wrong settings of the plugin and never quotes the key', async t => {
  const folder = await configured(t)
  const good = await sluice(['check', '--config', folder], { env: { JWT_KEY: KEY } })
  t.match(good, { code: 0, out: /: good\./ })
  const short = await sluice(['check', '--config', folder], { env: { JWT_KEY: 'too-short' } })
  t.equal(short.code, 1)
  t.match(short.err, /identify\[0\]\.key/)
  t.notMatch(short.err, /too-short/)
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
