/**
 * What other gateways guarded stays closed after `sluice import`: realistic configurations, each asked from outside with
 * `explain`. A request passes when it is let through to an upstream.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { sluice } from '../helpers/command.js'
import { fixture, play, type Scene } from '../helpers/imported.js'

const SCENES: Readonly<Record<string, Scene>> = {
  'nginx: a shop with a back office, a closed API and hidden files': {
    format: 'nginx',
    files: ['nginx-shop.conf'],
    shut: [
      'shop.example.com/admin/users',
      'shop.example.com/admin',
      'shop.example.com/%61dmin/users',
      'shop.example.com/ADMIN/users',
      'www.shop.example.com/admin/x',
      'shop.example.com/admin/users@10.1.2.3',
      'shop.example.com/api/orders',
      'POST shop.example.com/files/a',
      'shop.example.com/.git/config',
      'shop.example.com/x/.env',
      'shop.example.com/dump.sql',
      'other.example.com/',
    ],
    open: ['shop.example.com/', 'www.shop.example.com/cart'],
    says: [
      /^Access control that is lost:\n/,
      /^ {2}\S+nginx-shop\.conf:\d+:\d+: Lost: shop\.example\.com … \/admin\/\*\* was closed to all but 10\.0\.0\.0\/8, 192\.0\.2\.7/m,
      /\/api\/\*\* was behind auth_basic "Partners"/,
      /\/files\/\*\* was limited to GET by limit_except/,
      /"listen … ssl"\. TLS is listen\.tls/,
      /Not needed: .*gzip.* \(\d+\)\n/,
    ],
    gateway: [
      /trustedProxies: \["10\.0\.0\.0\/8"\]/,
      /unknownProject: reject/,
      /maxBody: 10485760/,
      /head: 90s/,
    ],
  },
  'nginx: a blog with closed files, a folder without its slash, and expressions': {
    format: 'nginx',
    files: ['nginx-blog.conf'],
    shut: [
      'blog.example.com/xmlrpc.php',
      'blog.example.com/wp-admin/',
      'blog.example.com/wp-admin.php',
      'blog.example.com/private-files/a',
      'blog.example.com/wp-includes/x.php',
      'blog.example.com/wp-content/uploads/2026/x.php',
    ],
    open: ['blog.example.com/', 'blog.example.com/wp-login.php', 'blog.example.com/xmlrpc.php/x'],
    says: [/\/private-files\/\*\* was internal/],
  },
  'nginx: guards in included snippets': {
    format: 'nginx',
    files: ['nginx-includes/nginx.conf'],
    shut: [
      'app.example.com/metrics',
      'app.example.com/metrics-internal',
      'app.example.com/reports/x',
      'staff.example.com/',
      'staff.example.com/reports/x',
      'staff.example.com/healthy/../x',
    ],
    open: ['app.example.com/', 'app.example.com/cart', 'staff.example.com/health'],
    says: [/staff\.conf:1:1: Lost: app\.example\.com \/metrics\/\*\* was behind auth_request "\/_auth"/],
  },
  'nginx: behind the PROXY protocol nobody is exempt by address': {
    format: 'nginx',
    files: ['nginx-proxied.conf'],
    shut: ['api.example.com/internal/x', 'api.example.com/internal/x@10.0.0.5'],
    open: ['api.example.com/x'],
    says: [/Lost: the clients’ addresses of the PROXY protocol/, /Lost: the exemption of 10\.0\.0\.0\/8/],
  },
  'nginx: an address list for everything becomes access rules': {
    format: 'nginx',
    files: ['nginx-intranet.conf'],
    shut: [
      'wiki.example.com/',
      'wiki.example.com/upload/x',
      'wiki.example.com/@192.0.3.1',
      'wiki.example.com/@2001:db9::1',
    ],
    open: ['wiki.example.com/@192.0.2.200', 'wiki.example.com/upload/x@2001:db8::7'],
    says: [/requests for a host that no server has are refused/],
    gateway: [/unknownProject: reject/],
  },
  'nginx: servers with patterns, certificates of clients, or a private address are left out': {
    format: 'nginx',
    files: ['nginx-hosts.conf'],
    shut: [
      'bank.example.com/',
      'status.example.com/',
      'acme.example.com/',
      'acme.example.com/admin/x',
      'example.org/server-status',
    ],
    open: ['www.example.org/', 'example.org/x', 'a.wild.example.com/'],
    says: [/status\.example\.com was reachable at 127\.0\.0\.1:8081 alone/, /behind ssl_verify_client "on"/],
  },
  'nginx: subrequests, signed links, tokens and conditions': {
    format: 'nginx',
    files: ['nginx-app.conf'],
    shut: [
      'localhost/admin',
      'localhost/administrator',
      'localhost/admin/static/a.css',
      'localhost/auth',
      'localhost/old/x',
      'localhost/dl/x',
      'localhost/jwt/x',
      'localhost/hooks/x',
    ],
    open: ['localhost/', 'any.example.com/x'],
    says: [/\/old\/\*\* was answered 410/, /\/hooks\/\*\* was refused by an "if /],
  },
  'nginx: what one server guards stays closed on its host alone': {
    format: 'nginx',
    files: ['nginx-two.conf'],
    shut: ['a.example.com/', 'a.example.com/x', 'b.example.com/open/keys/x', 'a.example.com/fallback/x'],
    open: [
      'a.example.com/open/x',
      'a.example.com/open/keys/x',
      'b.example.com/x',
      'c.example.com/fallback/x',
    ],
  },
  'Kong: keys on every route refuse strangers; groups are plans': {
    format: 'kong',
    files: ['kong-partners.yaml'],
    headers: ['apikey: bob-key-0123456789'],
    shut: ['localhost/orders/admin', 'localhost/orders/admin/x', 'localhost/ordersX'],
    open: ['localhost/orders/7'],
    says: [
      /the upstream gets the keys, too/,
      /a key in the query is not read/,
      /Lost: a key that expires/,
      /Lost: the basicauth credentials of "eve"/,
      /\/orders\/admin\/\*\* was for the groups admins alone/,
    ],
    gateway: [/header: apikey/, /header: x-k/, /unknownProject: reject/, /connect: 5s, head: 30s/],
  },
  'Kong: plugins that ask for something close their routes': {
    format: 'kong',
    files: ['kong-guarded.yaml'],
    shut: [
      '/admin',
      '/admin/x',
      '/administrator',
      '/me',
      '/gone',
      '/form',
      '/bank',
      '/own',
      '/sso/x',
      '/basic',
      '/v1/secrets',
      '/v2/secrets/x',
    ].map(path => `localhost${path}`),
    open: ['localhost/', 'localhost/shop'],
    says: [/\/admin\/\*\* was closed to all but 10\.0\.0\.0\/8/, /\/own\/\*\* was behind our-own-auth/],
  },
  'Kong: headers, hosts, methods, certificates’ names and protocols': {
    format: 'kong',
    files: ['kong-matchers.yaml'],
    shut: [
      'other.example.com/',
      'POST api.example.com/items/1',
      'DELETE api.example.com/items/1',
      'example.net/',
      'localhost/pay',
      'www.example.com/account',
    ],
    open: ['www.example.com/', 'www.example.com/staff/x', 'a.example.net/'],
    says: [
      /Lost: the route "staff" was reachable with the header x-staff alone/,
      /with the protocol https alone/,
    ],
  },
  'Kong: an address list on all routes becomes access rules where kong.conf tells whose word counts': {
    format: 'kong',
    files: ['kong-office.yaml', 'kong.conf'],
    shut: ['localhost/', 'localhost/x@10.0.0.1'],
    open: ['localhost/@192.0.2.9', 'localhost/x@198.51.100.7'],
    gateway: [
      /trustedProxies: \["10\.0\.0\.0\/8", "172\.16\.0\.0\/12"\]/,
      /redis: "redis:\/\/redis\.internal:6380\/0"/,
    ],
  },
  'Kong: without kong.conf such a list closes everything': {
    format: 'kong',
    files: ['kong-office.yaml'],
    shut: ['localhost/', 'localhost/@192.0.2.9'],
    open: [],
    says: [/no route is left/],
  },
  'Kong: sizes become maxBody, and what exists here is named': {
    format: 'kong',
    files: ['kong-sizes.yaml'],
    shut: ['localhost/'],
    open: ['localhost/uploads/x'],
    says: [
      /A limit by what answers say is "cost: \{ answerHeader/,
      /"request-termination", which is not enabled/,
    ],
    gateway: [/maxBody: 8388608/],
  },
  'Kong: keys on some routes close these': {
    format: 'kong',
    files: ['kong-mixed.yaml'],
    shut: ['localhost/blog/drafts', 'localhost/blog/drafts/1', 'localhost/oauth'],
    open: ['localhost/blog', 'localhost/guests'],
    gateway: [/unknownProject: \{ plan: guest, environment: live, countBy: together \}/],
  },
  'Traefik: static and dynamic files, with a guarded host and an entry point of its own': {
    format: 'traefik',
    files: ['traefik-home.yaml', 'traefik-static.yaml'],
    shut: [
      'traefik.example.com/',
      'files.example.com/',
      'files.example.com/x',
      'other.example.com/metrics',
      'other.example.com/',
    ],
    open: ['cloud.example.com/', 'www.cloud.example.com/x'],
    says: [
      /files\.example\.com \/\*\* was behind basicAuth/,
      /\/metrics\/\*\* was .*on the entry point internal alone/,
    ],
    gateway: [/unknownProject: reject/],
  },
  'Traefik: chains, priorities and chains without end': {
    format: 'traefik',
    files: ['traefik-chains.yaml'],
    shut: [
      'app.example.com/api/x',
      'app.example.com/apiary',
      'app.example.com/admin',
      'app.example.com/hooks/7',
      'loop.example.com/',
      'other.example.com/',
    ],
    open: ['app.example.com/', 'app.example.com/shop'],
    says: [
      /\/api\/\*\* was behind forwardAuth/,
      /\/admin\/\*\* was closed to all but 10\.0\.0\.0\/8, 192\.0\.2\.1/,
    ],
  },
  'Traefik: conditions that a route cannot have': {
    format: 'traefik',
    files: ['traefik-matchers.yaml'],
    shut: [
      'y.example.com/',
      'z.example.com/?token=t',
      'n.example.com/secret',
      'n.example.com/x',
      'x.example.com/v1/keys',
      'x.example.com/.env',
      'x.example.com/.env.local',
    ],
    open: ['x.example.com/', 'x.example.com/lan/x', 'POST z.example.com/x'],
    says: [/Lost: the router "lan" was reachable with ClientIP\(10\.0\.0\.0\/8\) alone/],
  },
  'Traefik: certificates of clients and plugins': {
    format: 'traefik',
    files: ['traefik-mtls.yaml'],
    shut: ['bank.example.com/', 'shop.example.com/p/x', 'shop.example.com/people'],
    open: ['shop.example.com/'],
    gateway: [/maxBody: 2000000/],
  },
  'envoyproxy/ratelimit: limits of no requests refuse': {
    format: 'ratelimit',
    files: ['ratelimit-edge.yaml'],
    shut: ['localhost/internal/x', 'localhost/@203.0.113.66'],
    open: ['localhost/', 'localhost/api/x'],
  },
}

for (const [title, scene] of Object.entries(SCENES)) t.test(title, t => play(t, scene))

async function imported(t: Test, format: string, ...names: string[]) {
  const folder = join(t.testdir(), 'made')
  const told = await sluice(['import', format, ...names.map(fixture), '--output', folder])
  const rules = async (request: string, ...more: string[]): Promise<string[]> => {
    const [, host = '', target = ''] = /^([^/]+)(\/.*)$/.exec(request) ?? []
    const { out } = await sluice([
      'explain',
      'GET',
      target,
      '--host',
      host,
      '--config',
      folder,
      '--json',
      ...more,
    ])
    return JSON.parse(out).rules.map(
      ({ rule, counters }: { rule: string; counters: { q: number; w_ms: number | null }[] }) =>
        [rule, ...counters.map(({ q, w_ms }) => `${q}/${Number(w_ms) / 1000}s`)].join(' '),
    )
  }
  return { ...told, folder, rules }
}

t.test('the names of one server are one project, and $host is counted in its normal form', async t => {
  const { folder } = await imported(t, 'nginx', 'nginx-shop.conf')
  t.match(
    readFileSync(join(folder, 'projects.yaml'), 'utf8'),
    'hosts: [shop.example.com, www.shop.example.com]',
  )
  const { folder: blog } = await imported(t, 'nginx', 'nginx-blog.conf')
  t.match(readFileSync(join(blog, 'policies', 'volumetric.yaml'), 'utf8'), 'key: [host, client-ip]')
})

t.test('a consumer group is a plan of its own', async t => {
  const { rules } = await imported(t, 'kong', 'kong-partners.yaml')
  t.same(await rules('localhost/orders/7', '--header', 'apikey: ann-key-0123456789'), ['everywhere 600/60s'])
  t.same(await rules('localhost/orders/7', '--header', 'apikey: bob-key-0123456789'), ['global 60/60s'])
  t.same(
    await rules('localhost/orders/7', '--header', 'x-k: bob-key-0123456789'),
    ['global 60/60s'],
    'by each name of the key',
  )
})

t.test('a final star of envoyproxy/ratelimit is its wildcard', async t => {
  const { rules } = await imported(t, 'ratelimit', 'ratelimit-edge.yaml')
  t.same((await rules('localhost/api/x')).sort(), ['edge-path 10/60s', 'edge-remote-address 5/1s'])
})

t.test('the findings are grouped for machines, too', async t => {
  const { out } = await sluice(['import', 'nginx', fixture('nginx-shop.conf'), '--json'])
  const { problems, notNeeded } = JSON.parse(out)
  const groups = problems.map(({ group }: { group: string }) => group)
  t.equal(groups[0], 'access')
  t.same(
    [...new Set(groups)],
    ['access', 'counts', 'elsewhere', 'missing'].filter(one => groups.includes(one)),
  )
  t.ok(notNeeded.includes('gzip'))
})
