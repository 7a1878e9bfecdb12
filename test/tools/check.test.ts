import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { sluice } from '../helpers/command.js'
import { matchesGolden } from '../helpers/golden.js'

const SHIPPED = ['--config', 'config']
const LINT = join('test', 'fixtures', 'lint')

const GATEWAY =
  'version: 1\nupstreams: { a: { url: "http://127.0.0.1:1" } }\nroutes: [{ path: /**, upstream: a }]\n'

const ONE_RULE =
  'version: 1\nkind: in-flight\nrules: [{ id: one, match: [POST /a], key: [project], max: 1 }]\n'

/** A configuration with one policy file. */
function folderWith(dir: string, policy: string): string {
  mkdirSync(join(dir, 'policies'))
  writeFileSync(join(dir, 'gateway.yaml'), GATEWAY)
  writeFileSync(join(dir, 'projects.yaml'), 'version: 1\nprojects: []\n')
  writeFileSync(join(dir, 'policies', 'a.yaml'), policy)
  return dir
}

t.test('the shipped configuration has no warnings and passes --strict', async t => {
  const { code, out, err } = await sluice(['check', ...SHIPPED, '--strict'])
  t.equal(code, 0)
  t.notMatch(out, 'warning')
  t.match(out, /gateway\.yaml: good\. 3 upstreams, 5 projects, 3 policy files, revision sha256:/)
  t.equal(err, '')
})

t.test('probable mistakes are reported at their places, and fail the check only with --strict', async t => {
  const { code, out } = await sluice(['check', '--config', LINT])
  t.equal(code, 0)
  const lines = out.split('\n').map(line => line.replaceAll(`${LINT}/`, ''))
  const isReported = (start: string, sentence: string | RegExp) =>
    t.ok(
      lines.some(line => line.startsWith(start) && new RegExp(sentence).test(line)),
      `${start} ${sentence}`,
    )
  isReported('policies/project-limits.yaml:7:9 buckets.any[0]: warning:', '"/api/{id}/one" is more specific')
  isReported(
    'policies/project-limits.yaml:8:11 buckets.nobody: warning:',
    'No row gives bucket "nobody" a quota',
  )
  isReported(
    'policies/project-limits.yaml:9:15 buckets.elsewhere[0]: warning:',
    'No route leads to "/elsewhere"',
  )
  isReported(
    'policies/project-limits.yaml:15:12',
    '"sustained" can never refuse anybody: .* at most 60 requests',
  )
  isReported('policies/project-limits.yaml:16:12', '"burst" can never refuse anybody')
  isReported(
    'policies/project-limits.yaml:19:13',
    'note: Leases: never more than the quota is admitted; one gateway holds at most 4 unspent tokens for at most 500 ms',
  )
  isReported('policies/project-limits.yaml:26:5', '"self" are not watched for all plans in production')
  isReported('policies/rules.yaml:5:5 rules[1]: warning:', '"write" counts the same requests')
  isReported('policies/volumetric.yaml:6:10 rules[0].key: warning:', 'another "x-device" with each request')
  isReported('policies/volumetric.yaml:11:10 rules[1].key: note:', 'Each lives for at most 600 s')
  isReported('policies/volumetric.yaml:15:5 rules[2]: warning:', '"flood" counts the same requests')
  isReported(
    'policies/volumetric.yaml:20:12 rules[2].since: warning:',
    /Report-only since 2026-01-31, for \d+ days/,
  )
  isReported(
    'policies/volumetric.yaml:22:13 rules[3].match[0]: warning:',
    'counts nothing of "GET /self-service/feed" but the GET that opens a WebSocket',
  )
  isReported('projects.yaml:7:24 projects[0].overrides.scim: warning:', 'at most 600 requests')

  t.notMatch(out, /limits\[1\]\.quotas\.one/, 'a minute can touch 61 fixed windows of a second')
  t.notMatch(out, /"(tighter|per-pattern|write)" can never refuse/, 'rules that can refuse are not reported')
  t.equal((await sluice(['check', '--config', LINT, '--strict'])).code, 1)
  const patient = await sluice(['check', '--config', LINT, '--report-only-days', '99999'])
  t.notMatch(patient.out, 'Report-only since')
})

t.test('check says what looks on and is not', async t => {
  const warned = async (gateway: string, policy = ONE_RULE) => {
    const folder = folderWith(t.testdir(), policy)
    writeFileSync(join(folder, 'gateway.yaml'), GATEWAY + gateway)
    const { code, out } = await sluice(['check', '--config', folder])
    t.equal(code, 0)
    return out.replace(/\s+/g, ' ')
  }
  const unknown = (by: string) => `unknownProject: { plan: growth, environment: staging, countBy: ${by} }\n`
  t.match(await warned(unknown('host')), 'unknownProject.countBy: warning: A client chooses its Host')
  t.notMatch(await warned(unknown('client')), 'warning')
  t.match(
    await warned('apiKeys: api-keys.json\n'),
    'apiKeys: warning: No key of this file lets anybody in: add api-key to "identify".',
  )
  t.notMatch(await warned('apiKeys: api-keys.json\nidentify: [api-key, host]\n'), 'warning')
  for (const network of ['0.0.0.0/0', '::/0', '0.0.0.0/1', '::ffff:0:0/96', '2000::/7', '2001::/16'])
    t.match(
      await warned(`trustedProxies: ["${network}"]\n`),
      /trustedProxies\[0\]: warning: .* holds clients too/,
    )
  t.notMatch(
    await warned('trustedProxies: [10.0.0.0/8, "fc00::/7", "fe80::/10", "2a01:c000::/19"]\n'),
    'warning',
  )

  const rules = `version: 1
kind: volumetric
rules:
  - { id: api, match: [/api/**], key: [client-ip], quota: { requests: 5, per: 1m } }
  - { id: all, match: [/all/**, POST /one], key: [client-ip], reads: true, quota: { requests: 5, per: 1m } }
  - { id: hosts, match: [POST /h], key: ["header:host", client-ip], missing: skip, quota: { requests: 5, per: 1m } }
  - { id: nobody, match: [POST /n], key: [client-ip], when: { authenticated: true }, quota: { requests: 5, per: 1m } }
`
  const told = await warned('credentials: { headers: [], cookies: [] }\n', rules)
  t.match(
    told,
    'Methods: "api" counts every method but GET, HEAD and OPTIONS; "all" counts every method; "hosts" and "nobody" count POST.',
  )
  t.match(
    told,
    'rules[2].key: warning: A client that sends another "host" with each request is never limited',
  )
  t.match(told, 'warning: Rule "nobody" looks at no request')
})

t.test('check names rules that can never hold, and what lifts all limits', async t => {
  const volumetric = (more: string) =>
    `version: 1\nkind: volumetric\nrules: [{ id: one, match: [POST /a], quota: { requests: 5, per: 1m }, ${more} }]\n`
  const warned = async (policy: string, gateway = '') => {
    const folder = folderWith(t.testdir(), policy)
    writeFileSync(join(folder, 'gateway.yaml'), GATEWAY + gateway)
    writeFileSync(
      join(folder, 'projects.yaml'),
      'version: 1\nprojects: [{ id: acme, plan: growth, environment: production, hosts: [acme.test] }]\n',
    )
    const { code, out } = await sluice(['check', '--config', folder])
    t.equal(code, 0)
    return out.replace(/\s+/g, ' ')
  }
  const when = (text: string) => volumetric(`key: [client-ip], when: { ${text} }`)
  const unmet =
    /when\.projects: warning: Rule "one" looks at no request: none of these projects has such a plan/
  t.match(await warned(when('projects: [acme], plans: [scale]')), unmet)
  t.match(await warned(when('projects: [acme], environments: [staging]')), unmet)
  t.match(await warned(when('projects: ["host:a.test"], plans: [scale]')), unmet)
  t.match(
    await warned(when('projects: ["host:a.test"], plans: [developer]'), 'unknownProject: reject\n'),
    unmet,
  )
  for (const met of [
    'projects: [acme], plans: [growth, scale]',
    'projects: ["host:a.test"], plans: [developer]',
  ])
    t.notMatch(await warned(when(met)), 'warning', met)

  const by = (missing: string) => volumetric(`key: [ja4], missing: ${missing}, mode: enforce`)
  t.match(
    await warned(by('skip')),
    /rules\[0\]\.key: warning: Rule "one" looks at no request: there is no ja4/,
  )
  t.match(await warned(by('shared')), 'Rule "one" counts all requests together: there is no ja4')
  t.match(await warned(by('deny')), 'Rule "one" refuses every request: there is no ja4')
  t.notMatch(await warned(by('skip'), 'trustedProxies: [10.0.0.1]\n'), 'warning')

  const access = (network: string) =>
    `version: 1\nkind: access\nrules: [{ id: all, networks: ["${network}"], action: exempt, mode: enforce }]\n`
  t.match(await warned(access('0.0.0.0/0')), 'rules[0].networks[0]: warning: 0.0.0.0/0 holds clients too')
  t.notMatch(await warned(access('10.0.0.0/8')), 'warning')
})

t.test('an upstream that is one of the two ports is told', async t => {
  const warned = async (url: string, ports: string) => {
    const folder = folderWith(t.testdir(), ONE_RULE)
    writeFileSync(join(folder, 'gateway.yaml'), GATEWAY.replace('http://127.0.0.1:1', url) + ports)
    return (await sluice(['check', '--config', folder])).out
  }
  t.match(
    await warned('http://localhost:8081', ''),
    '(admin.port): clients could change what the gateway does',
  )
  t.match(await warned('http://10.0.0.5:90', 'listen: { host: 10.0.0.5, port: 90 }\n'), '(listen.port): each')
  t.match(await warned('https://127.0.0.1', 'listen: { port: 443 }\n'), '(listen.port): each')
  t.notMatch(await warned('http://127.0.0.1:0', 'listen: { port: 0 }\n'), 'this gateway itself')
  for (const ports of ['listen: { host: 10.0.0.5, port: 90 }\n', 'listen: { port: 80 }\n'])
    t.notMatch(await warned('https://127.0.0.1:90', ports), 'this gateway itself', ports)
})

t.test('without any policy file check warns that nothing is limited', async t => {
  const folder = t.testdir({
    'gateway.yaml': GATEWAY,
    'projects.yaml': 'version: 1\nprojects: []\n',
    policies: {},
  })
  const { out, code } = await sluice(['check', '--config', folder, '--strict'])
  t.equal(code, 1)
  t.match(out, /policies: warning: There are no policy files/)
})

t.test('a plugin that is missing hides no other problem', async t => {
  const folder = folderWith(t.testdir(), 'version: 1\nkind: in-flight\nrules: [{ id: A }]\n')
  writeFileSync(
    join(folder, 'gateway.yaml'),
    `${GATEWAY}plugins: [./missing.js]\nidentify: [host, nosuch]\ncors: ehco\n`,
  )
  const { err } = await sluice(['check', '--config', folder])
  for (const sentence of ['There is no plugin at "./missing.js"', 'nosuch', 'but it is "ehco"', 'a.yaml:3:'])
    t.match(err, sentence)
})

t.test('--json reports the same for machines', async t => {
  const { code, out } = await sluice([
    'check',
    '--config',
    LINT,
    '--json',
    '--table',
    '--report-only-days',
    '99999',
  ])
  t.equal(code, 0)
  matchesGolden(t, out, 'check.json')
  const broken = await sluice(['check', '--config', join('test', 'fixtures', 'bad', 'tie'), '--json'])
  t.equal(broken.code, 1)
  matchesGolden(t, broken.out, 'check-broken.json')
})

t.test('errors end the check with exit code 1 and without warnings', async t => {
  const { code, out, err } = await sluice(['check', '--config', join('test', 'fixtures', 'bad', 'tie')])
  t.equal(code, 1)
  t.equal(out, '')
  t.match(err, /project-limits\.yaml:\d+:\d+ .* ties with/)
})

t.test('a bucket left out of one row only is reported, and one left out of most rows is not', async t => {
  const quotas = (names: string) => `quotas: { ${names.replace(/\w+/g, '$&: { burst: 1, sustained: 10 }')} }`
  const dir = folderWith(
    t.testdir(),
    `version: 1
kind: project-limits
buckets: { login: [POST /login], rare: [/rare], all: ["*"] }
limits:
  - for: [{ environments: [development] }]
    ${quotas('login, rare, all')}
  - for: [{ environments: [staging] }]
    ${quotas('login, all')}
  - for: [{ environments: [production] }]
    ${quotas('all')}
`,
  )
  const { out } = await sluice(['check', '--config', dir])
  t.match(
    out,
    /a\.yaml:9:5 limits\[2\]: warning: Every row but this one gives bucket "login" a quota. Here its requests fall to "all"/,
  )
  t.notMatch(out, '"rare"')
})

t.test('a pattern without any request on a route is reported', async t => {
  const policy = `version: 1
kind: project-limits
buckets:
  all: ["*"]
  one: ["/{area}/one"]
  named: ["POST /{area}/{id}"]
  deep: ["/api/v1/users/{id}/name"]
  beside: ["/apis/**"]
  deeper: ["/{area}/users/{id}"]
limits:
  - for: [{ environments: [development, staging, production] }]
    quotas: { ${['all', 'one', 'named', 'deep', 'beside', 'deeper']
      .map(name => `${name}: { burst: 1, sustained: 10 }`)
      .join(', ')} }
`
  const dir = folderWith(t.testdir(), policy)
  const routes = 'routes: [{ path: /api/v1/**, upstream: a }, { path: /only/one, upstream: a }]'
  writeFileSync(join(dir, 'gateway.yaml'), GATEWAY.replace(/routes: .*/, routes))
  const { out, err } = await sluice(['check', '--config', dir])
  t.equal(err, '')
  t.same(
    [...out.matchAll(/No route leads to ("[^"]+")/g)].map(([, pattern]) => pattern),
    ['"/apis/**"', '"/{area}/users/{id}"'],
  )
})

t.test('the table shows the limits in force, for each row and for one project', async t => {
  const { code, out } = await sluice(['check', ...SHIPPED, '--table'], { columns: 160 })
  t.equal(code, 0)
  t.match(out, /^all plans in development and staging; developer in production$/m)
  t.match(out, /^production and essential in production$/m)
  t.match(out, /^enterprise in production$/m)
  t.match(out, /^identities-create +- +- +falls to catch-all/m)
  t.match(out, /^registration-flood +100 per 10 s, then blocked for 60 s, without credentials/m)

  const project = await sluice(['check', ...SHIPPED, '--project', 'acme-production'])
  t.match(project.out, /^acme-production: growth\/production, with its own catch-all$/m)
  t.match(project.out, /^catch-all +600 +12,000 +- +projects\.yaml:9$/m)
  t.notMatch(project.out, 'enterprise in production')
})

t.test('the table fits forty columns', async t => {
  const { out } = await sluice(['check', ...SHIPPED, '--table'], { columns: 40 })
  const table = out.slice(out.indexOf('revision'))
  t.match(table, /^catch-all\n {2}per second: 5\n {2}per minute: 150\n/m)
  const long = table
    .split('\n')
    .slice(1)
    .filter(line => line.length > 40)
  t.same(
    long.filter(line => !/^ {2}(Limit|Counted by|Written at): /.test(line)),
    [],
    'only cells of a single value are longer',
  )
})

t.test('an unknown project or an invalid number of days is refused with exit code 2', async t => {
  const unknown = await sluice(['check', ...SHIPPED, '--project', 'acme-productoin'])
  t.match(unknown, { code: 2, err: /There is no project "acme-productoin"\. Did you mean acme-production\?/ })
  t.match(await sluice(['check', ...SHIPPED, '--report-only-days', 'soon']), {
    code: 2,
    err: /whole number of days/,
  })
  const { err } = await sluice(['check', ...SHIPPED, '--report-only-days', '-1'])
  t.match(err, /starting with a dash use '--report-only-days=-XYZ'\. See "sluice check --help"\.\n$/)
  t.notMatch(err.trimEnd(), '\n', 'the message is one line')
})

t.test('every schema can be printed, by name or all together', async t => {
  for (const name of (await sluice(['schema'])).out.trim().split('\n')) {
    const { code, out } = await sluice(['schema', name])
    t.equal(code, 0)
    t.equal(JSON.parse(out).$schema, 'http://json-schema.org/draft-07/schema#', name)
  }
  t.same(Object.keys(JSON.parse((await sluice(['schema', '--json'])).out)), [
    'gateway',
    'projects',
    'project-limits',
    'access',
    'in-flight',
    'volumetric',
  ])
  t.match(await sluice(['schema', '--config', 'no/where']), {
    code: 2,
    out: '',
    err: 'no/where: The file cannot be read: it does not exist.\n',
  })
  t.match(await sluice(['schema', 'volumetrik']), { code: 2, err: /Did you mean volumetric\?/ })
})

t.test('patterns that never count and conditions on unverified credentials are reported', async t => {
  const rule = (id: string, rest: string) =>
    `  - { id: ${id}, key: [client-ip], quota: { requests: 9, per: 1m }, ${rest} }`
  const policy = [
    'version: 1',
    'kind: volumetric',
    'rules:',
    rule('inert', 'match: [GET /a, HEAD /a, OPTIONS /a, POST /a]'),
    rule('reading', 'match: [GET /b, HEAD /b, OPTIONS /b], reads: true, countWhen: { status: [401, 4xx] }'),
    rule('checked', 'match: [POST /c], when: { authenticated: verified, plans: [growth, scale] }, cost: 2'),
  ].join('\n')
  const dir = folderWith(t.testdir(), policy)
  const { code, out } = await sluice(['check', '--config', dir, '--table'])
  t.equal(code, 0)
  for (const method of ['GET', 'HEAD', 'OPTIONS']) {
    t.match(out, new RegExp(`match\\[\\d\\]: warning: Rule "inert" counts nothing of "${method} /a"`))
  }
  t.notMatch(out, /"reading" counts nothing/)
  t.match(
    out,
    /a\.yaml:6:\d+ rules\[2\]\.when\.authenticated: warning: Rule "checked" looks at no request: none .* checks a credential\. Those that do: api-key, jwt or client-certificate\./,
  )
  const table = out.replace(/\s+/g, ' ')
  t.match(table, /9 per 60 s, only those answered 401, 4xx, reads too/)
  t.match(table, /9 per 60 s, 2 each, with verified credentials, of plans growth and scale/)
  const gateway = join(dir, 'gateway.yaml')
  writeFileSync(gateway, `${readFileSync(gateway, 'utf8')}\nidentify: [api-key, host]\n`)
  t.notMatch((await sluice(['check', '--config', dir])).out, 'checks a credential')
})

t.test(
  'a window that counts for another length in another row is noted: windows are known by name',
  async t => {
    const folder = folderWith(
      t.testdir({}),
      `version: 1
kind: project-limits
buckets: { all: ["*"] }
limits:
  - for: [{ plans: [growth] }]
    quotas: { all: { windows: [{ name: long, requests: 9, per: 1h }] } }
  - for: [{ plans: [developer, production, essential, scale, enterprise] }]
    quotas: { all: { windows: [{ name: long, requests: 90, per: day }] } }
`,
    )
    const { out } = await sluice(['check', '--config', folder])
    t.match(out.replace(/\s+/g, ' '), '"long" counts per day (UTC) here and per hour in another row')
  },
)
