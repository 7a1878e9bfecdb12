/** What Kong changes on the way is said by the imported routes and upstreams. */
import t, { type Test } from 'tap'
import { imported } from '../helpers/import-asked.js'

/** Kong with one service, its routes, and what else the file has. */
const importedWith = (t: Test, service: string, routes: readonly string[], rest = '') =>
  imported(
    t,
    'kong',
    `_format_version: "3.0"\nservices:\n  - { name: app, ${service}, routes: [${routes.join(', ')}] }\n${rest}`,
  )
const URL = 'url: "http://127.0.0.1:9000"'

t.test('strip_path and the path of a service rewrite paths in whole segments', async t => {
  const rewritten = async (service: string, route: string): Promise<string> => {
    const { gateway } = await importedWith(t, service, [route])
    return gateway.match(/(strip|add)Prefix: [^ ,}\n]+/g)?.join(', ') ?? ''
  }
  t.equal(await rewritten(URL, '{ paths: [/v1] }'), 'stripPrefix: /v1')
  t.equal(await rewritten(URL, '{ paths: [/v1/], strip_path: false }'), '')
  t.equal(
    await rewritten('url: "http://127.0.0.1:9000/in/"', '{ paths: [/v1/] }'),
    'stripPrefix: /v1, addPrefix: /in',
  )
  t.equal(
    await rewritten('host: 127.0.0.1, path: /in', '{ paths: [/v1], strip_path: false }'),
    'addPrefix: /in',
  )
  t.equal(await rewritten('host: 127.0.0.1, path: /in', '{ paths: [/] }'), 'addPrefix: /in')
})

t.test('where the path of a service cannot be written, its routes stay away from it', async t => {
  const { err, passes } = await importedWith(t, '"url": "http://127.0.0.1:9000/a%20b"', ['{ paths: [/x] }'])
  t.notOk(await passes('a.test', '/x'))
  t.match(err, 'everything is under "closed"')
})

t.test('transformers become header fields, the nearest one of a route alone', async t => {
  const own = `plugins: [{ name: request-transformer, config: { remove: { headers: [x-role] }, add: { headers: ["x-tier:gold", "x-by:$(headers.x)", "x-env:\${SECRET}"] }, append: { headers: ["x-more:1"] }, replace: { headers: ["x-was:2"] } } }, { name: response-transformer, config: { add: { headers: ["x-frame-options:DENY"] }, remove: { headers: [server], json: [a] } } }]`
  const { gateway, err } = await importedWith(
    t,
    URL,
    [`{ paths: [/v1], ${own} }`, '{ paths: [/other] }'],
    'plugins: [{ name: request-transformer, config: { add: { headers: ["x-global:1"] } } }]',
  )
  const routes = gateway.slice(gateway.indexOf('routes:'))
  const [first, second] = [routes.slice(0, routes.indexOf('/other')), routes.slice(routes.indexOf('/other'))]
  t.match(first, 'set: { x-tier: gold }')
  t.match(first, 'remove: [x-role]')
  t.match(first, 'add: { x-more: "1" }')
  t.match(first, 'set: { x-frame-options: DENY }')
  t.match(first, 'remove: [server]')
  t.notMatch(first, /x-global|x-was|x-by|x-env|SECRET/)
  t.match(second, 'set: { x-global: "1" }')
  for (const field of ['x-by', 'x-env', 'x-was'])
    t.match(err, `Lost: the field ${field}, which Kong sets or removes.`)
  t.match(err, 'the field x-tier is always set, by Kong only where there is none.')
  t.match(err, 'Left out: "json".')
})

t.test('targets keep their weights, and active health checks are made', async t => {
  const { gateway } = await importedWith(
    t,
    'host: pool',
    ['{ paths: [/] }'],
    `upstreams:
  - name: pool
    targets: [{ target: "127.0.0.1:1", weight: 200 }, { target: "127.0.0.1:2" }, { target: "127.0.0.1:3", weight: 0 }]
    healthchecks: { active: { http_path: /up, timeout: 2, healthy: { interval: 10, successes: 2 }, unhealthy: { interval: 5, http_failures: 3 } } }
`,
  )
  t.match(gateway, /1:1", weight: 2 \}\n.*1:2", weight: 1 \}\n/)
  t.notMatch(gateway, '127.0.0.1:3')
  t.match(gateway, 'health: { path: /up, healthy: 2, unhealthy: 3, every: 10s, timeout: 2s }')
})

t.test('a body limit is that of its route, and a wildcard of hosts one of the route', async t => {
  const limit = 'plugins: [{ name: request-size-limiting, config: { allowed_payload_size: 1 } }]'
  const { gateway, passes } = await importedWith(t, URL, [
    `{ hosts: ["*.a.test"], paths: [/up], ${limit} }`,
    '{ hosts: ["*.a.test"], paths: [/], strip_path: false }',
    '{ hosts: ["*.a.test"], paths: [/admin], plugins: [{ name: ip-restriction, config: { allow: [10.0.0.0/8] } }] }',
    '{ hosts: ["b.*"], paths: [/] }',
  ])
  t.match(gateway, /host: "\*\.a\.test"\n +path: \/up\/\*\*\n(?: +.*\n)*? +maxBody: 1048576/)
  t.equal(gateway.match(/maxBody/g)?.length, 1)
  t.ok(await passes('x.a.test', '/'))
  t.notOk(await passes('x.a.test', '/admin/x'))
  for (const host of ['a.test', 'b.test']) t.notOk(await passes(host, '/'), host)
})
