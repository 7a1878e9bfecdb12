/** What changes on the way through a real nginx changes in the same way through a gateway with its imported configuration. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { gatewayProcess } from '../helpers/gateway-process.js'
import { send, startApp } from '../helpers/http.js'
import { imported, PASS } from '../helpers/import-asked.js'
import { nginxServing } from '../helpers/nginx.js'

const served = (port: number, app: string): string => `
  server {
    listen 127.0.0.1:${port}; server_name .a.test;
    add_header X-Frame-Options DENY always;
    proxy_set_header Host $host;
    location / { proxy_pass ${app}; }
    location /api/ {
      proxy_set_header Host $host; proxy_set_header X-Tier gold; proxy_set_header X-User ""; proxy_set_header X-Real-IP $remote_addr;
      proxy_hide_header X-Powered-By; add_header X-Host $host always;
      proxy_pass ${app}/v1/;
    }
    location /docs { proxy_pass ${app}/manual; }
    location = /one { proxy_pass ${app}/other/one; }
    location /bare/ { proxy_pass ${app}/; }
    location = /health { default_type text/plain; return 200 ok; }
    location = /none { return 204; }
    location = /here { return 303 $scheme://$host/app/?a=b; }
    location /old/ { return 301 https://new.test$request_uri; }
    location /by-uri/ { return 307 /new$uri$is_args$args; }
    location = /short { return https://x.test/; }
  }
  server { listen 127.0.0.1:${port}; server_name old.test; return 308 https://a.test/moved; location / { proxy_pass ${app}; } }
  server { listen 127.0.0.1:${port}; server_name part.test; proxy_set_header Host $host; location /api/ { proxy_pass ${app}; } }
  server { listen 127.0.0.1:${port} default_server; return 302 https://a.test/; }
`

const ASKED = [
  ...['/', '/x?y=1', '/api/x/?a=b', '/api/', '/docs', '/docs/a', '/one', '/bare/x', '/bare/', '/health'],
  ...['/none', '/here', '/old/x?y=%20', '/by-uri/a?b', '/short'],
].flatMap(path => ['a.test', 'deep.sub.a.test'].map(host => [host, path] as const))
const OTHERS = [
  ['old.test', '/x'],
  ['part.test', '/api/x'],
  ['unknown.test', '/x'],
] as const
const SHOWN = ['location', 'x-frame-options', 'x-host', 'x-powered-by']

/** An upstream that answers with what it got. */
const mirror = (t: Test): Promise<string> =>
  startApp(t, (req, res) => {
    const { host, 'x-tier': tier, 'x-user': user } = req.headers
    res.writeHead(200, { 'x-powered-by': 'app', 'content-type': 'application/json' })
    res.end(JSON.stringify({ url: req.url, host, tier, user, address: req.headers['x-real-ip'] }))
  })

t.test('paths, fields, redirects and fixed answers are those of nginx', async t => {
  const app = await mirror(t)
  let text = ''
  const nginx = await nginxServing(t, port => {
    text = served(port, app)
    return text
  })
  if (nginx === undefined) return
  const usual = text.replaceAll(/listen 127\.0\.0\.1:\d+/g, 'listen 80')
  const { made, gateway: written } = await imported(t, 'nginx', usual)
  const file = join(made, 'gateway.yaml')
  const ports =
    'listen: { host: 127.0.0.1, port: 0, maxEventLoopDelay: 1h }\nadmin: { host: 127.0.0.1, port: 0 }\n'
  writeFileSync(file, written + ports)
  const gateway = await gatewayProcess(t, made)
  const answered = async (url: string, host: string, path: string) => {
    const { status, headers, body } = await send(url + path, { headers: { host, 'x-user': 'me' } })
    const fields = SHOWN.map(name => [name, headers[name]?.toString().replace(/^http:\/\/[^/]*(?=\/)/, '')])
    const said = status < 300 ? [headers['content-type'], body.toString()] : []
    return { status, fields: Object.fromEntries(fields), said }
  }
  for (const [host, path] of [...ASKED, ...OTHERS])
    t.same(await answered(gateway.url, host, path), await answered(nginx, host, path), `${host}${path}`)
  t.notMatch(written, 'prefix: /', 'no path is closed for it')
  t.equal((await answered(gateway.url, 'part.test', '/x')).status, 404, 'what nginx itself serves stays away')
})

t.test(
  'a redirect of a part of a segment is closed, since another route would take the other paths',
  async t => {
    const { err, passes } = await imported(
      t,
      'nginx',
      `server { server_name a.test; location / { ${PASS} } location /old { return 301 /new; } }
     server { server_name b.test; location /old { return 301 /new; } }`,
    )
    for (const path of ['/old', '/older']) t.notOk(await passes('a.test', path), path)
    t.match(err, 'Left out: a.test /old/** was sent to /new. It is under "closed" and answers 404.')
    t.notMatch(err, 'b.test /old')
  },
)

t.test('of two locations with one pattern the longer one has the route', async t => {
  const { passes, gateway } = await imported(
    t,
    'nginx',
    `server { server_name a.test; location /a { ${PASS} } location /a/ { return 200 ok; } location /b { return 200 ok; } location /b/ { ${PASS} } }`,
  )
  t.notOk(await passes('a.test', '/a/x'))
  t.ok(await passes('a.test', '/b/x'))
  t.equal(gateway.match(/path: \/a\/\*\*/g)?.length, 1)
})

t.test('what no pattern can say is closed where nginx answered it', async t => {
  const { passes } = await imported(
    t,
    'nginx',
    `server { server_name a.test; location / { ${PASS} } location = /a/ { return 200 ok; } }`,
  )
  t.notOk(await passes('a.test', '/a/'))
})

t.test('what a route cannot say is left out, and a client’s own field is reported', async t => {
  const { err, gateway } = await imported(
    t,
    'nginx',
    `server { server_name a.test; location / { ${PASS}
       proxy_set_header X-User $remote_user; proxy_set_header X-Kept $http_x_kept; proxy_set_header Host fixed.test;
       proxy_set_header X-Forwarded-Proto $scheme; add_header X-A $upstream_addr always; add_header X-B 1; }
       location = /a { return 302 https://x.test/$arg_a; } location = /b { return 200 $host; } location = /c { return 302 "/{path}"; } }`,
  )
  t.match(err, 'Lost: the field X-User, which nginx sets or removes.')
  for (const line of ['"proxy_set_header"', '"add_header"']) t.match(err, `Left out: ${line}`)
  for (const path of ['/a', '/b', '/c']) t.match(err, `Left out: a.test ${path} was`)
  t.notMatch(gateway, /headers|redirect|respond/)
})

t.test(
  'a server that only sends clients to https has no route, and one beside another gives way',
  async t => {
    const { err, gateway, passes } = await imported(
      t,
      'nginx',
      `server { listen 80; server_name a.test b.test; return 301 https://$host$request_uri; }
     server { listen 80; server_name c.test; return 301 https://a.test/; }
     server { listen 80; server_name d.test; location / { return 301 https://$host$request_uri; } location /x/ { return 301 /y; } }
     server { listen 80 default_server; location / { ${PASS} } }
     server { listen 443 ssl; server_name a.test b.test c.test; location / { ${PASS} } }`,
    )
    t.notMatch(gateway, 'redirect')
    t.ok(await passes('c.test', '/'))
    t.notOk(await passes('d.test', '/'), 'it never reached the upstream of other hosts')
    t.match(err, 'Left out: a server that sends clients to https. It is listen.redirectHttp in gateway.yaml.')
    t.match(err, 'Left out: a server that only redirects, beside another one of its hosts.')
  },
)

t.test('a wildcard of hosts is a route, and what it guards stays closed on each of its hosts', async t => {
  const { passes, err } = await imported(
    t,
    'nginx',
    `limit_req_zone $binary_remote_addr zone=a:1m rate=1r/m;
     server { server_name *.a.test; limit_req zone=a; location / { ${PASS} } location /admin/ { deny all; } }
     server { server_name b.a.test; location /x/ { ${PASS} } location / { return 403; } }
     server { server_name .c.test; location / { deny all; } }
     server { listen 80 default_server; server_name _; location / { ${PASS} } }`,
  )
  for (const host of ['x.a.test', 'y.x.a.test']) {
    t.ok(await passes(host, '/'), host)
    t.notOk(await passes(host, '/admin/x'), host)
  }
  t.ok(await passes('b.a.test', '/x/y'))
  for (const host of ['b.a.test', 'c.test', 'x.c.test']) t.notOk(await passes(host, '/'), host)
  t.ok(await passes('a.test', '/'), 'it is not for the name itself')
  t.match(err, 'limits of a server with "*." in its names hold on every host.')
})

t.test('of two names for one host the first server has it, as in nginx', async t => {
  const { passes } = await imported(
    t,
    'nginx',
    `server { listen 80; server_name a.test; location / { deny all; } }
     server { listen 80; server_name .a.test b.test; location / { ${PASS} } }`,
  )
  for (const host of ['a.test', 'x.a.test']) t.notOk(await passes(host, '/'), host)
  t.ok(await passes('b.test', '/'))
})
