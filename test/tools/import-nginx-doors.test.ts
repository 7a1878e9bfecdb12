/** What nginx closes in ways that are easily overlooked stays closed after `sluice import`, as a real nginx says. */
import t from 'tap'
import { compared, comparedAs, HOST, imported, PASS } from '../helpers/import-asked.js'

const OPEN = `location / { ${PASS} }`

t.test('a location is read without a space after its modifier', async t => {
  const locations = ['=/admin', '^~/secret', '~^/git', '~*^/Boss'].map(one => `location ${one} { deny all; }`)
  const { passes } = await compared(
    t,
    { [HOST]: `${OPEN} location =/ok { ${PASS} } ${locations.join(' ')}` },
    ['/admin', '/secret', '/secret/x', '/git', '/boss'],
  )
  t.ok(await passes(HOST, '/ok'))
  t.ok(await passes(HOST, '/adminx'))
})

t.test('a guard within a regular expression that is open itself holds', async t => {
  const inner = `location ~ /secret { deny all; } location ~ /v { ${PASS} location ~ /deep { return 403; } }`
  const { passes } = await compared(t, { [HOST]: `${OPEN} location ~ ^/x { ${PASS} ${inner} }` }, [
    '/x/secret',
    '/x/v/deep',
  ])
  t.ok(await passes(HOST, '/x/a'))
})

t.test('a guard holds on hosts that are patterns, which a server without a name would take', async t => {
  for (const name of ['*.b.example.com', 'b_c.example.com']) {
    const host = name.replace('*', 'x')
    await comparedAs(
      t,
      `server { listen 80 default_server; ${OPEN} }
       server { listen 80; server_name ${HOST} ${name}; ${OPEN} location /admin { deny all; } location ~ /git { deny all; } }`,
      [HOST, host],
      ['/admin', '/git'],
    )
  }
  const { passes } = await imported(
    t,
    'nginx',
    `server { listen 80; server_name o.example.com; ${OPEN} }
     server { listen 80; server_name ${HOST} *.b.example.com; location / { deny all; } }`,
  )
  t.ok(await passes('o.example.com', '/admin'), 'no other server takes those hosts')
})

t.test('a server that answers everything itself leads to no upstream', async t => {
  const importedWith = (own: string) =>
    imported(t, 'nginx', `server { listen 80; server_name ${HOST}; ${own} ${OPEN} }`)
  const answering = await importedWith('return 200 down;')
  t.notOk(await answering.passes(HOST, '/x'))
  t.match(answering.gateway, 'respond: { status: 200, type: text/plain, body: down }')
  const rewriting = await importedWith('rewrite ^ /maintenance.html last;')
  t.notOk(await rewriting.passes(HOST, '/x'))
  t.match(rewriting.err, 'Left out: a.example.com /** was rewritten to /maintenance.html')
})

t.test('paths that an expression which cannot be read sends to a guarded place are closed', async t => {
  await compared(t, { [HOST]: `rewrite ^/(?!ok) /denied last; ${OPEN} location /denied { return 403; }` }, [
    '/a',
    '/denied',
  ])
})

t.test('methods that nginx answers itself reach no upstream, except for preflights', async t => {
  const answered = (condition: string) =>
    imported(
      t,
      'nginx',
      `server { server_name ${HOST}; location / { if (${condition}) { return 204; } ${PASS} } }`,
    )
  const others = await answered('$request_method != GET')
  t.notOk(await others.passes(HOST, '/', 'POST'))
  const preflights = await answered('$request_method = OPTIONS')
  t.ok(await preflights.passes(HOST, '/', 'POST'))
})

t.test('scripts that run before a request is passed on guard it', async t => {
  for (const name of ['rewrite_by_lua_file', 'server_rewrite_by_lua_file', 'access_by_lua_file']) {
    const { err, passes } = await imported(
      t,
      'nginx',
      `server { server_name ${HOST}; ${name} auth.lua; ${OPEN} }`,
    )
    t.notOk(await passes(HOST, '/'), name)
    t.match(err, `/** was behind ${name} "auth.lua"`)
  }
})

t.test('a guarded path with two slashes is closed as requests have it here', async t => {
  await compared(t, { [HOST]: `merge_slashes off; ${OPEN} location /a//b { deny all; }` }, [
    '/a//b',
    '/a//b/x',
  ])
})

t.test('requests without a header of the key are counted where the key is not empty without it', async t => {
  const missingIn = async (key: string): Promise<string> => {
    const { policy } = await imported(
      t,
      'nginx',
      `limit_req_zone ${key} zone=a:1m rate=1r/m; limit_conn_zone ${key} zone=c:1m;
       server { server_name ${HOST}; location / { limit_req zone=a; limit_conn c 1; ${PASS} } }`,
    )
    return `${policy('volumetric')}${policy('in-flight')}`.match(/(?<=missing: )\w+/g)?.join() ?? ''
  }
  t.equal(await missingIn('$http_x_key'), 'skip,skip')
  t.equal(await missingIn('$binary_remote_addr$http_x_key'), 'shared,shared')
  t.equal(await missingIn('"key $http_x_key"'), 'shared,shared')
})

t.test('a whitelist by geo and map exempts no more than nginx does', async t => {
  const limited = (geo: string, map: string) =>
    imported(
      t,
      'nginx',
      `geo $who { ${geo} } map $who $key { ${map} } limit_req_zone $key zone=a:1m rate=1r/m;
       server { server_name ${HOST}; location / { limit_req zone=a; ${PASS} } }`,
    )
  const twice = await limited('default 1; 10.0.0.0/8 0; 10.0.0.0/8 1;', '0 ""; 1 $binary_remote_addr;')
  t.notMatch(twice.err, 'exempt from', 'of a network that is written twice, the last line holds')
  const cased = await limited('default A; 10.0.0.0/8 b;', 'a $binary_remote_addr; b ""; default "";')
  t.match(cased.policy('access'), 'networks: ["10.0.0.0/8"]')
  for (const line of ['~[2-9]', '\\default', 'hostnames; 2']) {
    const map = `${line} $binary_remote_addr; 1 $binary_remote_addr; default "";`
    const { err } = await limited('default 2; 10.0.0.0/8 1;', map)
    t.match(err, 'Left out: the zone "a". A rule cannot count by "$key".', line)
  }
})

t.test('what a directive of an unknown module is in may refuse requests, so it is closed', async t => {
  const { err, passes } = await imported(
    t,
    'nginx',
    `server { server_name ${HOST}; ${OPEN} brotli on; more_set_headers "Server: x";
       location /waf { waf on; ${PASS} location /waf/off { waf off; ${PASS} } }
       location /if { if ($http_x) { waf on; } ${PASS} }
       location ~ ^/shop { naxsi_rules strict; ${PASS} } }`,
  )
  for (const path of ['/waf', '/if', '/shop/x']) t.notOk(await passes(HOST, path), path)
  t.ok(await passes(HOST, '/'), 'modules that only change answers are known')
  t.match(err, '/waf/** was behind waf "on", which is not known and may refuse requests')
})

t.test('those whom a condition sends to another upstream do not reach that of its location', async t => {
  const { err, passes } = await imported(
    t,
    'nginx',
    `server { server_name ${HOST}; ${OPEN} location /api { if ($http_x_key = "") { proxy_pass http://127.0.0.1:4; } ${PASS} } }`,
  )
  t.notOk(await passes(HOST, '/api/x'))
  t.ok(await passes(HOST, '/x'))
  t.match(err, '/api/** was sent elsewhere by an "if')
})

t.test('a server has no name that an earlier one of its address has', async t => {
  const open = `location /api { ${PASS} }`
  const { err, passes } = await comparedAs(
    t,
    `server { listen 80; server_name ${HOST}; location / { deny all; } }
     server { listen 80; server_name A.example.com b.example.com; ${open} }
     server { listen 80; server_name ${HOST}; ${open} }`,
    [HOST],
    ['/api', '/'],
  )
  t.ok(await passes('b.example.com', '/api'))
  t.match(
    err,
    'Left out: the name "A.example.com" of this server. nginx takes an earlier server of that name.',
  )
  const apart = await imported(
    t,
    'nginx',
    `server { listen 80; server_name ${HOST}; location / { deny all; } } server { listen 443; server_name ${HOST}; ${open} }`,
  )
  t.ok(await apart.passes(HOST, '/api'), 'on another port it has')
})
