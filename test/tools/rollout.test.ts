/** What the commands say about trials and about shares. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { DecisionRecord } from '../../gateway/observe/record-types.js'
import { sluice } from '../helpers/command.js'
import { decisionRecord } from '../helpers/decision-lines.js'
import { besideOf, DAY, lineOf, logOf, report, START, timeOf, wouldDeny } from './report-logs.js'

const FILES = {
  'gateway.yaml':
    'version: 1\nupstreams: { a: { url: "http://127.0.0.1:1" } }\nroutes: [{ path: /**, upstream: a }]\n',
  'projects.yaml': `version: 1
projects:
${Array.from({ length: 20 }, (_, i) => `  - { id: p${i}, plan: growth, environment: production, hosts: [p${i}.localhost] }`).join('\n')}
`,
  'policies/base.yaml': `version: 1
kind: project-limits
buckets: { rest: ["*"] }
limits: [{ for: [{}], quotas: { rest: { burst: 10, sustained: 300, trial: { burst: 2, sustained: 60 } } } }]
`,
  'policies/search.yaml': `version: 1
kind: project-limits
enforceFor: 25%
buckets: { search: [/search] }
limits: [{ for: [{}], quotas: { search: { burst: 1, sustained: 30 } } }]
`,
  'policies/floods.yaml': `version: 1
kind: volumetric
rules:
  - { id: flood, match: [POST /d], key: [client-ip], quota: { requests: 1, per: 60s }, enforceFor: 50% }
`,
}

function written(t: Test, changes: Readonly<Record<string, readonly [string, string]>> = {}): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-test-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  mkdirSync(join(folder, 'policies'))
  for (const [file, text] of Object.entries(FILES)) {
    const [from, to] = changes[file] ?? ['', '']
    t.ok(text.includes(from))
    writeFileSync(join(folder, file), text.replace(from, to))
  }
  return folder
}

t.test('explain says whether the request is inside the share, and shows the trial', async t => {
  const folder = written(t)
  const told = await Promise.all(
    Array.from({ length: 4 }, async (_, i) => {
      return (await sluice(['explain', 'GET', '/search', '--project', `p${i}`, '--config', folder])).out
    }),
  )
  const inside = told.filter(text => text.includes('this one is inside'))
  const outside = told.filter(text => text.includes('this one is outside'))
  t.ok(inside.length > 0 && outside.length > 0)
  t.equal(inside.length + outside.length, 4)
  t.match(
    inside[0],
    /^search \(project-limits, enforce\)\n {2}share: enforced for 25% of projects; this one is inside$/m,
  )
  t.match(inside[0], /bucket: search, by \/search/)
  t.match(
    outside[0],
    /^search \(project-limits, report-only\)\n {2}share: enforced for 25% of projects; this one is outside$/m,
  )
  t.match(outside[0], /^ {2}bucket: rest, by \*$/m)
  t.match(outside[0], /^ {2}report-only bucket: search, by \/search$/m)
  t.match(
    outside[0],
    /^rest\.trial \(project-limits, report-only\)\n {2}trial: of rest: counts beside it, and only reports$/m,
  )
  t.match(outside[0], /rest\.trial\.burst: 2 per second/)
  const addresses = await Promise.all(
    Array.from({ length: 5 }, async (_, i) => {
      const caller = ['--project', 'p1', '--ip', `192.0.2.${i}`]
      return (await sluice(['explain', 'POST', '/d', ...caller, '--config', folder])).out
    }),
  )
  t.ok(addresses.some(text => text.includes('enforced for 50% of its keys; this one is inside')))
  t.ok(addresses.some(text => /flood \(volumetric, report-only\)\n.*this one is outside/.test(text)))
})

t.test('the table of limits shows trials and shares', async t => {
  const { out } = await sluice(['check', '--config', written(t), '--table'])
  t.match(out, /^rest +10 +300 /m)
  t.match(out, /^rest\.trial +2 +60 +trial /m)
  t.match(out, /^search +1 +30 +for 25% of projects /m)
  t.match(out, /^flood .* enforce for 50% /m)
})

t.test('diff reports changed shares and new, changed or removed trials', async t => {
  const before = written(t)
  const after = written(t, {
    'policies/base.yaml': ['trial: { burst: 2', 'trial: { burst: 3'],
    'policies/search.yaml': ['25%', '40%'],
    'policies/floods.yaml': [', enforceFor: 50%', ''],
  })
  const { out } = await sluice(['diff', before, after])
  t.match(out, /~ rest\.trial: 2 → 3 per second/)
  t.match(out, /~ search: enforceFor 25% → 40%/)
  t.match(out, /~ flood: no enforceFor any more \(50%\)/)
  const none = written(t, { 'policies/base.yaml': [', trial: { burst: 2, sustained: 60 }', ''] })
  t.match((await sluice(['diff', before, none])).out, /- rest\.trial: not tried any more/)
  t.match((await sluice(['diff', none, before])).out, /\+ rest\.trial: 2 per second, 60 per minute, tried/)
})

t.test('check warns of a trial without effect and of a long-lived share', async t => {
  const equal = written(t, {
    'policies/base.yaml': ['trial: { burst: 2, sustained: 60', 'trial: { burst: 10, sustained: 300'],
  })
  t.match(
    (await sluice(['check', '--config', equal])).out,
    /base\.yaml:4:\d+ limits\[0\]\.quotas\.rest\.trial: warning: The trial of "rest" is the quota in force/,
  )
  const looser = written(t, {
    'policies/base.yaml': ['trial: { burst: 2, sustained: 60', 'trial: { burst: 20, sustained: 300'],
  })
  t.match((await sluice(['check', '--config', looser])).out, /trial: note: The trial of "rest" is looser/)
  const leased = written(t, { 'policies/base.yaml': ['trial:', 'lease: true, trial:'] })
  t.match((await sluice(['check', '--config', leased])).out, /trial: note: The quota of "rest" is leased/)
  const overridden = written(t, {
    'projects.yaml': [
      'hosts: [p3.localhost]',
      'hosts: [p3.localhost], overrides: { rest: { burst: 20, trial: { burst: 20 } } }',
    ],
  })
  t.match(
    (await sluice(['check', '--config', overridden])).out,
    /overrides\.rest\.trial: warning: The trial of "rest" is the quota in force/,
  )
  const old = written(t, {
    'policies/search.yaml': ['enforceFor: 25%', 'enforceFor: 25%\nsince: 2026-01-31'],
  })
  t.match(
    (await sluice(['check', '--config', old])).out,
    /since: warning: Enforced for 25% since 2026-01-31, for \d+ days: raise the share, or remove it\./,
  )
  t.notMatch((await sluice(['check', '--config', written(t)])).out, 'warning')
})

/** Eight days of a bucket with a trial, and of a flood rule that is in force for half of its keys. */
function eightDays(): DecisionRecord[] {
  const records: DecisionRecord[] = []
  for (let i = 0; i < 800; i += 1) {
    const isInside = i % 2 === 0
    const isHit = i % 100 === 51
    const beside = [
      { ...besideOf('catch-all.trial', 'a', i % 4 === 0 ? 'limited' : 'allowed', 1), kind: 'project-limits' },
    ]
    const flood = { ...besideOf('flood', 'b', 'allowed' as const, 1), enforce_for: 50 }
    const main = decisionRecord({
      ts: timeOf(START + i * (DAY / 100)),
      id: `request-${i}`,
      beside: isInside ? beside : [...beside, isHit && i < 200 ? { ...flood, result: 'limited' } : flood],
      counters: [
        { policy: 'catch-all.burst', q: 400, used: 1, t_ms: 1000, w_ms: 1000 },
        ...(isInside ? [{ policy: 'flood', q: 3, used: 1, t_ms: 900, w_ms: 1000 }] : []),
      ],
      ...(isInside && i % 100 === 50
        ? {
            decision: 'deny',
            rule: 'flood',
            kind: 'volumetric',
            enforce_for: 50,
            would_status: 429,
            sent_status: 429,
          }
        : {}),
    })
    records.push(main)
    if (i % 4 === 0) records.push(wouldDeny(main, 'catch-all.trial', 'a'))
    if (!isInside && isHit && i < 200) records.push({ ...wouldDeny(main, 'flood', 'b'), enforce_for: 50 })
  }
  return records
}

t.test('report says whether a trial can become the quota and whether a share can be raised', async t => {
  const log = logOf(t, eightDays().map(lineOf).join(''))
  const [trial, share] = (await report(log)).promotions
  t.match(trial, {
    rule: 'catch-all.trial',
    what: 'trial',
    safe: false,
    seen: 800,
    wouldRefuse: 200,
    inside: null,
  })
  t.match(share, { rule: 'flood', what: 'share', enforcedFor: 50, safe: true, seen: 400, wouldRefuse: 2 })
  t.match(share?.inside, { seen: 400, refused: 8 })
  t.match(
    share?.verdict,
    /^Safe to raise the share: outside it, in 8\.0 days it would have refused 2 of 400 requests/,
  )
  const { out, code } = await sluice(['report', log])
  t.equal(code, 1)
  t.match(out, 'Report-only rules, trials and shares: safe to go on?')
  t.match(out, 'It is enforced for 50%: there it refused 8 of 400 requests.')
  const calm = logOf(
    t,
    eightDays()
      .filter(({ rule }) => rule !== 'catch-all.trial')
      .map(({ beside, ...record }) =>
        lineOf({ ...record, beside: beside.map(one => ({ ...one, result: 'allowed' })) }),
      )
      .join(''),
    'calm.log',
  )
  t.match(
    (await report(calm)).promotions[0]?.verdict,
    /^Safe to make it the quota: in 8\.0 days it would have refused 0 of 800 requests/,
  )
  const page = join(t.testdir(), 'report.html')
  await sluice(['report', log, '--html', page])
  t.match(readFileSync(page, 'utf8'), 'there it refused 8 of 400 requests')
})

t.test('replay shows what a share and a trial would have refused', async t => {
  const folder = written(t)
  const lines = Array.from({ length: 40 }, (_, i) =>
    lineOf(
      decisionRecord({
        ts: timeOf(START + i * 10),
        id: `r${i}`,
        project: `p${i % 20}`,
        path: '/search',
        client: `client-${i % 20}`,
      }),
    ),
  )
  const { out } = await sluice(['replay', logOf(t, lines.join('')), '--policies', folder])
  const row = (rule: string, mode: string) =>
    new RegExp(`^${rule} +${mode} +(\\d+) +\\(?(\\d+)\\)?`, 'm').exec(out)?.slice(1).map(Number) ?? []
  const [inside = 0, refused = 0] = row('search', 'enforce')
  const [outside = 0, would = 0] = row('search', 'report-only')
  t.ok(inside > 0 && outside > 0)
  t.same([inside + outside, refused * 2, would * 2], [40, inside, outside])
  t.same(
    row('rest\\.trial', 'report-only')[0],
    outside,
    'the trial counts the requests that fall to its bucket',
  )
  t.match(out, /hashes of what these rules count by.*\n?.*flood/)
  const raised = written(t, { 'policies/search.yaml': ['25%', '90%'] })
  const both = await sluice(['replay', logOf(t, lines.join('')), '--policies', raised, '--against', folder])
  t.equal(both.code, 1, 'a larger share refuses more and gives exit code 1')
})

t.test('the trials and shares that the documentation shows pass the check', async t => {
  const page = readFileSync('docs/rollout.md', 'utf8')
  const shown = [...page.matchAll(/```yaml\n# (?:trial|share): (policies\/\S+)\n([^`]*)```/g)]
  t.equal(shown.length, 4)
  for (const [, name = '', text = ''] of shown) {
    const folder = written(t)
    rmSync(join(folder, 'policies'), { recursive: true })
    mkdirSync(join(folder, 'policies'))
    writeFileSync(join(folder, name), text)
    const { code, out, err } = await sluice(['check', '--config', folder])
    t.match({ code, err }, { code: 0, err: '' }, `${name}: ${out}`)
  }
})
