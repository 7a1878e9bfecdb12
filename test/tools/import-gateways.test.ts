/** What `sluice import` makes of other gateways' files means the same as before, according to `explain`. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { sluice } from '../helpers/command.js'
import { gatewayProcess } from '../helpers/gateway-process.js'
import { send, startApp } from '../helpers/http.js'
import { inProject } from '../helpers/root.js'

interface Told {
  readonly upstream: string
  readonly bucket: { readonly name: string } | null
  readonly project: { readonly id: string; readonly plan: string }
  readonly rules: readonly {
    readonly rule: string
    readonly mode: string
    readonly skipped: string | null
    readonly counters: readonly {
      readonly policy: string
      readonly q: number
      readonly w_ms: number | null
    }[]
  }[]
  readonly access: readonly { readonly action: string }[]
}

/** A folder imported from the fixture, and what `explain` says about requests to it. */
async function imported(t: Test, format: string, fixture: string) {
  const folder = join(t.testdir(), 'made')
  const { code, err } = await sluice([
    'import',
    format,
    inProject('test', 'fixtures', 'import', fixture),
    '--output',
    folder,
  ])
  t.match(await sluice(['check', '--config', folder]), { code: 0 })
  const told = async (method: string, path: string, ...more: string[]): Promise<Told> =>
    JSON.parse((await sluice(['explain', method, path, '--config', folder, '--json', ...more])).out)
  /** Each rule with its quotas, such as `login 1/12s`; slots as `addr 10`. */
  const limits = async (method: string, path: string, ...more: string[]): Promise<string[]> =>
    (await told(method, path, ...more)).rules
      .filter(({ skipped }) => skipped === null)
      .map(({ rule, counters }) =>
        [rule, ...counters.map(({ q, w_ms }) => (w_ms === null ? `${q}` : `${q}/${w_ms / 1000}s`))].join(' '),
      )
  return { folder, code, err, told, limits }
}

t.test(
  'Kong: the nearest plugin of a route applies, consumers become projects, and their limits plans',
  async t => {
    const { code, err, told, limits } = await imported(t, 'kong', 'kong.yaml')
    const partner = ['--header', 'apikey: partner-key-0123456789']
    const search = ['--host', 'search.example.com']
    const mobile = ['--header', 'apikey: mobile-key-0123456789']
    t.same(
      await limits('GET', '/orders/7', ...mobile),
      ['orders-list-60s 20/60s'],
      'a route can be limited by address',
    )
    t.equal((await told('GET', '/orders/7')).upstream, null, 'a request without a key is refused, as in Kong')
    t.match(await told('GET', '/orders/7', ...mobile), {
      upstream: 'orders',
      project: { id: 'mobile-app', plan: 'any' },
    })
    t.same(
      await limits('POST', '/orders', ...mobile),
      ['orders 5/1s 10000/3600s'],
      'a route without a limit has that of its service',
    )
    t.same(
      await limits('GET', '/search/x', ...search, ...mobile),
      ['global 60/60s'],
      'a service without a limit has the global one',
    )
    t.same(await limits('GET', '/search/x', ...search, ...partner), ['everywhere 100/60s 5000/3600s'])
    t.same(
      await limits('GET', '/orders/7', '--project', 'batch'),
      ['everywhere 5/60s'],
      'the limit of a consumer replaces that of the route',
    )
    t.equal(code, 1)
    for (const line of [
      /kong\.yaml:20:9 .*"~\/old\/orders/,
      /the plugin "cors"/,
      /"rate-limiting", which is not enabled/,
      /a limit by year/,
      /the Redis of this limit\. It is "redis" in gateway\.yaml/,
    ]) {
      t.match(err, line)
    }
  },
)

t.test(
  'nginx: zones become meters of the same rate, locations inherit limits, and allowlists become exemptions',
  async t => {
    const { code, err, told, limits } = await imported(t, 'nginx', 'nginx.conf')
    const www = ['--host', 'www.example.com', '--ip', '203.0.113.4']
    t.same((await limits('GET', '/', ...www)).sort(), ['addr 10', 'perip 30/3s'])
    t.same(
      (await limits('POST', '/login', ...www)).sort(),
      ['addr 10', 'login 1/12s'],
      'a location has its own',
    )
    t.same(await limits('GET', '/download/a', '--host', 'files.example.com'), ['addr-2 2'])
    t.match(await told('GET', '/download/a', '--host', 'files.example.com'), { upstream: 'files' })
    const api = await told('GET', '/api/x', ...www, '--header', 'x-api-key: k')
    t.match(
      api.rules.find(({ rule }) => rule === 'perkey'),
      { mode: 'report-only', counters: [{ q: 100, w_ms: 1000 }] },
      'a zone in a dry run becomes a report-only rule',
    )
    t.match(await told('GET', '/', '--host', 'www.example.com', '--ip', '10.1.2.3'), {
      access: [{ action: 'exempt' }],
    })
    t.equal(code, 1)
    for (const line of [
      /nginx\.conf:15:5: Left out: the zone "peruser"/,
      /nginx\.conf:42:13: Left out: "limit_req" of the zone "peruser"/,
      /nginx\.conf:30:9: Not the same: up to 30 pass at once and then one each 100 ms, where nginx lets 21 pass/,
      /nginx\.conf:46:9: Lost: .*"\.php" was in location ~ \\\.php\$, closed to everybody\. It is under "closed"/,
      /nginx\.conf:23:9: Left out: "server unix:/,
    ]) {
      t.match(err, line)
    }
  },
)

t.test('Traefik: middlewares and chains limit the requests of their routers', async t => {
  const { code, err, told, limits } = await imported(t, 'traefik', 'traefik.yaml')
  const api = ['--host', 'api.example.com']
  t.same((await limits('POST', '/api/x', ...api)).sort(), ['api-busy 10', 'api-per-ip 200/2s'])
  t.same(await limits('GET', '/api/x', ...api), [], 'another method is not limited')
  t.same(await limits('POST', '/api/x', '--host', 'other.example.com'), [], 'another host is not limited')
  t.equal((await told('GET', '/', ...api)).upstream, 'site', 'a router with a wildcard takes what is left')
  t.equal((await told('GET', '/')).upstream, null, 'a router with an unknown middleware is left out')
  t.equal(code, 1)
  for (const line of [
    /"entryPoints"/,
    /Lost: the search for clients’ addresses in X-Forwarded-For/,
    /Lost: \/\*\* was behind the middleware "elsewhere", which is not in this file/,
    /the middleware "unused"\. No router uses it/,
    /a health check passes with 2xx alone/,
  ]) {
    t.match(err, line)
  }
})

t.test('Envoy: descriptors of known keys become rules, and nested ones a single rule', async t => {
  const { code, err, told, limits } = await imported(t, 'ratelimit', 'ratelimit.yaml')
  t.same(await limits('GET', '/', '--ip', '192.0.2.1'), ['edge-remote-address 100/60s'])
  t.same((await limits('GET', '/', '--ip', '203.0.113.5')).sort(), [
    'edge-remote-address 100/60s',
    'edge-remote-address-2 10/60s',
  ])
  t.match(await told('GET', '/', '--ip', '198.51.100.7'), { access: [{ action: 'exempt' }] })
  const login = await told('POST', '/login', '--ip', '192.0.2.1')
  t.match(
    login.rules.find(({ mode }) => mode === 'report-only'),
    { counters: [{ q: 30, w_ms: 3_600_000 }] },
  )
  t.equal(code, 1)
  for (const line of [
    /ratelimit\.yaml:13:17 .*a limit above the one without this value/,
    /ratelimit\.yaml:22:17 .*a limit by month/,
    /ratelimit\.yaml:23:5 .*"message_type" and all below it/,
    /Not the same: the file names no upstream/,
  ]) {
    t.match(err, line)
  }
})

t.test('a gateway with an imported configuration refuses requests over the limit', async t => {
  const { folder } = await imported(t, 'nginx', 'nginx.conf')
  const app = await startApp(t, (_req, res) => res.end('done'))
  const file = join(folder, 'gateway.yaml')
  const text = readFileSync(file, 'utf8').replace(/urls:\n(?: +- .*\n)+/, `url: "${app}"\n`)
  writeFileSync(
    file,
    `${text}listen: { host: 127.0.0.1, port: 0, maxEventLoopDelay: 1h }\nadmin: { host: 127.0.0.1, port: 0 }\n`,
  )
  const gateway = await gatewayProcess(t, folder)
  const ask = async () =>
    (await send(`${gateway.url}/login`, { method: 'POST', headers: { host: 'www.example.com' } })).status
  t.same([await ask(), await ask()], [200, 429], 'one request passes in twelve seconds')
})

const from = (t: Test, format: string, text: string, ...more: string[]) => {
  const file = join(t.testdir(), 'given')
  writeFileSync(file, text)
  return sluice(['import', format, file, ...more])
}

t.test('passwords of the files are neither printed nor written', async t => {
  for (const [format, text] of [
    ['nginx', 'server { location / { proxy_pass http://canary:canary@app:1; } }'],
    ['nginx', 'server { location / { proxy_pass http://canary:canary@app:1/x; } }'],
    ['nginx', 'server { location / { proxy_pass http://canary:canary@$host; } }'],
    ['nginx', 'server { location / { proxy_pass http://canary:can/ary@app; } }'],
    ['nginx', 'upstream app { server canary:canary@app backup; server canary:canary@b; }'],
    ['kong', 'services: [{ name: a, url: "http://canary:canary@app/x", routes: [{ paths: [/] }] }]'],
    ['kong', 'services: [{ url: "http://canary:can/ary@app", routes: [{ paths: [/] }] }]'],
    [
      'traefik',
      'http: { routers: { a: { rule: "PathPrefix(`/`)", service: s } }, services: { s: { loadBalancer: { servers: [{ url: "http://canary:canary@app" }] } } } }',
    ],
  ] as const) {
    const { out, err } = await from(t, format, text)
    t.notMatch(out + err, /canary|can\/|ary/, text)
    t.match(err, /password|no http|fixed http|share the requests/, text)
  }
})

t.test('invalid files are reported, and do not crash the command', async t => {
  for (const format of ['kong', 'nginx', 'traefik', 'ratelimit']) {
    for (const text of ['', '[]', 'a', '{', '}', '"', 'a: [1, {b: ', '%', '\0', '{{{{'.repeat(2000)]) {
      const folder = join(t.testdir(), 'made')
      const { code, err } = await from(t, format, text, '--output', folder)
      const what = `${format}: ${text.slice(0, 20)}`
      if (code === 2) {
        t.match(err, /given:\d+:\d+: .*\nThis file cannot be imported\.\n$/, what)
        t.notOk(existsSync(folder), 'no configuration without its limits is written')
      } else t.match(err, /given:\d+:\d+.*: (Left out|Not the same): |0 things left out/, what)
    }
  }
  t.match(
    (await from(t, 'nginx', 'http {\n  server { location / { } }\n')).err,
    /given:1:1: .*"http" is not closed/,
  )
  t.match((await from(t, 'nginx', 'a "b')).err, /given:1:3: .*A quoted text does not end/)
  const deep = `http: { routers: { a: { rule: "${'('.repeat(20_000)}", service: s } } }`
  t.match((await from(t, 'traefik', deep)).err, /given:1:25 .*It is nested deeper than 100 levels/)
  t.match(
    (await from(t, 'traefik', 'kind: Middleware\n')).err,
    /This is not a Traefik dynamic configuration: it has none of http and entryPoints/,
  )
})

t.test('limits that do not fit a policy are left out, so that the files pass the check', async t => {
  const odd: Record<string, string> = {
    kong: 'services: [{ name: "Ünï", url: "ftp://x", routes: [{ paths: ["/a{b", "/**x"] }], plugins: [{ name: rate-limiting, config: { minute: -1, second: 0.5, hour: 99999999999 } }] }]',
    nginx:
      'limit_req_zone $binary_remote_addr zone=a:1m rate=1r/m; server { location "/$x{y" { limit_req zone=a burst=9999; } location /y { limit_req zone=a burst=x; proxy_pass http://$host; } }',
    traefik:
      'http: { routers: { r: { rule: "Path(`/a`) && Path(`/b`)" }, s: { rule: "PathPrefix(`/x/`) || (", middlewares: [m] } }, middlewares: { m: { rateLimit: { average: 0.001, burst: 9, period: 5x } }, c: { chain: { middlewares: [c] } } } }',
    ratelimit:
      'descriptors: [{ key: remote_address, value: not-an-address, rate_limit: { unit: minute, requests_per_unit: 5 } }, { key: path, value: nowhere, rate_limit: { unit: day, requests_per_unit: 0 } }]',
  }
  for (const [format, text] of Object.entries(odd)) {
    const folder = join(t.testdir(), format)
    t.match(await from(t, format, text, '--output', folder), { code: 1, err: /Left out/ }, format)
    const { code, err, out } = await sluice(['check', '--config', folder])
    t.equal(code, 0, `${format}: ${out}${err}`)
  }
})

t.test('each API key of Kong identifies one consumer at most, and empty keys are left out', async t => {
  const folder = join(t.testdir(), 'made')
  const text = `services: [{ name: a, url: "http://me:geheim@127.0.0.1:1/x", routes: [{ paths: [/] }] }]
plugins: [{ name: key-auth }]
consumers:
  - { username: ann, keyauth_credentials: [{ key: same }, { key: "" }, { key: 0123 }] }
  - { username: bob, keyauth_credentials: [{ key: same }, { key: bobs }] }
`
  const { code, err } = await from(t, 'kong', text, '--output', folder)
  t.equal(code, 1)
  t.match(await sluice(['check', '--config', folder]), { code: 0 })
  const projectOf = async (key: string) =>
    JSON.parse(
      (await sluice(['explain', 'GET', '/', '--config', folder, '--json', '--header', `apikey: ${key}`])).out,
    ).project?.id
  t.equal(await projectOf('same'), 'ann')
  t.equal(await projectOf('bobs'), 'bob')
  t.equal(await projectOf(''), undefined, 'a request without a key is refused, as in Kong')
  t.match(err, /given:4:59 .*a key that is not in the file/)
  t.match(err, /given:4:74 .*a key that is a number/)
  t.match(err, /given:5:46 .*a key that is already in the file/)
  t.match(err, 'the user and password of http://127.0.0.1:1')
  t.notMatch(err, 'geheim')
})

t.test('nginx: included files are read in place and reported by their own names', async t => {
  const folder = t.testdir({
    'nginx.conf':
      'http {\n include conf.d/*.conf;\n include none/*.conf;\n include gone.conf;\n include nginx.conf;\n}\n',
    'conf.d': {
      'b.conf':
        'server { include snippet; location / { proxy_pass http://127.0.0.1:1; } if ($a) { return 403; } }',
      'a.conf': 'limit_req_zone $binary_remote_addr zone=z:1m rate=1r/m;',
      '.hidden.conf': 'no',
    },
    snippet: 'limit_req zone=z;\nsendfile on;',
  })
  const made = join(folder, 'made')
  const { code, err } = await sluice(['import', 'nginx', join(folder, 'nginx.conf'), '--output', made])
  t.equal(code, 1)
  const { out } = await sluice(['explain', 'GET', '/x', '--config', made, '--json'])
  t.equal(
    JSON.parse(out).upstream,
    null,
    'an "if" with a refusal, or a file that is not there, may have refused anything',
  )
  for (const line of [
    /Not needed: sendfile \(1\)/,
    /nginx\.conf:3:2: Left out: "include none\/\*\.conf"\. There is no such file here/,
    /nginx\.conf:4:2: Left out: "include gone\.conf"\. .* it does not exist/,
    /nginx\.conf:5:2: Left out: .* It includes itself/,
    /nginx\.conf:4:2: Lost: \/\*\* was with "include gone\.conf", which cannot be read, .*refused by an "if \(\$a\)"/,
  ]) {
    t.match(err, line)
  }
  writeFileSync(join(folder, 'snippet'), 'a {')
  t.match(await sluice(['import', 'nginx', join(folder, 'nginx.conf')]), {
    code: 2,
    err: /snippet:1:1: The block of "a" is not closed/,
  })
})

t.test('paths with spaces or other scripts, and a host listed twice, keep their limits', async t => {
  const zone = 'limit_req_zone $binary_remote_addr zone=z:1m rate=1r/m;'
  const nginx = `${zone} server { server_name A.com a.com; limit_req zone=z; location "/über uns" { proxy_pass http://127.0.0.1:1; } } server { server_name b.com; }`
  const traefik =
    'http: { routers: { r: { rule: "Path(`/über uns`)", service: s, middlewares: [m] } }, services: { s: { loadBalancer: { servers: [{ url: "http://127.0.0.1:1" }] } } }, middlewares: { m: { rateLimit: { average: 1, period: 1m } } } }'
  for (const [format, text] of Object.entries({ nginx, traefik })) {
    const folder = join(t.testdir(), format)
    await from(t, format, text, '--output', folder)
    const { out } = await sluice([
      'explain',
      'GET',
      '/%c3%bcber%20uns',
      '--host',
      'a.com',
      '--config',
      folder,
      '--json',
    ])
    t.same(
      JSON.parse(out).rules.map(({ skipped }: { skipped: string | null }) => skipped),
      [null],
      format,
    )
    t.ok(JSON.parse(out).upstream, format)
  }
})

t.test('an existing folder is left unchanged, and wrong arguments are refused', async t => {
  const folder = t.testdir({ here: {} })
  const fixture = inProject('test', 'fixtures', 'import', 'kong.yaml')
  t.match(await sluice(['import', 'kong', fixture, '--output', join(folder, 'here')]), {
    code: 2,
    err: /here already exists/,
  })
  t.match(await sluice(['import', 'kong', fixture, '--output', join(folder, 'none', 'here')]), {
    code: 2,
    err: /none\/here cannot be written: nothing can be created there/,
  })
  t.notOk(existsSync(join(folder, 'here', 'gateway.yaml')))
  t.match(await sluice(['import', 'nginx', fixture, fixture]), { code: 2, err: /reads one file/ })
  t.match(await sluice(['import', 'kong', fixture, fixture]), { code: 2, err: /This is not kong\.conf/ })
  t.match(await sluice(['import', 'kong', fixture, '--by', 'tag']), {
    code: 2,
    err: /--by is for openapi only/,
  })
  t.match(await sluice(['import', 'ngnix', fixture]), { code: 2, err: /Did you mean "?nginx"?/ })
  const { out } = await sluice(['import', 'kong', fixture])
  t.match(out, /^# ==> gateway\.yaml <==\nversion: 1\n/)
  const json = JSON.parse((await sluice(['import', 'kong', fixture, '--json'])).out)
  t.same(Object.keys(json.files), [
    'gateway.yaml',
    'projects.yaml',
    'policies/volumetric.yaml',
    'policies/project-limits.yaml',
  ])
})

t.test('Envoy: a limit of several units is compared by its whole window', async t => {
  const text = (own: string, general: string) =>
    `domain: edge
descriptors:
  - { key: remote_address, rate_limit: { ${general} } }
  - { key: remote_address, value: 203.0.113.5, rate_limit: { ${own} } }
`
  const hour = 'unit: minute, unit_multiplier: 60, requests_per_unit: 100'
  const minute = 'unit: minute, requests_per_unit: 50'
  const ABOVE = /a limit above the one without this value/
  const tighter = await from(t, 'ratelimit', text(hour, minute))
  t.notMatch(tighter.err, ABOVE, '100 an hour are fewer than 50 a minute')
  t.match(tighter.out, 'requests: 100, per: 3600s')
  const wider = await from(t, 'ratelimit', text(minute, hour))
  t.match(wider.err, ABOVE, '50 a minute are more than 100 an hour')
  t.notMatch(wider.out, 'requests: 50')
})

t.test('Traefik: periods are durations of Go, or whole seconds', async t => {
  const rules = (period: string) =>
    from(
      t,
      'traefik',
      `http:
  routers: { r: { rule: "PathPrefix(\`/\`)", service: s, middlewares: [m] } }
  services: { s: { loadBalancer: { servers: [{ url: "http://127.0.0.1:1" }] } } }
  middlewares: { m: { rateLimit: { average: 3, burst: 3, period: ${period} } } }
`,
    )
  for (const [period, window] of [
    ['1.5s', 'per: 2s }'],
    ['1h30m', 'per: 5400s }'],
    ['300ms', 'burst: 10,'],
    ['1m1.5s', 'per: 62s }'],
    ['.5m', 'per: 30s }'],
    ['2500000us', 'per: 3s }'],
    ['10', 'per: 10s }'],
    ['"10"', 'per: 10s }'],
    ['1m', 'sustained: 3,'],
  ]) {
    t.match((await rules(period as string)).out, window as string, String(period))
  }
  for (const period of ['5x', '1.5', '1m 2s', '1s2', '-1s', '1.2.3s', '""', '9e9h']) {
    const { out, err } = await rules(period)
    t.match(err, `Left out: a rate with the period "${period.replaceAll('"', '')}", which is not`, period)
    t.notMatch(out, 'quota', period)
  }
})
