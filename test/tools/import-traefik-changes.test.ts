/** What Traefik's middlewares and services change on the way is said by the imported routes and upstreams. */
import t, { type Test } from 'tap'
import { imported } from '../helpers/import-asked.js'

const PARTS = `
  middlewares:
    strip: { stripPrefix: { prefixes: [/x, /api/] } }
    strip-some: { stripPrefix: { prefixes: [/api/v1, /api] } }
    strip-text: { stripPrefix: { prefixes: [/ap] } }
    auth: { basicAuth: { users: ["a:b"] } }
    limit: { rateLimit: { average: 1, burst: 2 } }
    add: { addPrefix: { prefix: /v1 } }
    add-text: { addPrefix: { prefix: "/v 1" } }
    any: { replacePathRegex: { regex: "^/api/(.*)", replacement: "/$1" } }
    fields: { headers: { customRequestHeaders: { X-User: "", X-Tier: gold, X-Env: "\${SECRET}" }, customResponseHeaders: { X-A: first, Server: "" }, stsSeconds: 3 } }
    inner: { headers: { customRequestHeaders: { X-Tier: silver }, customResponseHeaders: { X-A: second } } }
    move: { redirectRegex: { regex: "^https?://old\\\\.test/(.*)", replacement: "https://new.test/\${1}", permanent: true } }
    www: { redirectRegex: { regex: "^https?://www\\\\.(.*)", replacement: "https://\${1}" } }
    page: { redirectRegex: { regex: ".*", replacement: "https://x.test/gone" } }
    some: { redirectRegex: { regex: "^https?://a\\\\.test/(dav|x)(.*)", replacement: "https://x.test/\${1}" } }
  serversTransports: { slow: { forwardingTimeouts: { dialTimeout: 5s, responseHeaderTimeout: 1m30s } } }
  services:
    app:
      loadBalancer:
        servers: [{ url: "http://127.0.0.1:3001", weight: 2 }, { url: "http://127.0.0.1:3002" }]
        healthCheck: { path: /up, interval: 10s, timeout: 3s }
        serversTransport: slow
    off: { loadBalancer: { servers: [{ url: "http://127.0.0.1:3004" }] } }
    kept: { loadBalancer: { servers: [{ url: "http://127.0.0.1:3003/base", preservePath: true }] } }
    both: { weighted: { services: [{ name: kept, weight: 0 }, { name: app, weight: 1 }] } }
    shared: { weighted: { services: [{ name: off, weight: 3 }, { name: app, weight: 1 }] } }
`

const importedWith = (t: Test, ...routers: readonly string[]) =>
  imported(
    t,
    'traefik',
    `http:\n  routers:\n${routers.map((one, i) => `    r${i}: { service: app, ${one} }\n`).join('')}${PARTS}`,
  )
const at = (rule: string, ...middlewares: readonly string[]): string =>
  `rule: ${JSON.stringify(rule)}, middlewares: [${middlewares.join(', ')}]`

t.test('prefixes are stripped and added in whole segments', async t => {
  const rewritten = async (path: string, ...middlewares: readonly string[]): Promise<string> => {
    const { gateway } = await importedWith(t, at(path, ...middlewares))
    return gateway.match(/(strip|add)Prefix: [^ ,}\n]+/g)?.join(', ') ?? ''
  }
  t.equal(await rewritten('PathPrefix(`/api`)', 'strip', 'add'), 'stripPrefix: /api, addPrefix: /v1')
  t.equal(await rewritten('PathPrefix(`/api/`)', 'strip'), 'stripPrefix: /api')
  t.equal(await rewritten('PathPrefix(`/api/v1`)', 'strip-some'), 'stripPrefix: /api/v1')
  t.equal(await rewritten('Path(`/one`)', 'add'), 'addPrefix: /v1')
  t.equal(await rewritten('PathPrefix(`/api`)', 'strip-some'), '', 'some requests have a longer one')
  t.equal(await rewritten('PathPrefix(`/api`)', 'strip-text'), '', 'it ends within a segment')
  t.equal(await rewritten('PathPrefix(`/api`)', 'add', 'strip'), '', 'it is looked for behind what was added')
})

t.test('where a prefix cannot be added, the upstream gets no other paths', async t => {
  for (const middlewares of [['add-text'], ['any', 'add'], ['strip-some', 'add']]) {
    const { passes, err } = await importedWith(
      t,
      at('PathPrefix(`/api`)', ...middlewares),
      at('PathPrefix(`/`)'),
    )
    t.notOk(await passes('a.test', '/api/x'), middlewares.join())
    t.ok(await passes('a.test', '/x'))
    t.match(err, 'the router "r0", whose requests were sent on below /v')
  }
})

t.test('fields are set and removed, and of a response the first middleware has the last word', async t => {
  const { gateway, err } = await importedWith(t, at('PathPrefix(`/`)', 'fields', 'inner'))
  t.match(gateway, /set: \{ x-tier: silver \}\n +remove: \[x-user\]/)
  t.match(gateway, /set: \{ x-a: first \}\n +remove: \[server\]/)
  t.match(err, 'Lost: the field X-Env, which Traefik sets or removes.')
  t.match(err, 'Left out: "stsSeconds".')
  t.notMatch(gateway, 'SECRET')
})

t.test('redirects of whole hosts become routes, others keep their requests away', async t => {
  const { gateway, err, passes } = await importedWith(
    t,
    at('Host(`old.test`)', 'move'),
    at('Host(`www.a.test`)', 'www'),
    at('Host(`a.test`) && Path(`/page`)', 'page'),
    at('Host(`a.test`) && PathPrefix(`/part`)', 'page'),
    at('Host(`a.test`)', 'move'),
    at('Host(`b.test`)', 'some'),
  )
  for (const to of [
    '"https://new.test{path}", status: 308',
    '"https://a.test{path}", status: 307',
    '"https://x.test/gone", status: 307',
  ])
    t.match(gateway, `redirect: { to: ${to} }`)
  t.ok(await passes('a.test', '/'), 'an expression for another host redirects nothing')
  for (const path of ['/part', '/partx']) t.notOk(await passes('a.test', path), path)
  t.match(err, 'a.test /part/** was redirected to https://x.test/gone. It is under "closed"')
})

t.test('services keep weights, paths, health checks and timeouts', async t => {
  const { gateway, err } = await importedWith(t, at('Host(`a.test`)'))
  t.match(gateway, 'health: { path: /up, healthy: 1, unhealthy: 1, every: 10s, timeout: 3s }')
  t.match(gateway, 'timeouts: { connect: 5s, head: 90s }')
  t.match(gateway, '- { url: "http://127.0.0.1:3001", weight: 2 }')
  const ofShared = gateway.slice(gateway.indexOf(' shared:'))
  t.match(ofShared, /3004", weight: 9 \}\n.*3001", weight: 2 \}\n.*3002", weight: 1 \}/)
  const ofBoth = gateway.slice(gateway.indexOf(' both:'), gateway.indexOf(' shared:'))
  t.notMatch(ofBoth, '3003', 'a service with a weight of 0 gets no requests')
  t.match(err, 'a health check passes with 2xx alone, in Traefik also with 3xx.')
})

t.test('every host below a name is a wildcard, in no other form of an expression', async t => {
  const { gateway, passes, err } = await importedWith(
    t,
    at('HostRegexp(`^.+\\.a\\.test$`)', 'limit'),
    at('HostRegexp(`^.+\\.a\\.test$`) && PathPrefix(`/admin/`)', 'auth'),
    at('HostRegexp(`^.+\\.b\\.test$`)', 'move'),
    ...['^[a-z]+\\.c\\.test$', '.+\\.c\\.test', '^.+\\.c.*$'].map(one => at(`HostRegexp(\`${one}\`)`)),
  )
  t.ok(await passes('x.a.test', '/'))
  t.ok(await passes('y.x.a.test', '/'))
  for (const [host, path] of [
    ['a.test', '/'],
    ['x.a.test', '/admin/x'],
    ['x.b.test', '/'],
    ['x.c.test', '/'],
  ] as const)
    t.notOk(await passes(host, path), `${host}${path}`)
  t.match(gateway, 'host: "*.a.test"')
  t.notMatch(gateway, 'c.test')
  t.match(err, 'limits of a router with HostRegexp hold on every host.')
})
