/** `sluice usage`. */
import t, { type Test } from 'tap'
import { sluice } from '../helpers/command.js'
import { testGateway } from '../helpers/gateway.js'
import { matchesGolden } from '../helpers/golden.js'
import { send, startApp } from '../helpers/http.js'

const KEY = 'canary-0123456789abcdef'
const POLICIES = {
  'limits.yaml': `version: 1
kind: project-limits
buckets: { all: ["*"], tight: { match: [/tight], cost: 5 } }
limits: [{ for: [{}], quotas: { all: { sustained: 3000 }, tight: { sustained: 10 } } }]
`,
}

async function start(t: Test, settings = 'usage: {}') {
  const upstream = await startApp(t, (_req, res) => res.end('here'))
  const gateway = await testGateway(t, { upstream, policies: POLICIES, adminKey: KEY, settings })
  const ask = (path: string) => send(gateway.url + path, { headers: { host: 'acme.localhost' } })
  for (let i = 0; i < 4; i += 1) await ask('/tight')
  for (let i = 0; i < 9; i += 1) await ask('/')
  const run = (...args: string[]) =>
    sluice(['usage', '--live', gateway.adminUrl, ...args], { env: { ADMIN_KEY: KEY }, columns: 120 })
  return { run, gateway }
}

t.test('projects and buckets are added up, the busiest first', async t => {
  const { run } = await start(t)
  const { code, out, err } = await run()
  t.same({ code, err }, { code: 0, err: '' })
  t.equal(
    out,
    `project  plan    environment  bucket  requests  admitted  refused  cost
acme     growth  production   all            9         9        0     9
acme     growth  production   tight          4         2        2    10
`,
  )
})

t.test('machines read a line for each hour, project and bucket', async t => {
  const { run } = await start(t)
  const anHour = (text: string) => text.replaceAll(/\d{4}-\d\d-\d\dT\d\d:00:00Z/g, '2026-11-27T06:00:00Z')
  matchesGolden(t, anHour((await run('--json')).out), 'usage.ndjson')
  t.equal(
    anHour((await run('--csv')).out),
    `hour,project,plan,environment,bucket,requests,admitted,refused,cost
2026-11-27T06:00:00Z,acme,growth,production,all,9,9,0,9
2026-11-27T06:00:00Z,acme,growth,production,tight,4,2,2,10
`,
  )
  t.match(await run('--project', 'other'), { code: 0, out: '', err: 'Nothing was used in this time.\n' })
})

t.test('what cannot be answered is said', async t => {
  const { run, gateway } = await start(t, '')
  t.match(await run(), { code: 2, err: /write "usage: {}" in gateway.yaml/ })
  t.match(await run('--json', '--csv'), { code: 2, err: /Either --json or --csv/ })
  t.match(await sluice(['usage', '--live', gateway.adminUrl]), { code: 1, err: /set ADMIN_KEY/ })
  t.match(await sluice(['usage', '--live', 'http://127.0.0.1:9']), { code: 1, err: /Nothing answers/ })
})
