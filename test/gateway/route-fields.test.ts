/** Header fields that a route sets, adds and removes, on the way to the upstream and back. */
import t, { type Test } from 'tap'
import { testGateway } from '../helpers/gateway.js'
import { send, startApp } from '../helpers/http.js'
import { rawClient, rawUpstream, valuesOf } from '../helpers/raw.js'
import { waitUntil } from '../helpers/wait.js'

const HOST = 'acme.localhost'
const MARKS = [..."!#$%&'*+-.^_`|~"]
const REQUEST = `headers: { request: { set: { x-plan: "\${project.plan}", x-user: "\${project.id} at \${host}" }, add: { x-tag: "\${path}" }, remove: [cookie, x-secret] } }`

/** What the upstream got of a request with these fields. */
async function passed(t: Test, fields: string, body = '') {
  const upstream = await rawUpstream()
  t.teardown(() => upstream.stop())
  const routes = [`{ path: /**, upstream: app, ${REQUEST} }`]
  const { url } = await testGateway(t, { upstream: upstream.url, routes })
  const client = await rawClient(Number(new URL(url).port))
  t.teardown(() => client.socket.destroy())
  client.send(`POST /x HTTP/1.1\r\nHost: ${HOST}\r\n${fields}\r\n${body}`)
  const peer = await upstream.connection(0)
  return { head: await peer.head(), peer }
}

t.test('the upstream gets the fields of the route, and none that it removes', async t => {
  const { head } = await passed(t, 'Cookie: a=1\r\nX-Secret: s\r\nX-Tag: own\r\nX-Other: 1\r\n')
  const values = (name: string) => valuesOf({ ...head, body: '' }, name)
  t.same(values('x-plan'), ['growth'])
  t.same(values('x-user'), ['acme at acme.localhost'])
  t.same(values('x-tag'), ['own', '/x'], 'an added field stands beside the client’s')
  t.same([values('cookie'), values('x-secret'), values('x-other')], [[], [], ['1']])
})

t.test('a client cannot send a field that the route sets, in whatever spelling or place', async t => {
  const forged = ['x-plan', 'x-user', 'x-secret'].flatMap(name => MARKS.map(mark => name.replace('-', mark)))
  const lines = forged.map(name => `${name}: forged\r\n`).join('')
  const again = 'X-PLAN: forged\r\nConnection: x-plan, x-user\r\nTrailer: x-plan, x_user, x-late\r\n'
  const chunked = 'Transfer-Encoding: chunked\r\n'
  const trailers = '2\r\nhi\r\n0\r\nX-Plan: forged\r\nx_user: forged\r\nX-Late: 1\r\n\r\n'
  const { head, peer } = await passed(t, lines + again + chunked, trailers)
  await waitUntil('the end of the body', () => peer.unread.endsWith('\r\n\r\n'))
  t.notMatch(JSON.stringify(head.fields) + peer.unread, 'forged')
  t.match(peer.unread, 'X-Late: 1')
  t.same(valuesOf({ ...head, body: '' }, 'x-plan'), ['growth'])
})

const POLICY = `version: 1
kind: project-limits
buckets: { all: ["*"] }
limits: [{ for: [{}], quotas: { all: { sustained: 3 } } }]
`
const RESPONSE = `headers: { response: { set: { strict-transport-security: max-age=1, cache-control: private, x-id: "\${request.id}" }, add: { vary: Accept, set-cookie: "seen=\${path}; Path=/" }, remove: [server, x-powered-by] } }`

t.test('every response has the fields of its route, a refusal those that suit it', async t => {
  const upstream = await startApp(t, (_req, res) => {
    res.writeHead(200, {
      ...{ server: 'app/1', 'x-powered-by': 'PHP', 'strict-transport-security': 'max-age=9', vary: 'Origin' },
      ...{ 'set-cookie': 'a=1', 'x-other': '1' },
    })
    res.end('ok')
  })
  const routes = [`{ path: /x/**, upstream: app, ${RESPONSE} }`, '{ path: /**, upstream: app }']
  const { url } = await testGateway(t, { upstream, routes, policies: { 'limits.yaml': POLICY } })
  const ask = (path: string) => send(url + path, { headers: { host: HOST } })
  const { headers } = await ask('/x')
  t.match(headers, { 'strict-transport-security': 'max-age=1', 'cache-control': 'private', 'x-other': '1' })
  t.equal(headers['x-id'], headers['x-request-id'])
  t.equal(headers.vary, 'Origin, Accept')
  t.same(headers['set-cookie'], ['a=1', 'seen=/x; Path=/'])
  t.same(
    (await ask('/x/;Domain=evil.test,b=1')).headers['set-cookie'],
    ['a=1', 'seen=/x/%3BDomain=evil.test%2Cb=1; Path=/'],
    'a path adds no attribute',
  )
  t.same([headers.server, headers['x-powered-by']], [undefined, undefined])
  const plain = await ask('/plain')
  t.match(plain.headers, { server: 'app/1', 'strict-transport-security': 'max-age=9', vary: 'Origin' })

  const refused = await ask('/x')
  t.equal(refused.status, 429)
  t.match(refused.headers, { 'strict-transport-security': 'max-age=1', 'cache-control': 'no-store' })
  t.match(refused.headers['content-type'], 'application/problem+json')
})

t.test('what is set or removed in a response does not come back in its trailers', async t => {
  const upstream = await startApp(t, (_req, res) => {
    res.writeHead(200, { trailer: 'server, strict-transport-security, x-other' })
    res.write('ok')
    res.addTrailers({ server: 'app/1', 'strict-transport-security': 'max-age=9', 'x-other': '1' })
    res.end()
  })
  const { url } = await testGateway(t, { upstream, routes: [`{ path: /**, upstream: app, ${RESPONSE} }`] })
  const client = await rawClient(Number(new URL(url).port))
  t.teardown(() => client.socket.destroy())
  client.send(`GET /x HTTP/1.1\r\nHost: ${HOST}\r\nTE: trailers\r\n\r\n`)
  await client.head()
  await waitUntil('the end of the body', () => /\r\n0\r\n(?:.+\r\n)*\r\n$/.test(client.unread))
  t.match(client.unread, /\r\n0\r\nx-other: 1\r\n\r\n$/i)
})

t.test('a failed request and a refused caller get them, too', async t => {
  const routes = [`{ path: /**, upstream: app, ${RESPONSE} }`]
  const { url } = await testGateway(t, {
    upstream: 'http://127.0.0.1:1',
    routes,
    settings: 'unknownProject: reject',
  })
  for (const [host, status] of [
    [HOST, 502],
    ['nobody.localhost', 404],
  ] as const) {
    const answer = await send(url, { headers: { host } })
    t.equal(answer.status, status)
    t.match(answer.headers, { 'strict-transport-security': 'max-age=1', vary: 'Accept' })
  }
})
