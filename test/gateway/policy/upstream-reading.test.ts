/** Settings that describe how an upstream reads paths, tested through a whole gateway. */
import t, { type Test } from 'tap'
import { testGateway } from '../../helpers/gateway.js'
import { send, startApp } from '../../helpers/http.js'

const POLICY = (buckets: string) => `version: 1
kind: project-limits
buckets: ${buckets}
limits:
  - for: [{ environments: [development, staging, production] }]
    quotas: { admin: { burst: 100, sustained: 1000 }, others: { burst: 100, sustained: 1000 } }
`
const ADMIN = POLICY('{ admin: ["GET /Admin/{id}/caf%C3%A9", "/a;b"], others: ["*"] }')
const WRITES = `version: 1
kind: volumetric
rules:
  - id: writes
    match: [POST /Items/**, "POST /items/{id}"]
    key: [project, full-path]
    quota: { requests: 2, per: 60s }
`

async function gatewayBefore(t: Test, upstreamSettings: string) {
  const upstream = await startApp(t, (req, res) => {
    req.resume()
    res.end(req.url)
  })
  const policies = { 'limits.yaml': ADMIN, 'volumetric.yaml': WRITES }
  const gateway = await testGateway(t, { upstream, upstreamSettings, policies })
  const ask = async (path: string, method = 'GET') => {
    const answer = await send(gateway.url, { path, method, headers: { host: 'acme.localhost' } } as never)
    const bucket = /"([a-z]+)\.burst"/.exec(String(answer.headers['ratelimit-policy']))?.[1]
    return { ...answer, bucket }
  }
  const explain = async (target: string) => {
    const { body } = await send(`${gateway.adminUrl}/explain`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ method: 'GET', target, host: 'acme.localhost' }),
    })
    return JSON.parse(body)
  }
  return { ask, explain, gateway }
}

t.test('by default path parameters are plain text, and ";" differs from "%3B"', async t => {
  const { ask } = await gatewayBefore(t, '')
  for (const [path, bucket] of [
    ['/a;b', 'admin'],
    ['/%61;b', 'admin'],
    ['/a%3Bb', 'others'],
  ] as const) {
    t.equal((await ask(path)).bucket, bucket, path)
  }
  t.equal((await ask('/a%3bb')).body, '/a%3Bb', 'the path is forwarded the same way')
})

t.test('with pathParameters: refuse a path with ";" gets 400', async t => {
  const { ask, explain } = await gatewayBefore(t, 'pathParameters: refuse')
  for (const path of ['/a;b', '/x/;/y', '/a%3Bb', '/a%3bb']) {
    const answer = await ask(path)
    t.equal(answer.status, 400, path)
    t.match(answer.json(), { code: 'bad-target', detail: /^The path contains a ";"/ })
    t.match((await explain(path)).answer, { status: 400, code: 'bad-target', detail: answer.json().detail })
  }
  for (const path of ['/a%253Bb', '/a?b;c']) t.equal((await ask(path)).body, path)
})

t.test('with caseInsensitivePaths patterns and keys ignore letter case', async t => {
  const { ask, explain } = await gatewayBefore(t, 'caseInsensitivePaths: true')
  for (const path of ['/Admin/7/caf%C3%A9', '/admin/7/CAF%C3%A9', '/ADMIN/x/Caf%c3%a9']) {
    const answer = await ask(path)
    t.equal(answer.bucket, 'admin', path)
    t.equal(answer.body, path.replace('%c3%a9', '%C3%A9'), 'the path is forwarded in its own case')
    t.match((await explain(path)).bucket, { name: 'admin', pattern: 'GET /Admin/{id}/caf%C3%A9' })
  }
  const statuses: number[] = []
  for (const path of ['/Items/a', '/ITEMS/A', '/items/A']) statuses.push((await ask(path, 'POST')).status)
  t.strictSame(statuses, [200, 200, 429], 'all spellings share one counter')
  t.equal((await ask('/items/b', 'POST')).status, 200)
})

t.test('letter case counts by default', async t => {
  const { ask } = await gatewayBefore(t, '')
  t.equal((await ask('/Admin/7/caf%C3%A9')).bucket, 'admin')
  t.equal((await ask('/admin/7/caf%C3%A9')).bucket, 'others')
  for (const path of ['/Items/a', '/items/A', '/Items/A']) t.equal((await ask(path, 'POST')).status, 200)
})

const OVERRIDES = ['X-HTTP-Method-Override', 'X-HTTP-Method', 'X-Method-Override', 'X_HTTP_Method_Override']
const METHODS = `version: 1
kind: project-limits
buckets: { deleting: ["DELETE /**"], posting: ["POST /**"], reading: ["GET /**"] }
limits:
  - for: [{ environments: [development, staging, production] }]
    quotas:
      deleting: { burst: 100, sustained: 1000 }
      posting: { burst: 100, sustained: 1000 }
      reading: { burst: 100, sustained: 1000 }
`

/** Which bucket counts a request with override fields, and which of these fields reach the upstream. */
async function overriding(t: Test, upstreamSettings: string) {
  const upstream = await startApp(t, (req, res) => {
    req.resume()
    const names = Object.keys(req.headers).filter(name => /method/.test(name))
    res.end(`${req.method} ${names.join()}`)
  })
  const { url, adminUrl } = await testGateway(t, {
    upstream,
    upstreamSettings,
    policies: { 'limits.yaml': METHODS },
  })
  return async (method: string, headers: Record<string, string>) => {
    const answer = await send(`${url}/a`, { method, headers: { host: 'acme.localhost', ...headers } })
    const bucket = /"([a-z]+)\.burst"/.exec(String(answer.headers['ratelimit-policy']))?.[1]
    const question = { method, target: '/a', host: 'acme.localhost', headers: Object.entries(headers) }
    const asked = await send(`${adminUrl}/explain`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(question),
    })
    const explained = JSON.parse(asked.body)
    t.equal(explained.answer.status ?? 200, answer.status, 'explain gives the same response')
    if (answer.status === 200) t.equal(explained.bucket.name, bucket)
    return { bucket, got: answer.status === 200 ? answer.body : answer.status }
  }
}

t.test('a method override field is removed by default', async t => {
  const ask = await overriding(t, '')
  for (const field of OVERRIDES) {
    t.strictSame(await ask('POST', { [field]: 'DELETE' }), { bucket: 'posting', got: 'POST ' }, field)
  }
})

t.test('with methodOverride rules see the method that the named field of a POST gives', async t => {
  const ask = await overriding(t, 'methodOverride: x-http-method-override')
  const field = 'X-HTTP-Method-Override'
  const kept = 'POST x-http-method-override'
  t.strictSame(await ask('POST', { [field]: 'DELETE' }), { bucket: 'deleting', got: kept })
  t.strictSame(
    await ask('POST', { [field]: 'get' }),
    { bucket: 'reading', got: kept },
    'the field’s value may be in any letter case',
  )
  const hiding = { [field]: 'GET', Connection: `close, ${field}` }
  t.strictSame(
    await ask('POST', hiding),
    { bucket: 'reading', got: kept },
    'Connection does not remove the field',
  )
  t.strictSame(
    await ask('DELETE', { [field]: 'GET' }),
    { bucket: 'deleting', got: 'DELETE ' },
    'the field counts only in a POST',
  )
  t.strictSame(await ask('POST', {}), { bucket: 'posting', got: 'POST ' })
  for (const other of ['X-HTTP-Method', 'X-Method-Override', 'X_HTTP_Method_Override']) {
    t.strictSame(
      await ask('POST', { [other]: 'GET' }),
      { bucket: 'posting', got: 'POST ' },
      `${other} does not count`,
    )
  }
  for (const value of ['DELETE, GET', 'nonsense', 'TRACE', '']) {
    t.equal((await ask('POST', { [field]: value })).got, 400, `"${value}"`)
  }
})

t.test('the revision depends on each of these settings', async t => {
  const revisions = new Set<string>()
  const upstream = await startApp(t, (_req, res) => res.end())
  for (const upstreamSettings of [
    '',
    'pathParameters: literal',
    'pathParameters: literal, caseInsensitivePaths: false',
    'caseInsensitivePaths: false, pathParameters: literal',
    'pathParameters: refuse',
    'caseInsensitivePaths: true',
    'methodOverride: x-http-method',
  ]) {
    const { adminUrl } = await testGateway(t, { upstream, upstreamSettings })
    const state = await fetch(`${adminUrl}/state`)
    revisions.add(((await state.json()) as { revision: string }).revision)
  }
  t.equal(revisions.size, 4)
})

t.test('a project’s path prefix is found however it is written', async t => {
  const upstream = await startApp(t, (req, res) => res.end(req.url))
  const gateway = await testGateway(t, {
    upstream,
    settings: 'identify: [path]\nunknownProject: reject',
    projects: `version: 1
projects: [{ id: acme, plan: growth, environment: production, paths: ["/t%40x/%61"] }]
`,
  })
  for (const path of ['/t@x/a', '/t%40x/%61/b']) t.equal((await send(gateway.url + path)).status, 200, path)
  t.equal((await send(`${gateway.url}/t@y/a`)).status, 404)
})

t.test(
  'a route to an upstream that ignores case takes every spelling that no other route is written for',
  async t => {
    const named = (name: string) => startApp(t, (_req, res) => res.end(name))
    const gateway = await testGateway(t, {
      upstream: await named('ignoring'),
      upstreamSettings: 'caseInsensitivePaths: true',
      settings: 'identify: [api-key, host]',
      upstreams: { plain: await named('plain') },
      routes: [
        '{ path: /Admin/**, upstream: app, auth: required }',
        '{ path: /shop/**, upstream: app }',
        '{ path: /SHOP/**, upstream: plain }',
        '{ path: /shop/Own, upstream: plain }',
        '{ host: acme.localhost, path: GET /**, upstream: plain }',
        '{ path: POST /Only, upstream: app }',
        '{ path: PUT /**, upstream: plain }',
      ],
    })
    const ask = async (path: string, method = 'GET') => {
      const { status, body } = await send(gateway.url + path, { method, headers: { host: 'acme.localhost' } })
      return status === 200 ? body : status
    }
    t.equal(await ask('/Admin/x', 'POST'), 401)
    t.equal(await ask('/ADMIN/X', 'POST'), 401)
    t.equal(await ask('/ADMIN/X', 'PUT'), 401, 'though a wider route leads elsewhere')
    t.equal(await ask('/x', 'PUT'), 'plain')
    t.equal(await ask('/shop/a', 'POST'), 'ignoring')
    t.equal(await ask('/SHOP/a', 'POST'), 'plain', 'as it is written')
    t.equal(await ask('/Shop/OWN', 'POST'), 'ignoring', 'unlike any other route')
    t.equal(await ask('/only', 'POST'), 'ignoring', 'without another route')
    t.equal(await ask('/other', 'POST'), 404)
    t.equal(await ask('/ADMIN/X'), 'plain', 'the host is more specific than any path')
  },
)
