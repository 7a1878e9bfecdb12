/** Cross-origin requests by route, as browsers make them (Fetch standard). */
import { once } from 'node:events'
import { connect } from 'node:http2'
import t, { type Test } from 'tap'
import { canMakeCertificates, makeCertificate } from '../helpers/certificates.js'
import { testGateway } from '../helpers/gateway.js'
import { type Received, send, startApp } from '../helpers/http.js'

const HOST = 'acme.localhost'
const APP = 'https://app.test'
const POLICY = `version: 1
kind: project-limits
buckets: { few: ["/v1/few"], all: ["*"] }
limits: [{ for: [{}], quotas: { few: { sustained: 2 }, all: { sustained: 100000 } } }]
`
const CORS = `cors: { origins: ["${APP}", "http://localhost:3000"], methods: [GET, PUT], headers: [authorization, x-a], expose: [etag], credentials: true, maxAge: 1h }`
const ROUTES = [
  `{ path: /v1/**, upstream: app, ${CORS} }`,
  `{ path: "PUT /methods/**", upstream: app, ${CORS} }`,
  `{ path: /private, upstream: app, auth: required, ${CORS} }`,
  '{ path: /open/**, upstream: app, cors: { origins: ["*"], headers: ["*"], expose: ["*"] } }',
  '{ path: /own, respond: { body: x }, cors: { origins: ["*"] } }',
  '{ path: /dead, upstream: dead, cors: { origins: ["https://app.test"] } }',
  '{ path: /**, upstream: app }',
]

/** A gateway in front of an upstream that has CORS fields of its own. */
async function crossing(t: Test, settings = 'identify: [host, api-key]') {
  const reached: string[] = []
  const upstream = await startApp(t, (req, res) => {
    reached.push(`${req.method} ${req.url}`)
    res.writeHead(200, {
      ...{ 'access-control-allow-origin': '*', 'access-control-allow-methods': 'TRACE', vary: 'Accept' },
      'access-control-expose-headers': 'x-upstream',
    })
    res.end()
  })
  const options = { upstream, upstreams: { dead: 'http://127.0.0.1:1' }, routes: ROUTES, settings }
  const gateway = await testGateway(t, { ...options, policies: { 'limits.yaml': POLICY } })
  const ask = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
    send(gateway.url + path, { method, headers: { host: HOST, ...headers } })
  const preflight = (path: string, method = 'PUT', origin = APP, more: Record<string, string> = {}) =>
    ask(path, { origin, 'access-control-request-method': method, ...more }, 'OPTIONS')
  return { gateway, ask, preflight, reached }
}

/** What a browser makes of the fields. */
const corsOf = ({ headers }: Received) =>
  Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      name.startsWith('access-control-') ? [[name.slice('access-control-'.length), value]] : [],
    ),
  )

t.test('a preflight is answered by the gateway, as the route of its request says', async t => {
  const { preflight, reached } = await crossing(t)
  const answer = await preflight('/v1/x')
  t.equal(answer.status, 204)
  t.same(corsOf(answer), {
    'allow-origin': APP,
    'allow-credentials': 'true',
    'allow-methods': 'GET, PUT',
    'allow-headers': 'authorization, x-a',
    'max-age': '3600',
    'expose-headers': answer.headers['access-control-expose-headers'],
  })
  t.equal(answer.headers.vary, 'Access-Control-Request-Method, Access-Control-Request-Headers, Origin')
  t.match(corsOf(await preflight('/v1/x', 'PUT', 'http://localhost:3000')), {
    'allow-origin': 'http://localhost:3000',
  })
  t.equal((await preflight('/methods/x')).status, 204, 'by the method that it asks for')
  for (const method of ['put', 'BOGUS', 'PUT, GET']) {
    t.equal((await preflight('/v1/x', method)).status, 204, `not to the upstream with ${method}`)
  }
  t.same(reached, [])
  t.equal((await preflight('/methods/x', 'DELETE')).status, 200, 'others are requests like any')
  t.equal((await preflight('/plain')).status, 200)
  t.same(reached, ['OPTIONS /methods/x', 'OPTIONS /plain'])
})

t.test('another origin gets no leave, however it resembles an allowed one', async t => {
  const { preflight, ask } = await crossing(t)
  for (const origin of [
    ...['https://evil.test', 'null', 'http://app.test', 'https://app.test.evil.test', 'https://app.test:444'],
    ...[
      'https://APP.test',
      'https://app.test/',
      'https://xapp.test',
      '*',
      'https://app.test, https://evil.test',
    ],
  ]) {
    const before = await preflight('/v1/x', 'PUT', origin)
    const after = await ask('/v1/x', { origin })
    for (const answer of [before, after]) {
      t.equal(corsOf(answer)['allow-origin'], undefined, origin)
      t.equal(corsOf(answer)['allow-credentials'], undefined, origin)
      t.match(answer.headers.vary, /(^|, )Origin$/, origin)
    }
    t.same(corsOf(before), {}, origin)
    t.same(corsOf(after), {}, origin)
  }
})

t.test('every response has the fields of the route, and no others of the kind', async t => {
  const { ask } = await crossing(t)
  const from = { origin: APP }
  const fine = await ask('/v1/x', from)
  t.match(corsOf(fine), { 'allow-origin': APP, 'allow-credentials': 'true' })
  t.match(corsOf(fine)['expose-headers'], /^etag, RateLimit-Policy, .*Retry-After$/)
  t.equal(corsOf(fine)['allow-methods'], undefined)
  t.equal(fine.headers.vary, 'Accept, Origin')
  t.equal((await ask('/v1/x')).headers.vary, 'Accept, Origin', 'without an Origin, too')

  await ask('/v1/few')
  await ask('/v1/few')
  for (const [path, status] of [
    ['/v1/few', 429],
    ['/private', 401],
    ['/dead', 502],
  ] as const) {
    const refused = await ask(path, from)
    t.equal(refused.status, status)
    t.equal(corsOf(refused)['allow-origin'], APP, path)
    t.match(refused.headers.vary, /Origin$/)
    const other = await ask(path, { origin: 'https://evil.test' })
    t.equal(corsOf(other)['allow-origin'], undefined, `${path} is not echoed`)
  }
})

t.test('every origin is allowed by "*", without credentials, and the same for all', async t => {
  const { ask, preflight } = await crossing(t)
  for (const headers of [{ origin: 'https://any.test' }, {}]) {
    const answer = await ask('/open/x', headers as Record<string, string>)
    t.match(corsOf(answer), { 'allow-origin': '*', 'expose-headers': /^\*/ })
    t.equal(corsOf(answer)['allow-credentials'], undefined)
    t.equal(answer.headers.vary, 'Accept')
  }
  t.match(corsOf(await preflight('/open/x')), {
    'allow-origin': '*',
    'allow-headers': '*',
    'allow-methods': 'GET, HEAD, POST',
  })
  t.match(corsOf(await ask('/own', { origin: APP })), { 'allow-origin': '*' }, 'a fixed answer has them, too')
})

t.test('a preflight needs no credential, and is counted where its project is known', async t => {
  const { preflight } = await crossing(t, 'identify: [host, api-key]\nunknownProject: reject')
  t.equal((await preflight('/private')).status, 204)
  t.equal((await preflight('/v1/few')).status, 204)
  t.equal((await preflight('/v1/few')).status, 204)
  const refused = await preflight('/v1/few')
  t.equal(refused.status, 429)
  t.equal(corsOf(refused)['allow-origin'], APP)
  const nobody = await preflight('/v1/few', 'PUT', APP, { host: 'nobody.localhost' })
  t.match([nobody.status, corsOf(nobody)['allow-origin']], [204, APP])
  t.equal((await preflight('/plain', 'PUT', APP, { host: 'nobody.localhost' })).status, 404)
})

t.test('over HTTP/2, and an OPTIONS request that is no preflight goes to the upstream', async t => {
  if (!canMakeCertificates(t)) return
  const upstream = await startApp(t, (_req, res) => res.end())
  const tls = makeCertificate(t.testdir(), 'acme')
  const { url } = await testGateway(t, { upstream, tls, routes: [`{ path: /**, upstream: app, ${CORS} }`] })
  const session = connect(url, { rejectUnauthorized: false })
  t.teardown(() => session.destroy())
  const ask = async (fields: Record<string, string>) => {
    const stream = session.request({ ':method': 'OPTIONS', ':path': '/x', ':authority': HOST, ...fields })
    stream.resume().end()
    return (await once(stream, 'response'))[0]
  }
  t.match(await ask({ origin: APP, 'access-control-request-method': 'GET' }), {
    ':status': 204,
    'access-control-allow-origin': APP,
  })
  t.match(await ask({ origin: APP }), { ':status': 200, 'access-control-allow-origin': APP })
})
