/**
 * What other gateways answered themselves, or sent on with another path, stays away from upstreams after `sluice
 * import`: an upstream gets no request that never reached it before.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { sluice } from '../helpers/command.js'
import { gatewayProcess } from '../helpers/gateway-process.js'
import { send, startApp } from '../helpers/http.js'
import { fixture, play, type Scene } from '../helpers/imported.js'
import { nginxServing } from '../helpers/nginx.js'

const SCENES: Readonly<Record<string, Scene>> = {
  'nginx: redirects, files, rewrites, conditions and other paths for the upstream': {
    format: 'nginx',
    files: ['nginx-away.conf'],
    shut: [
      ...['/account/', '/beta/x', '/old-admin', '/old-admin/users', '/metrics', '/assets/a.css', '/legacy'],
      ...[
        '/included/x',
        '/part/old/x',
        '/tenant/x',
        '/loose/x',
        '/internal/debug',
        '/internal/trace/x',
        '/wp-admin/x',
        '/moved/x',
        '/feed/',
      ],
    ]
      .map(path => `shop.example.com${path}`)
      .concat('old.example.com/x'),
    open: [
      ...[
        '/',
        '/cart',
        '/cors/x',
        '/same/x',
        '/params/x',
        '/part/x',
        '/feeds',
        '/v1/items/3',
        '/api/x',
        '/files/x',
        '/a.css',
        '/internal/other',
      ].map(path => `shop.example.com${path}`),
      'any.example.com/x',
    ],
    says: [
      /Lost: shop\.example\.com \/account\/\*\* was sent elsewhere by an "if \(\$is_member = 0/,
      /\/included\/\*\* was with "include snippets\/not-here\.conf", which cannot be read\./,
      /Lost: the field X-Remote-User, which nginx sets or removes\./,
      /Left out: shop\.example\.com \/old-admin\/\*\* was sent to https:\/\/vpn\.example\.com\/\. It is under "closed"/,
      /Left out: shop\.example\.com \/assets\/\*\* was served by root\./,
      /\/legacy\/\*\* was rewritten to \/login\./,
      /\/wp-admin\/\*\* was rewritten to \/blog\/\$1/,
      /"proxy_pass http:\/\/127\.0\.0\.1:3001\/public"\. The upstream got no other paths/,
      /location ~ \\\.css\$ and all in it\. .* without its own limits\./,
    ],
  },
  'nginx: servers on other ports, and servers that no host leads to': {
    format: 'nginx',
    files: ['nginx-ports.conf'],
    shut: [],
    open: ['www.example.com/', 'other.example.com/x', 'admin.example.com/x'],
    gateway: [/^(?![\s\S]*127\.0\.0\.1:300[123])/],
    says: [
      /a server was reachable at 8081 alone/,
      /admin\.example\.com was reachable at 8443 alone/,
      /a server without a name that is not the default one of its address/,
    ],
  },
  'nginx: a file of users without auth_basic guards nothing': {
    format: 'nginx',
    files: ['nginx-file-of-users.conf'],
    shut: ['localhost/staff/x'],
    open: ['localhost/x'],
    says: [/\/staff\/\*\* was behind auth_basic "Staff"\. /],
  },
  'Kong: paths before those of requests, transformers, expressions and services without an address': {
    format: 'kong',
    files: ['kong-away.yaml'],
    shut: ['/orders/reports/7', '/orders/only', '/orders/calls', '/orders/orphan'].map(
      path => `localhost${path}`,
    ),
    open: [
      'localhost/',
      'localhost/store/v2/x',
      'localhost/orders/7',
      'localhost/fields',
      'localhost/orders/off',
    ],
    says: [
      /the field x-user is always set, by Kong only where there is none/,
      /\/orders\/only\/\*\* was sent on as \/maintenance\./,
      /\/orders\/calls\/\*\* was sent to the service "calls"\./,
    ],
    gateway: [
      /path: \/\*\*, upstream: shop, addPrefix: \/store/,
      /set: \{ x-user: guest \}\n +remove: \[x-admin\]/,
    ],
  },
  'Kong: the limit of a consumer beside one of every path': {
    format: 'kong',
    files: ['kong-ties.yaml'],
    shut: ['other.example.com/'],
    open: ['a.example.com/', 'b.example.com/b'],
    says: [/limits hold for the paths of their routes on every host/],
  },
  'Traefik: prefixes, replaced paths, redirects, expressions and other services': {
    format: 'traefik',
    files: ['traefik-away.yaml'],
    shut: [
      ...['/maint/x', '/moved', '/again/x', '/dashboard/x', '/files/12'].map(
        path => `site.example.com${path}`,
      ),
    ],
    open: [
      ...['site.example.com/', 'site.example.com/shared/x', 'api.example.com/api/x'],
      ...['sub.example.com/admin', 'kept.example.com/x'],
    ],
    gateway: [/addPrefix: \/public/, /addPrefix: \/base/, /stripPrefix: \/api/, /remove: \[x-user\]/],
    says: [
      /\/maint\/\*\* was sent on as \/maintenance\.html/,
      /\/dashboard\/\*\* was sent to "api@internal"/,
      /the router "beta" was reachable with Header\(X-Beta, 1\) alone\. It is left out\. .* without its own limits\./,
    ],
  },
  'Traefik: certificates that an entry point asks for': {
    format: 'traefik',
    files: ['traefik-points.yaml', 'traefik-points-static.yaml'],
    shut: ['bank.example.com/'],
    open: ['app.example.com/'],
    says: [
      /bank\.example\.com \/\*\* was behind certificates of clients \(tls options "mtls@file"\)/,
      /"certificatesResolvers"\. TLS is listen\.tls/,
      /"redirections"\./,
      /"serversTransport"\. The import does not read it\./,
      /Not needed: log \(1\)/,
    ],
  },
}

for (const [title, scene] of Object.entries(SCENES)) t.test(title, t => play(t, scene))

t.test('a real nginx forwards every path that the gateway forwards, under the same path', async t => {
  const app = await startApp(t, (req, res) => res.writeHead(200, { 'x-app': req.url }).end())
  const text = readFileSync(fixture('nginx-away.conf'), 'utf8')
    .replace(/if \(\$scheme = http\).*/, '')
    .replaceAll('$backend', '127.0.0.1:1')
    .replace('limit_req zone=none; ', '')
    .replace(/include [^;]*;/g, '')
    .replace(/location \/same.*/, '')
    .replaceAll(/http:\/\/127\.0\.0\.1:300\d/g, app)
  const nginx = await nginxServing(t, port => text.replaceAll(/listen 80\b/g, `listen 127.0.0.1:${port}`))
  if (nginx === undefined) return
  const folder = t.testdir({ 'nginx.conf': text })
  const made = join(folder, 'made')
  await sluice(['import', 'nginx', join(folder, 'nginx.conf'), '--output', made])
  const file = join(made, 'gateway.yaml')
  const ports =
    'listen: { host: 127.0.0.1, port: 0, maxEventLoopDelay: 1h }\nadmin: { host: 127.0.0.1, port: 0 }\n'
  writeFileSync(file, readFileSync(file, 'utf8') + ports)
  const gateway = await gatewayProcess(t, made)
  /** The path that the upstream gets, in normal form. */
  const forwarded = async (url: string, host: string, path: string) => {
    const { 'x-app': got } = (await send(url + path, { headers: { host } })).headers
    return got === undefined ? undefined : new URL(`http://x${String(got).replaceAll(/\/+/g, '/')}`).pathname
  }
  const paths = [...text.matchAll(/location (?:[=~^*]+ )?\^?(\/[\w/.-]*)/g)].flatMap(([, path = '']) => [
    path,
    `${path}x`,
    `${path.replace(/\/$/, '')}/x`,
    `${path.toUpperCase()}/x`,
    `/x/..${path}`,
  ])
  let passed = 0
  for (const host of ['shop.example.com', 'old.example.com', 'any.example.com']) {
    for (const path of [...paths, '/wp-admin/x', '/internal/debug']) {
      const got = await forwarded(gateway.url, host, path)
      if (got === undefined) continue
      passed += 1
      t.equal(got, await forwarded(nginx, host, path), `${host}${path}`)
    }
  }
  t.ok(passed > 30, 'and the gateway forwards some')
})

t.test('a geo may name the variable with the client’s address', async t => {
  const { out } = await sluice(['import', 'nginx', fixture('nginx-ports.conf')])
  t.match(out, 'networks: ["10.0.0.0/8"]')
  const folder = t.testdir({
    'nginx.conf': readFileSync(fixture('nginx-ports.conf'), 'utf8').replace(
      'geo $remote_addr',
      'geo $arg_ip',
    ),
  })
  const other = await sluice(['import', 'nginx', join(folder, 'nginx.conf')])
  t.notMatch(other.out, '10.0.0.0/8')
  t.match(other.err, 'the zone "perip". A rule cannot count by "$by"')
})

t.test('of nested networks of a geo the longest decides whether an address is exempt', async t => {
  const folder = t.testdir({
    'nginx.conf': `
      geo $limited { default 1; 10.0.0.0/8 0; 10.1.0.0/16 1; }
      map $limited $key { 0 ""; 1 $binary_remote_addr; }
      limit_req_zone $key zone=perip:1m rate=1r/m;
      server { location / { limit_req zone=perip; proxy_pass http://127.0.0.1:3000; } }`,
  })
  const made = join(folder, 'made')
  await sluice(['import', 'nginx', join(folder, 'nginx.conf'), '--output', made])
  const access = readFileSync(join(made, 'policies', 'access.yaml'), 'utf8')
  t.notMatch(access, '10.0.0.0/8')
  t.match(access, '10.0.0.0/16')
  t.notMatch(access, '10.1.0.0/16')
})

/** Imports descriptors of envoyproxy/ratelimit. */
async function described(t: Test, ...descriptors: readonly string[]) {
  const folder = t.testdir({ 'r.yaml': `domain: d\ndescriptors: [${descriptors.join(', ')}]\n` })
  const made = join(folder, 'made')
  const { err } = await sluice(['import', 'ratelimit', join(folder, 'r.yaml'), '--output', made])
  const checked = await sluice(['check', '--config', made])
  t.equal(checked.code, 0, checked.out + checked.err)
  const read = (name: string): string => readFileSync(join(made, name), 'utf8')
  return { err, read }
}

t.test('each path that a wildcard of envoyproxy/ratelimit matches has a counter of its own', async t => {
  const { read } = await described(
    t,
    '{ key: path, value: "/api/*", rate_limit: { unit: minute, requests_per_unit: 5 } }',
  )
  t.match(read('policies/volumetric.yaml'), 'match: [/api/**]')
  t.match(read('policies/volumetric.yaml'), 'key: [full-path]')
})

t.test('an exemption that is left out is not said to hold', async t => {
  const { err } = await described(
    t,
    '{ key: remote_address, value: 10.0.0.1, rate_limit: { unlimited: true } }',
    '{ key: remote_address, value: 10.0.0.2, rate_limit: { unit: minute, requests_per_unit: 0 } }',
  )
  t.match(err, 'Lost: the exemption of 10.0.0.1')
  t.notMatch(err, 'exempt from every limit')
})

t.test('addresses that two descriptors exempt are written once', async t => {
  const { read } = await described(
    t,
    '{ key: remote_address, value: 10.0.0.1, rate_limit: { unlimited: true } }',
    '{ key: masked_remote_address, value: 10.0.0.1/32, rate_limit: { unlimited: true } }',
  )
  t.equal(read('policies/access.yaml').match(/10\.0\.0\.1/g)?.length, 1)
})

t.test('a limit of no requests closes a path by whatever unit', async t => {
  const { err, read } = await described(
    t,
    '{ key: path, value: /a, rate_limit: { unit: month, requests_per_unit: 0 } }',
  )
  t.match(err, 'Lost: /a was closed by a limit of no requests.')
  t.match(read('gateway.yaml'), '- { path: /a }')
})

t.test('nothing of nginx is said to have no effect that has one', async t => {
  const lines = [
    'proxy_redirect http://a/ /',
    'proxy_ssl_verify off',
    'proxy_ssl_certificate a.pem',
    'proxy_pass_header Server',
    'proxy_pass_request_body off',
    'http3 on',
  ]
  const folder = t.testdir({
    'nginx.conf': `server { ssl_session_timeout 5m; ${lines.join('; ')}; location / { proxy_pass https://127.0.0.1:3000; } }`,
  })
  const { err } = await sluice(['import', 'nginx', join(folder, 'nginx.conf')])
  for (const line of lines) t.match(err, `Left out: "${line.split(' ')[0]}". `)
  t.notMatch(err, 'Nothing is cached')
  t.match(err, 'the certificates of https upstreams are verified')
  t.match(err, 'Not needed: ssl_session_timeout (1)')
})

t.test('a limit of a consumer of Kong that is written is not said to be left out', async t => {
  const folder = t.testdir({
    'kong.yaml': `_format_version: "3.0"
services: [{ name: w, url: "http://127.0.0.1:21901", routes: [{ name: w, paths: [/v1], strip_path: false }] }]
plugins: [{ name: key-auth }]
consumers:
  - username: free
    keyauth_credentials: [{ key: free-key-1 }]
    plugins: [{ name: rate-limiting, config: { minute: 5, policy: local } }]
`,
  })
  const { out, err } = await sluice(['import', 'kong', join(folder, 'kong.yaml')])
  t.match(out, /sustained/)
  t.notMatch(err, 'holds for no route or consumer')
})

t.test('a location of nginx may try the limit that it inherits', async t => {
  const folder = t.testdir({
    'nginx.conf': `http { limit_req_zone $binary_remote_addr zone=z:10m rate=5r/s;
  server { limit_req zone=z burst=4 nodelay;
    location / { proxy_pass http://127.0.0.1:21901; }
    location /health { limit_req_dry_run on; proxy_pass http://127.0.0.1:21901; } } }`,
  })
  const { out } = await sluice(['import', 'nginx', join(folder, 'nginx.conf')])
  const rules = out.split('- id:')
  t.match(rules.find(rule => rule.includes('[/health/**]')) ?? '', 'mode: report-only')
})

t.test('a router of Traefik that redirects is named where it is left out', async t => {
  const folder = t.testdir({
    'd.yaml': `http:
  routers:
    cloud: { rule: "Host(\`cloud.example\`)", service: s, middlewares: [dav] }
    web: { rule: "Host(\`web.example\`)", service: s }
  middlewares: { dav: { redirectRegex: { regex: "https://(.*)/dav", replacement: "https://\${1}/remote/" } } }
  services: { s: { loadBalancer: { servers: [{ url: "http://127.0.0.1:9" }] } } }
`,
  })
  const { err } = await sluice(['import', 'traefik', join(folder, 'd.yaml')])
  t.match(err, 'Left out: the router "cloud", whose requests were redirected to')
})
