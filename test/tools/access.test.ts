/** What the commands report about access entries. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { sluice } from '../helpers/command.js'
import { decisionRecord } from '../helpers/decision-lines.js'
import { PROJECTS } from '../helpers/gateway.js'
import { matchList } from '../helpers/lists.js'
import { oneBucket } from '../helpers/policies.js'

const GATEWAY =
  'version: 1\nupstreams: { a: { url: "http://127.0.0.1:1" } }\nroutes: [{ path: /**, upstream: a }]\n'

function folderWith(t: Test, name: string, rules: string): string {
  const folder = join(t.testdirName, name)
  mkdirSync(join(folder, 'policies'), { recursive: true })
  writeFileSync(join(folder, 'gateway.yaml'), GATEWAY)
  writeFileSync(join(folder, 'projects.yaml'), PROJECTS)
  writeFileSync(join(folder, 'policies', 'limits.yaml'), oneBucket(1))
  writeFileSync(join(folder, 'policies', 'access.yaml'), `version: 1\nkind: access\nrules:\n${rules}`)
  return folder
}

t.test('check warns of expired entries, exemptions without effect and long trials', async t => {
  t.testdir()
  const folder = folderWith(
    t,
    'config',
    `  - { id: over, networks: [203.0.113.1], action: deny, until: 2020-01-01 }
  - { id: scraper, networks: [203.0.113.7], action: deny }
  - { id: office, networks: [198.51.100.0/24, 203.0.113.7], action: exempt }
  - { id: trial, projects: [acme], action: deny, mode: report-only, since: 2020-01-01 }
`,
  )
  const { code, out } = await sluice(['check', '--config', folder])
  t.equal(code, 0)
  t.match(out, /access\.yaml:4:\d+ rules\[0\]\.until: warning: The time of "over" is over/)
  t.match(out, /rules\[2\]\.networks\[1\]: warning: "203\.0\.113\.7" is not exempt: "scraper" denies it/)
  t.match(out, /rules\[3\]\.since: warning: Report-only since 2020-01-01/)
  t.match(out, '2 policy files')
})

t.test('diff reports added, removed and changed entries', async t => {
  t.testdir()
  const old = folderWith(
    t,
    'old',
    '  - { id: gone, projects: [acme], action: exempt }\n  - { id: scraper, networks: [203.0.113.7], action: deny }\n',
  )
  const now = folderWith(
    t,
    'new',
    '  - { id: scraper, networks: [203.0.113.7, 203.0.113.8], action: deny, until: 2026-12-31 }\n  - { id: came, networks: [192.0.2.1], action: deny }\n',
  )
  const { code, out } = await sluice(['diff', old, now], { columns: 1000 })
  t.equal(code, 1)
  t.match(out, /^Access$/m)
  t.match(out, '- gone: removed')
  t.match(out, '~ scraper: networks + 203.0.113.8, until 2026-12-31')
  t.match(out, /\+ came: .*networks 192\.0\.2\.1, action deny, mode enforce/)
})

t.test('explain names the deciding entry and its place in the file', async t => {
  t.testdir()
  const folder = folderWith(
    t,
    'config',
    `  - { id: scraper, networks: [203.0.113.0/24], action: deny, until: 2999-12-31 }
  - { id: office, networks: [198.51.100.0/24], action: exempt }
  - { id: trial, projects: [acme], action: deny, mode: report-only }
`,
  )
  const explain = async (ip: string) => {
    const words = ['explain', 'GET', '/a', '--project', 'acme', '--ip', ip, '--config', folder]
    return (await sluice(words, { columns: 1000 })).out
  }
  const denied = await explain('203.0.113.9')
  t.match(
    denied,
    /access: denied by scraper, for network 203\.0\.113\.0\/24, until 3000-01-01.*access\.yaml:4\n/,
  )
  t.match(denied, /Refused by scraper: 403 access-denied\./)
  const exempt = await explain('198.51.100.9')
  t.match(
    exempt,
    /access: exempt from every limit by office, for network 198\.51\.100\.0\/24; written at .*:5\n/,
  )
  t.notMatch(exempt, 'RateLimit')
  const tried = await explain('192.0.2.1')
  t.match(tried, /access: would be denied \(report-only\) by trial, for project acme/)
  t.match(tried, 'trial would refuse it')
  t.match(tried, 'Let through to a.')
})

t.test(
  'report counts denied and would-be denied requests, and suggests no promotion of access entries',
  async t => {
    const kind = 'access'
    const entry = { kind, counters: [], client: 'hash', route: null }
    const lines = [
      decisionRecord({ ...entry, decision: 'deny', rule: 'scraper' }),
      decisionRecord({ ...entry, decision: 'would_deny', rule: 'trial', mode: 'report-only' }),
      decisionRecord({ ...entry, decision: 'would_deny', rule: 'trial', mode: 'report-only' }),
    ]
    const stdin = lines.map(line => `${JSON.stringify(line)}\n`).join('')
    const { code, out } = await sluice(['report', '-', '--json'], { stdin })
    t.equal(code, 0)
    const { rules, promotions } = JSON.parse(out)
    matchList(t, rules, [
      { rule: 'scraper', kind, refused: 1, wouldRefuse: 0 },
      { rule: 'trial', kind, mode: 'report-only', refused: 0, wouldRefuse: 2 },
    ])
    t.same(promotions, [])
  },
)

t.test('replay denies and exempts requests as the gateway does, on the clock of the log', async t => {
  t.testdir()
  const folder = folderWith(
    t,
    'config',
    `  - { id: scraper, networks: [203.0.113.0/24], action: deny, until: 2026-01-05 }
  - { id: office, networks: [198.51.100.0/24], action: exempt }
  - { id: one-host, networks: [192.0.2.77], action: deny }
`,
  )
  const lineOf = (ts: string, ip: string) =>
    `${JSON.stringify(decisionRecord({ ts, id: ts, ip, client: `hash of ${ip}`, path: '/a', project: 'acme' }))}\n`
  const stdin = [
    lineOf('2026-01-05T23:59:59Z', '203.0.113.0/24'),
    lineOf('2026-01-06T00:00:00Z', '203.0.113.0/24'),
    lineOf('2026-01-06T00:00:01Z', '198.51.100.0/24'),
    lineOf('2026-01-06T00:00:02Z', '198.51.100.0/24'),
    lineOf('2026-01-06T00:00:03Z', '192.0.2.0/24'),
  ].join('')
  const { out } = await sluice(['replay', '-', '--config', folder, '--policies', folder, '--json'], { stdin })
  const { candidate, accuracy } = JSON.parse(out)
  t.match(candidate, { requests: 5, admitted: 3, refused: 2 })
  t.same(candidate.unserved, {})
  t.match(
    candidate.rules.find(({ rule }: { rule: string }) => rule === 'scraper'),
    { kind: 'access', requests: 1, refused: 1 },
  )
  t.match(
    candidate.rules.find(({ rule }: { rule: string }) => rule === 'all'),
    { requests: 2, refused: 1 },
  )
  t.match(accuracy.join('\n'), 'smaller networks of these access entries are not seen: one-host.')
})
