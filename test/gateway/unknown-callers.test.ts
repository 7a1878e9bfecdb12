/** Whom requests of unknown projects count for, and what everybody who tells about them calls these callers. */
import t, { type Test } from 'tap'
import { testGateway } from '../helpers/gateway.js'
import { send, startApp } from '../helpers/http.js'
import { stores } from '../helpers/stores.js'

const POLICIES = {
  'limits.yaml': `version: 1
kind: project-limits
buckets: { all: ["*"] }
limits: [{ for: [{}], quotas: { all: { sustained: 5 } } }]
`,
}
const NO_PROJECTS = 'version: 1\nprojects: []\n'

/** Documentation addresses (RFC 3849 and 5737), random because a shared Redis may know them from another run. */
const v6 = () => `2001:db8:${Math.floor(Math.random() * 65_536).toString(16)}:1::`
const v4 = () => `203.0.113.${1 + Math.floor(Math.random() * 250)}`

interface Options {
  readonly settings?: string
  readonly policies?: Readonly<Record<string, string>>
}

async function start(t: Test, { settings = '', policies = POLICIES }: Options = {}) {
  const upstream = await startApp(t, (req, res) => res.end(String(req.headers['x-sluice-project'])))
  const gateway = await testGateway(t, {
    upstream,
    projects: NO_PROJECTS,
    policies,
    settings: `trustedProxies: [127.0.0.1]\n${settings}`,
  })
  const from = (client: string, host: string) =>
    send(`${gateway.url}/x`, { headers: { host, 'x-forwarded-for': client } })
  const admin = (path: string, method = 'GET') => send(gateway.adminUrl + path, { method })
  /** Statuses of as many requests of one client, each to another host. */
  const hosts = async (client: string, count: number) => {
    const asked = Array.from({ length: count }, (_, i) => from(client, `made-up-${i}.example`))
    return (await Promise.all(asked)).map(({ status }) => status)
  }
  return { ...gateway, from, hosts, admin }
}

const admitted = (statuses: readonly number[]) => statuses.filter(status => status === 200).length

for (const store of stores) {
  t.test(`sixty made-up hosts of one address are sixty requests of one client, ${store.name}`, async t => {
    const settings = await store.settings(t)
    if (settings === undefined) return
    const { from, hosts } = await start(t, { settings })
    const network = v6()
    t.equal(admitted(await hosts(`${network}1`, 60)), 5, 'one client has one quota, whatever Host it sends')
    t.equal((await from(`${network}2`, 'other.example')).status, 429, 'an IPv6 client is its /64')
    t.equal((await from(v6(), 'made-up-1.example')).status, 200, 'another client has a quota of its own')
  })
}

t.test('what a plan or a map without countBy says is counted by client too', async t => {
  for (const setting of ['growth', '{ plan: growth, environment: staging }']) {
    const { hosts } = await start(t, { settings: `unknownProject: ${setting}` })
    t.equal(admitted(await hosts(v4(), 20)), 5, setting)
  }
})

t.test(
  'an upstream knows an unknown caller by its Host, whatever address it has and however it is counted',
  async t => {
    for (const countBy of ['client', 'host', 'together']) {
      const settings = `unknownProject: { plan: growth, environment: production, countBy: ${countBy} }`
      const { from } = await start(t, { settings })
      for (const client of [v4(), v6()]) {
        t.equal((await from(client, 'Someone.example')).body, 'host:someone.example', countBy)
      }
    }
  },
)

t.test('countBy: host counts a hundred hosts apart, countBy: together all callers at once', async t => {
  const setting = (by: string) => `unknownProject: { plan: growth, environment: production, countBy: ${by} }`
  const byHost = await start(t, { settings: setting('host') })
  t.equal(
    admitted(await byHost.hosts(v4(), 150)),
    105,
    'those after the first hundred share one quota of five',
  )
  t.equal((await byHost.from(v4(), 'made-up-1.example')).body, 'host:made-up-1.example')
  const together = await start(t, { settings: setting('together') })
  const statuses = await Promise.all(
    Array.from({ length: 20 }, (_, i) => together.from(`203.0.113.${i}`, `h${i}.example`)),
  )
  t.equal(admitted(statuses.map(({ status }) => status)), 5)
  t.match((await together.admin('/projects/unknown:all/counters')).json(), {
    counters: [{ counters: [{ used: 5 }] }],
  })
})

t.test('a slot that counts by project and path is the unknown client’s own', async t => {
  let release = (): void => {}
  const held = new Promise<void>(resolve => {
    release = resolve
  })
  let arrived = 0
  const upstream = await startApp(t, async (_req, res) => {
    arrived += 1
    await held
    res.end()
  })
  const { url } = await testGateway(t, {
    upstream,
    projects: NO_PROJECTS,
    settings: 'trustedProxies: [127.0.0.1]',
    policies: {
      'slots.yaml':
        'version: 1\nkind: in-flight\nrules: [{ id: write, match: [/items/**], key: [project, full-path], mode: enforce }]\n',
    },
  })
  const write = (client: string, host: string) =>
    send(`${url}/items/1`, { method: 'POST', headers: { host, 'x-forwarded-for': client } })
  const first = write('203.0.113.1', 'a.example')
  const other = write('203.0.113.2', 'a.example')
  while (arrived < 2) await new Promise(resolve => setImmediate(resolve))
  t.equal((await write('203.0.113.1', 'b.example')).status, 429, 'another Host is the same client')
  release()
  t.same([(await first).status, (await other).status], [200, 200])
})

t.test('operators name an unknown client by its address; logs and lists show no address', async t => {
  const settings = 'log: { decisions: all, access: all }'
  const { from, admin, lines } = await start(t, { settings })
  const [client, network] = ['203.0.113.77', '203.0.113.0/24']
  await admin('/live')
  for (let i = 0; i < 6; i += 1) await from(client, 'nobody.example')
  const counters = await admin(`/projects/client:${client}/counters`)
  t.match(counters.json(), { project: `client:${client}`, counters: [{ counters: [{ used: 5, left: 0 }] }] })
  t.equal((await from(client, 'x.example')).status, 429)

  const { projects, closest } = (await admin('/live')).json<{
    projects: { id: string }[]
    closest: { project: string }[]
  }>()
  const shown = projects[0]?.id ?? ''
  t.match(shown, /^client:203\.0\.113\.0\/24~[\w-]{16}$/)
  t.equal(closest[0]?.project, shown)
  const history = await admin(`/live/history?project=${encodeURIComponent(shown)}`)
  t.equal(history.status, 200, 'the name of the list finds the project')

  const reset = await admin(`/counters/all?project=client:${client}&why=test`, 'DELETE')
  t.equal(reset.status, 200)
  t.equal((await from(client, 'nobody.example')).status, 200, 'its quota is free again')
  const overrides = await admin('/overrides')
  t.match(overrides.body, network)

  const decisions = lines.filter(line => line.msg === 'decision')
  t.same(new Set(decisions.map(({ project }) => project)), new Set([shown]))
  t.equal(decisions[0]?.host, 'nobody.example', 'entries and conditions name such callers by host')
  const requests = lines.filter(line => line.msg === 'request')
  t.same(new Set(requests.map(({ project }) => project)), new Set([shown]))
  t.notMatch(JSON.stringify(lines), client)
  t.notMatch(overrides.body, client)
})

t.test('an unknown caller is named as it is counted', async t => {
  const byClient = await start(t)
  for (const id of ['host:example.com', 'client:', 'client:203.0.113.0/24~abc', 'unknown:all']) {
    const told = await byClient.admin(`/projects/${encodeURIComponent(id)}/counters`)
    t.match(
      [told.status, told.json()],
      [404, { detail: /write client:ADDRESS, such as client:203\.0\.113\.7/ }],
    )
  }
  const v6 = await byClient.admin(`/projects/${encodeURIComponent('client:2001:db8::1:2:3:4')}/counters`)
  t.equal(v6.status, 200)
  const byHost = await start(t, {
    settings: 'unknownProject: { plan: growth, environment: production, countBy: host }',
  })
  const wrong = await byHost.admin('/projects/host:Bad.example/counters')
  t.match([wrong.status, wrong.json()], [404, { detail: /in lowercase/ }])
  const together = await start(t, {
    settings: 'unknownProject: { plan: growth, environment: production, countBy: together }',
  })
  const told = await together.admin('/projects/client:203.0.113.7/counters')
  t.match([told.status, told.json()], [404, { detail: /write unknown:all/ }])
})

t.test('an entry or a condition names unknown callers by host, whatever they are counted by', async t => {
  const { from } = await start(t, {
    policies: {
      ...POLICIES,
      'access.yaml':
        'version: 1\nkind: access\nrules: [{ id: bad, projects: ["host:bad.example"], action: deny, mode: enforce }]\n',
    },
  })
  const client = v4()
  t.equal((await from(client, 'bad.example')).status, 403)
  t.equal((await from(client, 'good.example')).status, 200)
})
