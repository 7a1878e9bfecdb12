/**
 * Paths that other gateways tell apart and Sluice does not, or the other way round, and text that regular expressions
 * spell in many ways: what was refused before stays closed after `sluice import`, as a real nginx says.
 */
import t from 'tap'
import { compared, GUARDED, HOST, imported, kong, PASS, traefik } from '../helpers/import-asked.js'

const OK = ['/ok', '/ok/', '/ok//', '/ok/.', '/ok/x', '/x/..//ok/']

t.test('nginx: an exact location is left out where the path with a final slash was refused', async t => {
  const exact = `location = /ok { ${PASS} }`
  const { err, passes } = await compared(
    t,
    {
      'rest.example.com': `${exact} location / { return 403; }`,
      'below.example.com': `${exact} location /ok/ { auth_basic A; auth_basic_user_file x; } location / { deny all; }`,
      'health.example.com': `${exact} location / { auth_basic A; auth_basic_user_file x; }`,
      'slash.example.com': `location = /ok/ { ${PASS} } location = /ok { deny all; } location / { ${PASS} }`,
      'wide.example.com': `${exact} location /ok/ { deny all; } location / { ${PASS} }`,
    },
    OK,
  )
  t.match(
    err,
    /^Access control that is lost:[\s\S]*Lost: the route of \/ok\. Sluice does not tell \/ok from \/ok\/, and rest\.example\.com \/\*\* was answered 403\. If \/ok\/ may be open as well, write the route/,
  )
  t.ok(await passes('wide.example.com', '/x'))
})

t.test('a path that nobody refused, and that takes the route of another, is told', async t => {
  const told = async (block: string): Promise<boolean> => {
    const { err, passes } = await imported(t, 'nginx', `server { server_name ${HOST}; ${block} }`)
    t.ok(await passes(HOST, '/ok'), block)
    return err.includes('Not the same: /ok/ takes the route of /ok, too.')
  }
  const exact = `location = /ok { ${PASS} }`
  t.ok(await told(`${exact} location / { root /srv; }`))
  t.notOk(await told(`${exact} location / { ${PASS} }`), 'it was open before')
  const { err } = await imported(t, 'traefik', traefik({ 'Path(`/ok`)': '', 'PathPrefix(`/b/`)': '' }))
  t.match(err, '/ok/ takes the route of /ok, too.')
  t.match(err, '/b takes the route of /b/, too.')
  t.notOk(await told(`${exact} location /ok/ { ${PASS} }`), 'nginx sends clients to it')
})

t.test(
  'nginx: a guard of the path without the final slash holds, of a location that ends with it',
  async t => {
    const slashed = `location /pub/ { ${PASS} }`
    const { err, passes } = await compared(
      t,
      {
        'a.example.com': `${slashed} location = /pub { deny all; } location / { deny all; }`,
        'b.example.com': `${slashed} location /pub { deny all; }`,
      },
      ['/pub', '/pub/../pub', '/public'],
    )
    t.ok(await passes(HOST, '/pub/x'), 'what is below stays open')
    t.match(
      err,
      /Lost: \/pub, and \/pub\/ with it, answer 404\. Sluice does not tell \/pub\/ from \/pub, and a\.example\.com \/pub was closed to everybody\./,
    )
    t.notMatch(err, /a\.example\.com \/pub was closed to everybody\. No route leads there/)
  },
)

t.test('nginx: exact locations and prefixes beside open ones stay open', async t => {
  const { passes, gateway } = await imported(
    t,
    'nginx',
    `server { listen 80; server_name a.example.com; location = /ok { ${PASS} } location / { ${PASS} } location /admin/ { deny all; } }
     server { listen 80; server_name b.example.com; location /api/ { ${PASS} } location / { deny all; } }
     server { listen 80; server_name c.example.com; location = /ok { ${PASS} } location /ok/ { ${PASS} } location / { deny all; } }`,
  )
  for (const path of ['/ok', '/ok/', '/x']) t.ok(await passes(HOST, path), path)
  t.ok(await passes('b.example.com', '/api/'), 'nginx redirects /api itself')
  for (const path of ['/ok', '/ok/']) t.ok(await passes('c.example.com', path), `both are open: ${path}`)
  t.notMatch(gateway, '/api }')
})

t.test('Traefik and Kong tell a final slash as well', async t => {
  const exact = await imported(
    t,
    'traefik',
    traefik({ 'Path(`/ok`)': '', 'PathPrefix(`/ok/`)': GUARDED, 'Path(`/x`)': '' }),
  )
  t.notOk(await exact.passes('localhost', '/ok/'))
  t.ok(await exact.passes('localhost', '/x'))
  const wide = await imported(t, 'traefik', traefik({ 'PathPrefix(`/ok/`)': '', 'PathPrefix(`/`)': GUARDED }))
  t.notOk(await wide.passes('localhost', '/ok'))
  t.ok(await wide.passes('localhost', '/ok/x'))
  const parameter = await imported(
    t,
    'traefik',
    traefik({
      'Path(`/items/{id}`)': '',
      'PathPrefix(`/`)': GUARDED,
      'Path(`/x/y`)': 'priority: 99',
      'PathPrefix(`/x/y/`)': 'priority: 99',
    }),
  )
  t.notOk(await parameter.passes('localhost', '/items/5/'))
  t.ok(await parameter.passes('localhost', '/x/y'))
  const kongs = await imported(
    t,
    'kong',
    kong(['{ name: open, paths: [/pub/] }', '{ name: rest, paths: [/], plugins: [{ name: basic-auth }] }']),
  )
  t.notOk(await kongs.passes('localhost', '/pub'))
  t.ok(await kongs.passes('localhost', '/pub/x'))
})

/** Spellings of `/.git` and `/admin` in PCRE, and expressions in which less is required than it seems. */
const SPELLINGS = [
  ...[
    '/\\x2egit',
    '/\\x2Egit',
    '/\\x{2e}git',
    '/\\056git',
    '/\\o{56}git',
    '/\\Q.git\\E',
    '/\\Q.git',
    '/\\.\\x67it',
  ],
  ...[
    '/\\x61dmin',
    '/\\141dmin',
    '/\\x{61}dm\\x69n',
    '/a\\Qdm\\Ein',
    '/admin\\Q\\E?',
    '/admin\\E?',
    '^/\\x61dmin',
  ],
  ...['(?x) /ad min # no more', '^/(?x) ad min', '(?x: /ad min)', '(?i)/ADMIN', '(?i:/ADMIN)', '^(?i)/ADMIN'],
  ...['/\\p{L}dmin', '/\\pLdmin', '/\\p{Ll}+/x', '/\\Ndmin', '/\\H+/x', '/\\K\\x61dmin'],
  ...['^/admin\\b', '/admin\\b/x', '/\\Badmin|/admin', '^/admin(?:/|\\z)', '/admin(?#()|/secret'],
  ...['/admin{0}', '/adm{1}in', '/(?<name>admin)', '/(?>admin)', '/(?=admin)', '/[^]x]dmin', '/[\\]a]dmin'],
  ...[
    '/[[:alpha:]x]dmin',
    '/[[:alpha:]]dmin/x',
    '/x{(a}b|admin)',
    '\\A/admin',
    '/\\X+x',
    '/\\\\.git',
    '/(a|b)dmin',
  ],
  ...[
    '/[\\Q]\\E/a]dmin',
    '/a\\d?dmin',
    '/admin\\h*\\R?',
    '/adm(*ACCEPT)zzz',
    '/admin\\cA?',
    '/admin\\e?\\t?',
  ],
]

t.test('nginx: a guarded expression is closed however its text is spelt', t =>
  compared(
    t,
    Object.fromEntries(
      SPELLINGS.map((expression, i) => [
        `r${i}.example.com`,
        `location / { ${PASS} } location ~ "${expression}" { deny all; }`,
      ]),
    ),
    [
      '/.git',
      '/.git/config',
      '/admin',
      '/admin/x',
      '/ADMIN',
      '/admi',
      '/bdmin',
      '/a/x',
      '/x%7Badmin',
      '/secret',
    ],
  ),
)

t.test('nginx: a backslash of a word without quotes is read as nginx does', async t => {
  await compared(t, { [HOST]: `location / { ${PASS} } location ~ /\\\\.git { deny all; }` }, ['/.git'])
})

t.test('Traefik and Kong: escapes in guarded expressions', async t => {
  for (const expression of ['^/\\x2egit', '^/\\x{2e}git', '/\\Q.git\\E', '^/\\C\\x67it', '/.\\pLit']) {
    const { passes } = await imported(
      t,
      'traefik',
      traefik({ [`PathRegexp(\`${expression}\`)`]: GUARDED, 'PathPrefix(`/`)': 'priority: 1' }),
    )
    t.notOk(await passes('localhost', '/.git'), expression)
  }
  const { passes } = await imported(
    t,
    'kong',
    kong([
      '{ name: rest, paths: [/] }',
      "{ name: admin, paths: ['~/\\x61dmin', '~/\\u{62}oss'], plugins: [{ name: basic-auth }] }",
    ]),
  )
  for (const path of ['/admin', '/boss']) t.notOk(await passes('localhost', path), path)
})

t.test('a guarded path with a semicolon is closed in both of its spellings', async t => {
  const servers = {
    'a.example.com': `location / { ${PASS} } location "/p;x" { deny all; } location = "/e;x" { deny all; }`,
    'b.example.com': `location / { ${PASS} } location ~ "/p;x" { deny all; }`,
    'c.example.com': `location / { ${PASS} } location "/p;;;;x" { deny all; }`,
    'd.example.com': `location / { ${PASS} } location ~ "p;;;;x" { deny all; }`,
  }
  const paths = ['/p;x', '/p%3Bx', '/p%3bx/y', '/e;x', '/e%3Bx', '/p;;%3B;x', '/p%3B%3b%3B;x']
  const { passes, gateway } = await compared(t, servers, paths)
  t.ok(await passes(HOST, '/p'))
  t.match(gateway, 'prefix: "/p%3Bx"')
  const traefiks = await imported(
    t,
    'traefik',
    traefik({ 'PathPrefix(`/`)': '', 'PathPrefix(`/p;x`)': GUARDED }),
  )
  t.notOk(await traefiks.passes('localhost', '/p%3Bx'))
})

t.test('more spellings than gateway.yaml has room for close everything', async t => {
  const guarded = Array.from({ length: 200 }, (_, i) => `location "/p;;;${i}" { deny all; }`)
  const { gateway } = await imported(t, 'nginx', `server { location / { ${PASS} } ${guarded.join(' ')} }`)
  t.match(gateway, 'closed:\n  - { prefix: / }')
})

t.test('HEAD takes the route of GET, which is reported where it was not asked for', async t => {
  const guarded = { 'Method(`GET`) && PathPrefix(`/`)': 'priority: 9', 'PathPrefix(`/`)': GUARDED }
  t.match((await imported(t, 'traefik', traefik(guarded))).err, 'a route for GET takes HEAD, too')
  const both = kong([
    '{ name: a, paths: [/a], methods: [GET, HEAD] }',
    '{ name: b, paths: [/b], methods: [POST] }',
  ])
  t.notMatch((await imported(t, 'kong', both)).err, /takes HEAD/)
})
