/** Kind `access`, as clients experience it: denied, exempt, and only reported. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { mock } from 'node:test'
import t, { type Test } from 'tap'
import WebSocket from 'ws'
import { testGateway } from '../helpers/gateway.js'
import { type Sent, send, startApp } from '../helpers/http.js'
import { oneBucket } from '../helpers/policies.js'
import { waitUntil } from '../helpers/wait.js'

const access = (rules: string) => `version: 1\nkind: access\nrules:\n${rules}`
const FLOOD = `version: 1
kind: volumetric
rules: [{ id: flood, match: [/**], key: [client-ip], quota: { requests: 1, per: 60s } }]
`

async function start(t: Test, rules: string, settings = '') {
  const asked: string[] = []
  const upstream = await startApp(t, (req, res) => {
    asked.push(req.url ?? '')
    res.setHeader('RateLimit', '"theirs";r=1')
    res.end('here')
  })
  const policies = { 'access.yaml': access(rules), 'limits.yaml': oneBucket(2), 'flood.yaml': FLOOD }
  const more = `trustedProxies: [127.0.0.1]\n${settings}`
  const gateway = await testGateway(t, { upstream, policies, settings: more })
  const from = (client: string, sent: Sent & { path?: string; host?: string } = {}) =>
    send(gateway.url + (sent.path ?? '/a'), {
      ...sent,
      headers: { host: sent.host ?? 'acme.localhost', 'x-forwarded-for': client, ...sent.headers },
    })
  const records = (decision: string) => gateway.lines.filter(line => line.decision === decision)
  return { ...gateway, asked, from, records }
}

t.test('a denied client gets 403 and a record for any request, and other clients are served', async t => {
  const { from, records, asked, url } = await start(
    t,
    '  - { id: scraper, networks: [203.0.113.0/24, "2001:db8::/32"], action: deny, mode: enforce }\n',
  )
  const refused = await from('203.0.113.9', { headers: { origin: 'https://app.example' } })
  t.equal(refused.status, 403)
  t.match(refused.headers, {
    'content-type': 'application/problem+json',
    'cache-control': 'no-store',
    'access-control-allow-origin': 'https://app.example',
  })
  t.match(JSON.parse(refused.body), { status: 403, code: 'access-denied', title: 'Access denied' })
  t.notOk(refused.headers['retry-after'])
  for (const client of ['2001:db8::7', '::ffff:203.0.113.1'])
    t.equal((await from(client)).status, 403, client)
  const preflight = { origin: 'https://app.example', 'access-control-request-method': 'POST' }
  t.equal(
    (await from('203.0.113.9', { method: 'OPTIONS', headers: preflight })).status,
    403,
    'a preflight gets 403',
  )
  t.equal((await from('203.0.113.9', { host: 'nobody.example' })).status, 403, 'an unknown project gets 403')
  t.same(asked, [], 'no denied request reaches the upstream')
  const upgrade = new WebSocket(`${url.replace('http', 'ws')}/ws`, {
    headers: { host: 'acme.localhost', 'x-forwarded-for': '203.0.113.9' },
  })
  const status = await new Promise(resolve => {
    upgrade.on('unexpected-response', (_request, response) => resolve(response.statusCode))
    upgrade.on('error', () => {})
  })
  t.equal(status, 403, 'an upgrade gets 403')
  t.equal((await from('203.0.114.9')).status, 200)
  await waitUntil('the records', () => records('deny').length === 6)
  t.match(records('deny')[0], {
    rule: 'scraper',
    kind: 'access',
    mode: 'enforce',
    src: /access\.yaml:4$/,
    project: 'acme',
    ip: '203.0.113.0/24',
    would_status: 403,
    sent_status: 403,
    counters: { length: 0 },
  })
})

t.test(
  'an exempt client is not limited, and gets no rate limit field of the gateway or the upstream',
  async t => {
    const { from } = await start(
      t,
      '  - { id: office, networks: [198.51.100.0/24], action: exempt, mode: enforce }\n',
      'log: { decisions: all }',
    )
    for (let i = 0; i < 8; i += 1) {
      const { status, headers } = await from('198.51.100.7', { method: 'POST' })
      t.equal(status, 200)
      t.notOk(Object.keys(headers).some(name => name.includes('ratelimit')))
    }
    t.equal((await from('192.0.2.1', { method: 'POST' })).status, 200)
    t.equal((await from('192.0.2.1', { method: 'POST' })).status, 429, 'other clients are counted')
  },
)

t.test('a denied unknown host stays denied after a flood of invented hosts', async t => {
  const { from, adminUrl } = await start(
    t,
    '  - { id: hosts, projects: ["host:bad.example", "host:[2001:db8::1]"], action: deny, mode: enforce }\n',
  )
  t.equal(
    (await from('192.0.2.1', { host: '[2001:db8::1]:8080' })).status,
    403,
    'an IPv6 address is denied as a host too',
  )
  for (let i = 0; i < 101; i += 1) await from('192.0.2.1', { host: `made-up-${i}.example` })
  t.equal((await from('192.0.2.1', { host: 'Bad.example.' })).status, 403)
  const question = { method: 'GET', target: '/a', host: 'bad.example', ip: '192.0.2.1' }
  const explained = await send(`${adminUrl}/explain`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(question),
  })
  t.match(JSON.parse(explained.body), { answer: { status: 403, refused_by: ['hosts'] } })
})

t.test('the longest network wins, networks beat projects, and deny beats exempt', async t => {
  const { from } = await start(
    t,
    `  - { id: closed, projects: [acme], action: deny, mode: enforce }
  - { id: partner, networks: [203.0.113.0/24], action: exempt, mode: enforce }
  - { id: bad-host, networks: [203.0.113.7], action: deny, mode: enforce }
  - { id: good-host, networks: [203.0.113.7, 203.0.113.8], action: exempt, mode: enforce }
`,
  )
  t.equal((await from('192.0.2.1')).status, 403, 'the project is denied')
  t.equal((await from('192.0.2.1', { host: 'dev.localhost' })).status, 200)
  t.equal((await from('203.0.113.1')).status, 200, 'a network within the project is exempt')
  t.equal((await from('203.0.113.7')).status, 403, 'an address that is both denied and exempt is denied')
  t.equal((await from('203.0.113.8')).status, 200)
})

t.test('a report-only entry changes nothing but log and metrics', async t => {
  const { from, records, adminUrl } = await start(
    t,
    `  - { id: trial, networks: [203.0.113.0/24], action: deny, mode: report-only }
  - { id: exempted, networks: [203.0.113.0/24], action: exempt, mode: report-only }
`,
  )
  const answers = []
  for (let i = 0; i < 3; i += 1) answers.push(await from('203.0.113.9'))
  t.same(
    answers.map(({ status }) => status),
    [200, 200, 429],
    'the bucket still counts the client',
  )
  t.match(answers[0]?.headers.ratelimit, /"all.burst";r=1/)
  await waitUntil('the records', () => records('would_deny').length === 3)
  t.match(records('would_deny')[0], {
    rule: 'trial',
    mode: 'report-only',
    would_status: 403,
    sent_status: 200,
  })
  const metrics = (await send(`${adminUrl}/metrics`)).body
  t.match(metrics, /sluice_decisions_total\{rule="trial",.*mode="report-only",outcome="would_limit"\} 3/)
})

t.test('an entry ends at its time without a reload', async t => {
  const { from } = await start(
    t,
    `  - { id: a-day, networks: [203.0.113.9], action: deny, until: 2100-01-01 }
  - { id: a-moment, networks: [203.0.113.8], action: deny, until: "2100-01-02T01:00:00+02:00" }
  - { id: long-ago, networks: [203.0.113.7], action: deny, until: 2020-01-01 }
`,
  )
  t.equal((await from('203.0.113.7')).status, 200, 'an entry that ended in the past does not apply')
  mock.timers.enable({ apis: ['Date'], now: Date.UTC(2100, 0, 1, 22, 59, 59) })
  t.teardown(() => mock.timers.reset())
  t.equal((await from('203.0.113.9')).status, 403)
  t.equal((await from('203.0.113.8')).status, 403)
  mock.timers.setTime(Date.UTC(2100, 0, 1, 23))
  t.equal((await from('203.0.113.9')).status, 403, 'a day lasts until its end')
  t.equal((await from('203.0.113.8')).status, 200)
  mock.timers.setTime(Date.UTC(2100, 0, 2))
  t.not((await from('203.0.113.9')).status, 403)
})

t.test('a reload applies new entries, and explain names the deciding entry and its place', async t => {
  const { from, folder, adminUrl } = await start(
    t,
    '  - { id: other, networks: [192.0.2.7], action: deny, mode: enforce }\n',
  )
  t.equal((await from('203.0.113.9')).status, 200)
  const file = join(folder, 'policies', 'access.yaml')
  writeFileSync(
    file,
    access('  - { id: scraper, networks: [203.0.113.0/24], action: deny, mode: enforce }\n'),
  )
  t.equal((await send(`${adminUrl}/reload`, { method: 'POST' })).status, 200)
  t.equal((await from('203.0.113.9')).status, 403)
  const answer = await send(`${adminUrl}/explain`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ method: 'GET', target: '/a', host: 'acme.localhost', ip: '203.0.113.9' }),
  })
  t.match(JSON.parse(answer.body), {
    project: { id: 'acme' },
    access: [
      { entry: 'scraper', action: 'deny', mode: 'enforce', network: '203.0.113.0/24', src: `${file}:4` },
    ],
    rules: { length: 0 },
    answer: { status: 403, code: 'access-denied', refused_by: ['scraper'] },
  })
})
