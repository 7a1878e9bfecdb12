/** Plans and environments defined by the operator, from the files to responses, metrics and commands. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { sluice } from '../helpers/command.js'
import { decisionRecord } from '../helpers/decision-lines.js'
import { testGateway } from '../helpers/gateway.js'
import { send, startApp } from '../helpers/http.js'

const PROJECTS = `version: 1
plans: [free, team, business]
environments: [live, test]
projects:
  - { id: acme, plan: team, environment: live, hosts: [acme.localhost] }
  - { id: globex, plan: free, environment: test, hosts: [globex.localhost] }
`
const LIMITS = `version: 1
kind: project-limits
buckets: { catch-all: ["*"] }
limits:
  - { for: [{ plans: [team, business] }], quotas: { catch-all: { burst: 50, sustained: 300 } } }
  - { for: [{ plans: [free] }], quotas: { catch-all: { burst: 2, sustained: 60 } } }
`
const SETTINGS = 'unknownProject: { plan: free, environment: live }'

async function started(t: Parameters<typeof testGateway>[0]) {
  const upstream = await startApp(t, (req, res) => res.end(JSON.stringify(req.headers)))
  const policies = { 'limits.yaml': LIMITS }
  const gateway = await testGateway(t, { upstream, projects: PROJECTS, settings: SETTINGS, policies })
  const ask = (host: string) => send(`${gateway.url}/x`, { headers: { host } })
  const admin = (path: string) => send(gateway.adminUrl + path)
  return { ...gateway, ask, admin }
}

t.test(
  'requests are limited by the operator’s own plans, which upstream and metrics see by name',
  async t => {
    const { ask, admin } = await started(t)
    const told = (await ask('acme.localhost')).json<Record<string, string>>()
    t.match(told, { 'x-sluice-plan': 'team', 'x-sluice-environment': 'live' })
    t.match((await ask('nobody.localhost')).json(), {
      'x-sluice-plan': 'free',
      'x-sluice-environment': 'live',
    })
    const statuses: number[] = []
    for (let i = 0; i < 4; i++) statuses.push((await ask('globex.localhost')).status)
    t.ok(statuses.includes(429), 'the free plan has two requests a second')
    const { body } = await admin('/metrics')
    t.match(body, /plan="team",environment="live"/)
    t.match((await admin('/policy?project=acme')).json(), { plan: 'team', buckets: [{ burst: 50 }] })
    t.match((await admin('/policy?plan=business&environment=test')).json(), { buckets: [{ burst: 50 }] })
    t.equal((await admin('/policy?plan=growth&environment=live')).status, 404)
    t.equal((await admin('/projects/client:127.0.0.1/counters')).status, 200)
  },
)

t.test('the commands show the declared plans and no others', async t => {
  const { folder } = await started(t)
  const { out } = await sluice(['check', '--config', folder, '--table'])
  t.match(out, 'all environments of team and business\n')
  t.match(out, 'all environments of free\n')
  t.notMatch(out, /growth|production/)
  t.match(await sluice(['explain', 'GET', '/x', '--host', 'acme.localhost', '--config', folder]), {
    out: /acme, team in live/,
  })
  t.match(await sluice(['explain', 'GET', '/x', '--host', 'new.localhost', '--config', folder]), {
    out: /client:127\.0\.0\.1, free in live/,
  })
})

t.test('a log with other plans is replayed under the declared plans', async t => {
  const { folder } = await started(t)
  const log = join(t.testdir(), 'decisions.log')
  const record = (i: number, plan: string) =>
    decisionRecord({
      ts: new Date(Date.UTC(2026, 0, 5) + i).toISOString(),
      id: `r${i}`,
      project: 'gone',
      plan,
    })
  const lines = Array.from({ length: 6 }, (_, i) => JSON.stringify(record(i, i < 3 ? 'growth' : 'free')))
  writeFileSync(log, `${lines.join('\n')}\n`)
  const { out } = await sluice(['replay', log, '--policies', folder, '--json'])
  t.match(JSON.parse(out), { candidate: { refused: 4 } }, 'two a second pass, as for any unknown project')
})

t.test('diff shows added plans', async t => {
  const { folder } = await started(t)
  const { folder: other } = await started(t)
  writeFileSync(join(other, 'projects.yaml'), PROJECTS.replace('business]', 'business, partner]'))
  writeFileSync(
    join(other, 'policies', 'limits.yaml'),
    LIMITS.replace('[team, business]', '[team, business, partner]'),
  )
  const { out } = await sluice(['diff', folder, other])
  t.match(out, 'Limits for all environments of partner\n  + catch-all: 50 per second')
  t.match(out, 'plans + partner')
  t.notMatch(out, 'fall into another bucket', 'a new plan moves no request to another bucket')
})
