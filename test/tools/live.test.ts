/**
 * The commands that query a running gateway: counters, reset, mode, access, override, overrides; and how report and replay treat overrides.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { sluice } from '../helpers/command.js'
import { testGateway } from '../helpers/gateway.js'
import { send, startApp } from '../helpers/http.js'
import { matchList } from '../helpers/lists.js'

const KEY = 'canary-0123456789abcdef'
const POLICIES = {
  'limits.yaml': `version: 1
kind: project-limits
buckets: { all: ["*"], tight: [/tight/**] }
limits: [{ for: [{}], quotas: { all: { sustained: 30 }, tight: { sustained: 2 } } }]
`,
  'flood.yaml': `version: 1
kind: volumetric
rules: [{ id: by-ip, match: [/ip], key: [client-ip], quota: { requests: 1, per: 60s } }]
`,
}

const byAnna = (why: string) => ['--why', why, '--by', 'anna']

async function start(t: Test, settings = '', more: Record<string, string> = {}) {
  const upstream = await startApp(t, (_req, res) => res.end('here'))
  const gateway = await testGateway(t, {
    upstream,
    policies: { ...POLICIES, ...more },
    adminKey: KEY,
    settings,
  })
  const live = ['--live', gateway.adminUrl]
  return {
    ...gateway,
    run: (...args: string[]) => sluice([...args, ...live], { env: { ADMIN_KEY: KEY }, columns: 160 }),
    post: async (path: string) =>
      (await send(gateway.url + path, { method: 'POST', headers: { host: 'acme.localhost' } })).status,
  }
}

t.test('counters are shown and can be reset', async t => {
  const { run, post } = await start(t)
  for (const path of ['/tight/a', '/tight/a', '/ip']) await post(path)
  t.equal(await post('/tight/a'), 429)
  const shown = await run('counters', 'acme')
  t.match(shown, { code: 0, err: '' })
  t.match(shown.out, /^acme, growth in production\n/)
  t.match(shown.out, /^policy +mode +window +quota +used +left +more in$/m)
  t.match(shown.out, /^tight\.sustained +enforce +per minute +2 +2 +0 +\d+ (s|min)$/m)
  t.match(shown.out, 'Counted by more than the project, so not shown without it: by-ip.')
  t.match((await run('counters', 'acme', '--ip', '127.0.0.1')).out, /^by-ip +enforce +per minute +1 +1 +0/m)

  t.match(await run('reset', 'tight', '--project', 'acme', ...byAnna('Done')), {
    code: 0,
    out: 'tight: the counter was reset.\n',
  })
  t.equal(await post('/tight/a'), 200)
  const asJson = await run('counters', 'acme', '--json')
  const { project, counters } = JSON.parse(asJson.out)
  t.equal(project, 'acme')
  matchList(t, counters, [{ rule: 'all' }, { rule: 'tight' }])
})

t.test('a mode can be set and undone', async t => {
  const { run, post } = await start(t)
  const made = await run('mode', 'tight', 'report-only', '--until', '2100-01-01', ...byAnna('Import'))
  t.match(made, {
    code: 0,
    out: 'tight: report-only until 2100-01-01. "sluice mode tight undo" goes back to its file, which says enforce.\n',
  })
  for (let i = 0; i < 4; i += 1) t.equal(await post('/tight/a'), 200)
  const { out } = await run('explain', 'POST', '/tight/a', '--project', 'acme')
  t.match(
    out,
    'tight (project-limits, report-only)\n  mode: set by the admin API for now (/rules/tight/mode)',
  )
  t.match(await run('mode', 'tight', 'undo'), { code: 0, out: 'tight: undone. Its file says enforce.\n' })
  t.match(await run('mode', 'tight', 'undo'), { code: 2, err: /has set no mode/ })
})

t.test('networks and projects can be denied, listed and admitted again', async t => {
  const { run, post } = await start(t)
  const made = await run('access', 'deny', 'here', '127.0.0.0/8', '192.0.2.1', ...byAnna('It scrapes'))
  t.match(made, {
    code: 0,
    out: /^here +deny +127\.0\.0\.0\/8 192\.0\.2\.1 .* anna +It scrapes +\/access\/here$/m,
  })
  t.equal(await post('/'), 403)
  const exempt = ['exempt', 'ours', '--project', 'acme', '--until', '2100-01-01', '--report-only']
  await run('access', ...exempt, ...byAnna('Test'))
  const { out } = await run('access', 'list')
  t.match(out, /^here +deny /m)
  t.match(out, /^ours +exempt \(report-only\) +acme .*2100-01-01/m)
  t.match(await run('access', 'remove', 'here', '--why', 'Done'), { code: 0, out: 'here: removed.\n' })
  t.equal(await post('/'), 200)
})

t.test('the list of access entries shows a temporary mode beside that of the file', async t => {
  const file = 'version: 1\nkind: access\nrules: [{ id: written, networks: [192.0.2.7], action: deny }]\n'
  const { run } = await start(t, '', { 'access.yaml': file })
  await run('mode', 'written', 'report-only', '--why', 'Test')
  const { out } = await run('access', 'list')
  t.match(out, /^written +deny \(report-only for now; file: enforce\) /m)
})

t.test('a project can be given a limit of its own, listed and undone', async t => {
  const { run, post } = await start(t)
  const quota = '{ sustained: 4, windows: [{ name: daily, requests: 900, per: day }] }'
  const made = await run(
    'override',
    'set',
    'acme',
    'tight',
    quota,
    '--until',
    '2100-01-01',
    ...byAnna('Contract'),
  )
  t.match(made, {
    code: 0,
    out: 'tight for acme: sustained 4, daily 900 per day until 2100-01-01. "sluice override undo acme tight" goes back to the files.\n',
  })
  for (let i = 0; i < 4; i += 1) t.equal(await post('/tight/a'), 200)
  t.equal(await post('/tight/a'), 429)
  const { out } = await run('override', 'list')
  t.match(out, /^acme +tight +sustained 4, daily 900 per day .* 2100-01-01 +anna +Contract +admin port$/m)
  t.match((await run('override', 'list', 'dev')).out, 'dev has no negotiated limit.\n')
  t.match((await run('counters', 'acme')).out, /^tight\.daily +enforce +per day \(UTC\) +900 +4 /m)
  const explained = (await run('explain', 'POST', '/tight/a', '--project', 'acme')).out
  t.match(explained, 'negotiated: on the admin port by anna, until 2100-01-01: Contract')
  t.match(explained, 'written at /projects/acme/overrides/tight')
  const asJson = await run('override', 'set', 'acme', 'tight', 'unlimited', '--json', ...byAnna('Import'))
  t.match(JSON.parse(asJson.out), { project: 'acme', quota: 'unlimited', in_force: true })
  t.equal(await post('/tight/a'), 200)
  t.match(await run('override', 'undo', 'acme', 'tight'), {
    code: 0,
    out: 'tight for acme: undone. What the files say is in force.\n',
  })
  t.equal(await post('/tight/a'), 429)
})

t.test('overrides are listed with author, reason and how to undo them', async t => {
  const { run } = await start(t)
  t.match(await run('overrides'), { code: 0, out: 'Nothing was done.\n' })
  await run('mode', 'by-ip', 'report-only', ...byAnna('Import'))
  await run('reset', 'all', '--project', 'acme')
  const { out } = await run('overrides')
  t.match(
    out,
    /^time \(UTC\) +what +by +why +undo\n.*Reset: a counter of "all" of project acme\. +127\.0\.0\.1\n/,
  )
  t.match(out, /Made report-only: "by-ip"\. +anna +Import +DELETE \/rules\/by-ip\/mode$/m)
  matchList(t, JSON.parse((await run('overrides', '--json')).out).overrides, [
    { kind: 'reset' },
    { kind: 'mode', undo: true },
  ])
})

t.test('wrong arguments and unreachable gateways are reported with their exit codes', async t => {
  const { run, adminUrl } = await start(t)
  for (const [args, code, err] of [
    [['counters', 'nobody'], 2, /There is no project "nobody"/],
    [['counters', 'acme', '--ip', 'here'], 2, /"here" is not an IP address/],
    [['reset', 'al', '--project', 'acme'], 2, /There is no bucket or rule "al"/],
    [['reset', 'all'], 2, /Name the project of a bucket/],
    [['mode', 'tigth', 'report-only', '--why', 'x'], 2, /Did you mean "tight"\?/],
    [['mode', 'tight', 'off', '--why', 'x'], 2, /Write report-only, enforce or undo, not "off"/],
    [['mode', 'tight', 'report-only'], 2, /Say why: --why TEXT/],
    [['mode', 'tight', 'undo', '--until', '2100-01-01'], 2, /--until is for/],
    [['mode', 'tight'], 2, /needs RULE report-only\|enforce\|undo/],
    [['access', 'block', 'x'], 2, /knows list, deny, exempt and remove, not "block"/],
    [['access', 'deny'], 2, /needs a name/],
    [['access', 'deny', 'x', '10.0.0.1'], 2, /Say why/],
    [['access', 'deny', 'x', '--why', 'x'], 2, /Name either networks or projects/],
    [['access', 'deny', 'x', '10.0.0.1/8', '--why', 'x'], 2, /Write "10.0.0.0\/8"/],
    [['access', 'remove', 'x'], 2, /has set no entry "x"/],
    [['access', 'list', 'x'], 2, /does not take "x"/],
    [['override', 'give'], 2, /knows list, set and undo, not "give"/],
    [['override', 'constructor'], 2, /knows list, set and undo, not "constructor"/],
    [['override', 'set', 'acme', 'all'], 2, /takes a project, a bucket and a quota/],
    [['override', 'set', 'acme', 'all', '{ burst: 5 }'], 2, /Say why: --why TEXT/],
    [['override', 'set', 'acme', 'all', '{ burst: '], 2, /The quota cannot be read: /],
    [['override', 'set', 'acme', 'all', '5', '--why', 'x'], 2, /must be the word unlimited, or a map/],
    [['override', 'set', 'acme', 'all', '{ why: x }'], 2, /"why" is no key of a quota/],
    [['override', 'set', 'acme', 'all', '{ brust: 5 }', '--why', 'x'], 2, /Did you mean "burst"\?/],
    [['override', 'set', 'acmee', 'all', '{ burst: 5 }', '--why', 'x'], 2, /Did you mean "acme"\?/],
    [['override', 'undo', 'acme', 'all'], 2, /has set no limit of project "acme" for "all"/],
    [['override', 'undo', 'acmee', 'all'], 2, /Unknown project "acmee"\. Did you mean "acme"\?/],
    [['override', 'undo', 'acme', 'al'], 2, /Unknown bucket "al"\. Did you mean "all"\?/],
    [['override', 'undo', 'acme', 'all', '--until', '2100-01-01'], 2, /--until is for set/],
    [['override', 'list', 'acmee'], 2, /There is no project "acmee"/],
  ] as const) {
    t.match(await run(...args), { code, err, out: '' }, args.join(' '))
  }
  t.match(await sluice(['overrides', '--live', adminUrl]), { code: 1, err: /set ADMIN_KEY/ })
  t.match(await sluice(['overrides', '--live', '127.0.0.1:8081']), {
    code: 2,
    err: /Did you mean http:\/\/127\.0\.0\.1:8081\?/,
  })
  t.match(await sluice(['overrides', '--live', 'http://127.0.0.1:1']), { code: 1, err: /Nothing answers on/ })
  const app = await startApp(t, (_req, res) => res.end('here'))
  t.match(await sluice(['overrides', '--live', app]), {
    code: 1,
    err: /not the admin port of a gateway \(200\)/,
  })
  const top = await sluice(['top', '--once', '--live', app])
  t.match(top, { code: 1, err: /not the admin port of a gateway \(200\)/ })
})

t.test('report and replay distinguish a temporary mode from that of the files', async t => {
  const { run, post, lines, folder } = await start(t, 'log: { decisions: all }')
  await run('mode', 'tight', 'report-only', '--why', 'Import')
  for (let i = 0; i < 5; i += 1) t.equal(await post('/tight/a'), 200)
  const log = join(folder, 'gateway.log')
  writeFileSync(log, lines.map(line => `${JSON.stringify(line)}\n`).join(''))
  const reported = await sluice(['report', log])
  t.match(reported, { code: 0 }, 'a temporary mode is no candidate for enforcement')
  t.match(reported.out, /^tight +report-only for now +5 +0 +3 /m)
  t.notMatch(reported.out, /safe to enforce/)
  const replayed = await sluice(['replay', log, '--policies', folder], { env: { ADMIN_KEY: KEY } })
  t.match(
    replayed.out.replaceAll('\n', ' '),
    /modes and negotiated limits set at run time decided about 3 requests/,
  )
})

t.test('report and replay know of negotiated limits', async t => {
  const { run, post, lines, folder } = await start(t, 'log: { decisions: all }')
  await run('override', 'set', 'acme', 'tight', '{ sustained: 3 }', '--why', 'Contract')
  for (let i = 0; i < 4; i += 1) await post('/tight/a')
  const log = join(folder, 'gateway.log')
  writeFileSync(log, lines.map(line => `${JSON.stringify(line)}\n`).join(''))
  t.match(
    (await sluice(['report', log])).out,
    'Limits negotiated on the admin port decided 4 requests of it.',
  )
  const { decisions, rules } = JSON.parse((await sluice(['report', log, '--json'])).out)
  t.match(decisions, { negotiated: 4 })
  t.match(rules, [{ rule: 'tight', src: null, refused: 1 }])
  const replayed = await sluice(['replay', log, '--policies', folder], { env: { ADMIN_KEY: KEY } })
  t.match(replayed.out.replaceAll('\n', ' '), /negotiated limits set at run time decided about 4 requests/)
})
