/** `X-Request-Id`: on every response, set by the gateway, and the same in the log and at the upstream. */
import t from 'tap'
import { testGateway } from '../helpers/gateway.js'
import { send } from '../helpers/http.js'
import { OK, rawClient, rawUpstream, valuesOf } from '../helpers/raw.js'
import { waitUntil } from '../helpers/wait.js'
import { answering } from './forward/gateway.js'
import { ask, onBothWires } from './listen/http2-scene.js'
import { createWire } from './listen/wire.js'

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const POLICIES = {
  'limits.yaml':
    'version: 1\nkind: project-limits\nbuckets: { scarce: [/scarce] }\nlimits: [{ for: [{}], quotas: { scarce: { burst: 1, sustained: 1 } } }]\n',
}

t.test(
  'every response has an X-Request-Id, including refusals and responses to invalid requests',
  async t => {
    const upstream = await rawUpstream(answering(OK))
    t.teardown(() => upstream.stop())
    const gateway = await testGateway(t, {
      upstream: upstream.url,
      policies: POLICIES,
      settings: 'log: { access: all }',
    })
    const host = 'acme.localhost'
    const seen = new Set<string>()
    for (const [method, path, status] of [
      ['GET', '/', 200],
      ['HEAD', '/', 200],
      ['GET', '/scarce', 200],
      ['GET', '/scarce', 429],
      ['GET', '/%zz', 400],
      ['TRACE', '/', 405],
    ] as const) {
      const answer = await send(`${gateway.url}${path}`, { method, headers: { host } })
      t.equal(answer.status, status)
      const id = String(answer.headers['x-request-id'])
      t.match(id, UUID, `${method} ${path}: ${status}`)
      seen.add(id)
    }
    for (const bytes of [
      'no request\r\n\r\n',
      'GET / HTTP/1.1\r\n\r\n',
      'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n',
      'OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n',
      'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n',
      'GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n',
    ]) {
      const client = await rawClient(Number(new URL(gateway.url).port))
      client.send(bytes)
      const ids = valuesOf(await client.message(), 'x-request-id')
      t.matchOnly(ids, [UUID], bytes)
      seen.add(String(ids[0]))
      client.socket.destroy()
    }
    t.equal(seen.size, 12, 'every id is different')
    const logged = new Set(gateway.lines.filter(({ msg }) => msg === 'request').map(({ id }) => id))
    t.same(
      [...seen].filter(id => !logged.has(id)),
      [],
      'the log has all of them',
    )
  },
)

t.test('a client’s id is passed to the upstream only, and an upstream’s id to nobody', async t => {
  const wire = await createWire(t)
  const client = await wire.answered(
    t,
    'HTTP/1.1 200 OK\r\nX-Request-Id: theirs\r\nContent-Length: 0\r\n\r\n',
  )
  client.send('GET / HTTP/1.1\r\nHost: a\r\nX-Request-Id: mine\r\n\r\n')
  const [id, ...more] = valuesOf(await client.message(), 'x-request-id')
  t.match(id, UUID)
  t.same(more, [])
  t.same(valuesOf(wire.first(), 'x-request-id'), ['mine'])
  t.same(valuesOf(wire.first(), 'x-sluice-request-id'), [id])
})

t.test('an upstream’s id in an interim response or in trailers is dropped', async t => {
  const wire = await createWire(t)
  const client = await wire.answered(
    t,
    'HTTP/1.1 103 Early Hints\r\nX-Request-Id: theirs\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nTrailer: X-Request-Id\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-Late: 1\r\nX-Request-Id: theirs\r\n\r\n',
  )
  client.send('GET / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\n\r\n')
  const hints = { ...(await client.head()), body: '' }
  t.equal(hints.line, 'HTTP/1.1 103 Early Hints')
  t.same([valuesOf(hints, 'link'), valuesOf(hints, 'x-request-id')], [['</a>'], []])
  const answer = { ...(await client.head()), body: '' }
  t.matchOnly(valuesOf(answer, 'x-request-id'), [UUID])
  await waitUntil('the end', () => client.unread.includes('X-Late'))
  t.notMatch(client.unread, 'theirs')
})

onBothWires(t, (t, { scene }) => {
  t.test('HTTP/2 responses have an X-Request-Id too', async t => {
    const { session } = await scene(t, answering(OK), { policies: POLICIES })
    for (const [path, status] of [
      ['/', 200],
      ['/scarce', 200],
      ['/scarce', 429],
      ['/%zz', 400],
    ] as const) {
      const answer = await ask(session, { ':path': path })
      t.equal(answer.status, status)
      t.match(answer.headers['x-request-id'], UUID)
    }
  })
})
