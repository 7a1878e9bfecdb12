import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { sluice } from '../helpers/command.js'
import { matchesGolden } from '../helpers/golden.js'

/** A copy of the shipped configuration with texts replaced in its files. */
function changed(t: Test, changes: Readonly<Record<string, readonly [string, string][]>>): string {
  const folder = join(t.testdir(), 'config')
  cpSync('config', folder, { recursive: true })
  for (const [name, replacements] of Object.entries(changes)) {
    const file = join(folder, name)
    let text = readFileSync(file, 'utf8')
    for (const [from, to] of replacements) {
      t.ok(text.includes(from), `${name} contains ${from}`)
      text = text.replaceAll(from, to)
    }
    writeFileSync(file, text)
  }
  return folder
}

const CHANGES: Parameters<typeof changed>[1] = {
  'gateway.yaml': [['unknownProject: developer', 'unknownProject: reject']],
  'projects.yaml': [
    ['burst: 600', 'burst: 700'],
    ['id: globex-production', 'id: globex'],
  ],
  'policies/project-limits.yaml': [
    ['scim: { burst: 10, sustained: 300 }', 'scim: { burst: 20, sustained: 300 }'],
    ['scim: [/scim/**, /api/scim/**]', 'scim: [/scim/**]'],
    ['      settings: { burst: 1, sustained: 10 }\n', ''],
  ],
  'policies/in-flight.yaml': [
    ['mode: report-only', 'mode: enforce'],
    ['"PATCH /admin/identities/{id}", ', ''],
  ],
}

t.test('changes in effect are reported by plan and environment, bucket, rule and project', async t => {
  const { code, out, err } = await sluice(['diff', 'config', changed(t, CHANGES)])
  t.match({ code, err }, { code: 1, err: '' })
  t.match(
    out,
    /^Limits for production, essential, growth and scale in production\n {2}~ scim: 10 → 20 per second$/m,
  )
  t.match(out, /^ {2}- settings: no quota any more/m)
  t.match(out, '/api/scim/**: from scim to catch-all, for all plans in development, staging and production')
  t.match(out, 'POST /self-service/settings: from settings to catch-all, for all plans in development')
  t.match(out, 'session-delete: mode report-only → enforce. Its counters start again')
  t.match(out, 'identity-write: match - PATCH /admin/identities/{id}')
  t.match(out, 'acme-production: catch-all: 600 → 700 per second')
  t.match(out, 'acme-staging: limits as of growth/staging')
  t.match(out, /^ {2}- globex-production: removed/m)
  t.match(out, /^ {2}\+ globex: /m)
  t.match(out, 'unknownProject developer → reject')
})

t.test('settings are shown in the units of the files', async t => {
  const folder = changed(t, {
    'gateway.yaml': [['identify: [host]', 'identify: [host, header]']],
    'policies/in-flight.yaml': [['    mode: report-only', '    slotTtl: 30s\n    mode: report-only']],
    'policies/volumetric.yaml': [
      ['quota: { requests: 100, per: 10s }', 'quota: { requests: 1200, per: 1m }'],
      ['blockFor: 60s', 'blockFor: 90s'],
      ['    quota: { requests: 30, per: 1m }\n    blockFor: 10m\n', '    quota: { requests: 30, per: 1m }\n'],
      [
        'key: [ja4]\n    missing: skip\n    when: { authenticated: false }',
        'key: [ja4]\n    missing: skip\n    when: { authenticated: true }',
      ],
      ['id: anonymous-admin-writes', 'id: admin-writes'],
    ],
  })
  const { out } = await sluice(['diff', 'config', folder], { columns: 1000 })
  t.match(out, '~ session-delete: slotTtl 15 s → 30 s\n')
  t.match(out, '~ registration-flood: quota 100 per 10 s → 1,200 per 60 s, blockFor 60 s → 90 s\n')
  t.match(out, '~ recovery-flood: no blockFor any more (600 s)\n')
  t.match(out, '~ fingerprint-flood: when without credentials → with credentials\n')
  t.match(out, /\+ admin-writes: .*, when without credentials, quota 60 per 60 s, blockFor 600 s\n/)
  t.match(out, '~ identify + header (header x-sluice-project)\n')
  t.notMatch(out, /[{}"]/)
})

t.test("the trial of a rule's quota is a rule of its own", async t => {
  const quota = 'quota: { requests: 100, per: 10s }'
  const tried = (requests: number) => quota.replace(' }', `, trial: { requests: ${requests}, per: 10s } }`)
  const fifty = changed(t, { 'policies/volumetric.yaml': [[quota, tried(50)]] })
  const sixty = `${fifty}-next`
  cpSync(fifty, sixty, { recursive: true })
  const file = join(sixty, 'policies/volumetric.yaml')
  writeFileSync(file, readFileSync(file, 'utf8').replace(tried(50), tried(60)))
  const diff = async (before: string, after: string) =>
    (await sluice(['diff', before, after], { columns: 1000 })).out
  t.match(await diff('config', fifty), /^ {2}\+ registration-flood.trial: 50 per 10 s, tried$/m)
  t.match(await diff(fifty, 'config'), /^ {2}- registration-flood.trial: not tried any more$/m)
  t.notMatch(await diff('config', fifty), '~ registration-flood')
  t.match(await diff(fifty, sixty), /^ {2}~ registration-flood.trial: quota 50 per 10 s → 60 per 10 s/m)
})

t.test('how an upstream reads requests is part of what applies', async t => {
  const before = changed(t, {
    'gateway.yaml': [['welcome: { embedded: welcome }', 'welcome: { url: http://127.0.0.1:9 }']],
  })
  const after = `${before}-next`
  cpSync(before, after, { recursive: true })
  const file = join(after, 'gateway.yaml')
  const settings = 'pathParameters: refuse, caseInsensitivePaths: true, methodOverride: x-http-method'
  writeFileSync(file, readFileSync(file, 'utf8').replace('127.0.0.1:9 }', `127.0.0.1:9, ${settings} }`))
  const { code, out } = await sluice(['diff', before, after], { columns: 1000 })
  t.equal(code, 1)
  t.match(out, '~ upstream welcome pathParameters literal → refuse\n')
  t.match(out, '~ upstream welcome caseInsensitivePaths false → true\n')
  t.match(out, '~ upstream welcome methodOverride x-http-method\n')
})

t.test('every setting that decides about requests is listed, without secrets', async t => {
  const shipped = changed(t, {
    'gateway.yaml': [['welcome: { embedded: welcome }', 'welcome: { APP }']],
  })
  const written = (name: string, app: string, settings: string) => {
    const folder = `${shipped}-${name}`
    cpSync(shipped, folder, { recursive: true })
    const file = join(folder, 'gateway.yaml')
    const text = readFileSync(file, 'utf8').replace('APP', app)
    writeFileSync(file, text.replace(/^(listen|redis|store|drain|log):.*\n(?: .*\n)*/gm, '') + settings)
    return folder
  }
  const before = written(
    'before',
    'url: "http://127.0.0.1:9", connections: 10, timeouts: { head: 30s }',
    `
store: { instances: 1, deadline: 25ms }
listen: { headTimeout: 10s, maxConnections: 10000, maxConnectionsPerClient: 1000, maxEventLoopDelay: 500ms, workers: 1 }
`,
  )
  const after = written(
    'after',
    'url: "http://127.0.0.2:9", protocol: h2c, connections: 20, maxBody: 1000, timeouts: { head: 5s }',
    `
store: { instances: 3, deadline: 1s }
redis: "redis://user:hidden-password@127.0.0.1:6379/1"
listen: { headTimeout: 3s, maxConnections: 20, maxConnectionsPerClient: 10, maxEventLoopDelay: 1s, workers: 2 }
drain: 20s
log: { access: all }
`,
  )
  const { code, out, err } = await sluice(['diff', before, after], { columns: 1000 })
  t.match({ code, err }, { code: 1, err: '' })
  t.equal(
    out,
    `Settings of gateway.yaml
  ~ redis none → redis://127.0.0.1:6379/1. All counters start again there
  ~ store instances 1 → 3
  ~ store deadline 0.025 s → 1 s
  ~ listen workers 1 → 2
  ~ listen headTimeout 10 s → 3 s
  ~ listen maxConnections 10000 → 20
  ~ listen maxConnectionsPerClient 1000 → 10
  ~ listen maxEventLoopDelay 0.5 s → 1 s
  ~ upstream welcome address - http://127.0.0.1:9, + http://127.0.0.2:9
  ~ upstream welcome protocol http1 → h2c
  ~ upstream welcome connections 10 → 20
  ~ upstream welcome maxBody 1000
  ~ upstream welcome timeouts.head 30 s → 5 s
`,
  )
})

t.test('routes of a host and closed paths are told as they are written', async t => {
  const route = '{ host: shop.example, path: GET /x, upstream: welcome }'
  const before = changed(t, { 'gateway.yaml': [['  - { path: /, upstream: welcome }', `  - ${route}`]] })
  const after = `${before}-next`
  cpSync(before, after, { recursive: true })
  const file = join(after, 'gateway.yaml')
  const text = readFileSync(file, 'utf8').replace(route, route.replace('welcome', 'identity'))
  writeFileSync(file, `${text}\nclosed: [{ path: /admin }, { prefix: /x }]\n`)
  const { out } = await sluice(['diff', before, after], { columns: 1000 })
  t.match(out, '~ route shop.example GET /x welcome → identity\n')
  t.match(out, '~ closed + {"path":"/admin"}, + {"prefix":"/x"}\n')
})

t.test('a bucket that counts by another key is said to count from the start', async t => {
  const policy = (key: string) => `version: 1
kind: project-limits
buckets: { exports: { match: [POST /exports]${key} } }
limits: [{ for: [{}], quotas: { exports: { burst: 9 } } }]
`
  const dir = t.testdir()
  const [before, after, none] = ['before', 'after', 'none'].map(name => {
    const folder = join(dir, name)
    cpSync('config', folder, { recursive: true })
    return folder
  }) as [string, string, string]
  writeFileSync(join(before, 'policies', 'own.yaml'), policy(''))
  writeFileSync(join(after, 'policies', 'own.yaml'), policy(', key: [client-ip]'))
  const changedKey = await sluice(['diff', before, after], { columns: 200 })
  t.match(changedKey.out, '~ exports: counted by client-ip. Its counters start again\n')
  const added = await sluice(['diff', none, after], { columns: 200 })
  t.match(added.out, '+ exports: 9 per second, counted by client-ip\n')
  const usual = await sluice(['diff', none, before], { columns: 200 })
  t.match(usual.out, '+ exports: 9 per second\n')
})

t.test('--json reports the same for machines', async t => {
  const { code, out } = await sluice(['diff', 'config', changed(t, CHANGES), '--json'])
  t.equal(code, 1)
  matchesGolden(t, out, 'diff.json')
})

t.test('comments, order and spelling make no difference', async t => {
  const same = changed(t, {
    'policies/project-limits.yaml': [
      ['# Production environment', '# In production'],
      ['plans: [growth, scale]', 'plans: [scale, growth]'],
      ['admin-recovery: [POST /admin/recovery/*]', 'admin-recovery: ["POST /admin/recovery/*"]'],
    ],
  })
  t.same(await sluice(['diff', 'config', same]), { code: 0, out: 'Nothing differs in effect.\n', err: '' })
  t.match(await sluice(['diff', 'config', same, '--json']), { code: 0, out: /"limits": \[\]/ })
})

t.test('a configuration that cannot be loaded gives exit code 2 and its problems', async t => {
  const tie = join('test', 'fixtures', 'bad', 'tie')
  t.match(await sluice(['diff', 'config', tie]), {
    code: 2,
    out: '',
    err: /project-limits\.yaml:\d+:\d+ .* ties with/,
  })
  t.match(await sluice(['diff', 'no/where', 'config']), {
    code: 2,
    err: /cannot be read: it does not exist/,
  })
  t.match(await sluice(['diff', 'config']), { code: 2, err: /needs OLD and NEW, or --live/ })
})

t.test('the output fits forty columns', async t => {
  const { out } = await sluice(['diff', 'config', changed(t, CHANGES)], { columns: 40 })
  const long = out.split('\n').filter(line => line.length > 40)
  t.same(
    long.filter(line => line.trim().includes(' ')),
    [],
  )
})

t.test('windows, costs and unlimited quotas are shown in words', async t => {
  const policy = (quota: string, cost: number) => `version: 1
kind: project-limits
buckets: { exports: { match: [POST /exports], cost: ${cost} }, health: [/healthz] }
limits: [{ for: [{}], quotas: { exports: { windows: [${quota}] }, health: ${cost === 5 ? 'unlimited' : '{ burst: 9 }'} } }]
`
  const dir = t.testdir()
  const [before, after] = ['before', 'after'].map(name => {
    const folder = join(dir, name)
    cpSync('config', folder, { recursive: true })
    return folder
  }) as [string, string]
  const day = '{ name: day, requests: 500, per: day, timezone: Europe/Berlin }'
  writeFileSync(join(before, 'policies', 'own.yaml'), policy(day, 5))
  const more = '{ name: day, requests: 1000, per: day }, { name: long, requests: 2000, per: 7d }'
  writeFileSync(join(after, 'policies', 'own.yaml'), policy(more, 6))
  const { out } = await sluice(['diff', before, after], { columns: 200 })
  t.match(
    out,
    '~ exports: window day 500 per day (Europe/Berlin) → 1,000 per day (UTC), costs - 5 for POST /exports, + 6 for POST /exports, 2,000 per 7 days',
  )
  t.match(out, '~ health: no longer unlimited, 9 per second')

  const table = await sluice(['check', '--table', '--config', before], { columns: 200 })
  t.match(table.out, /exports +- +- +500 per day \(Europe\/Berlin\), costs 5 for POST \/exports +own.yaml:4/)
  t.match(table.out, /health +- +- +unlimited +own.yaml:4/)
})

t.test('what becomes of counters is said: new and lost windows, other lengths, another key', async t => {
  const rows = '      scim: { burst: 10, sustained: 300 }'
  const folder = changed(t, {
    'policies/project-limits.yaml': [
      [rows, '      scim: { burst: 10, windows: [{ name: hour, requests: 900, per: 1h }] }'],
      [
        '  sessions-whoami: [/sessions/whoami]',
        '  sessions-whoami: { match: [/sessions/whoami], key: [client-ip] }',
      ],
    ],
  })
  const { out } = await sluice(['diff', 'config', folder])
  t.match(out.replace(/\s+/g, ' '), 'New counters: hour. Counters that end: sustained')
  t.match(out.replace(/\s+/g, ' '), 'sessions-whoami: counted by client-ip. Its counters start again')
})
