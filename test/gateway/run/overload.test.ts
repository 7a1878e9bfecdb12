/** What clients and operators see of an overloaded gateway, or of an overloaded upstream. */
import t from 'tap'
import { testGateway } from '../../helpers/gateway.js'
import { send, startApp } from '../../helpers/http.js'
import { matchList } from '../../helpers/lists.js'
import { rawClient, rawUpstream } from '../../helpers/raw.js'
import { waitUntil } from '../../helpers/wait.js'
import { WaitingApp } from '../../helpers/waiting-app.js'

const host = { host: 'acme.localhost' }

t.test(
  'an overloaded gateway refuses new requests with 503, finishes those in progress, and recovers',
  async t => {
    const app = new WaitingApp()
    const gateway = await testGateway(t, {
      upstream: await startApp(t, app.handler),
      maxEventLoopDelay: '100ms',
      timeouts: '{ head: 20s }',
    })
    const slow = send(`${gateway.url}/slow`, { headers: { ...host, 'x-wait': '1' } })
    await waitUntil('the request to be under way', () => app.waiting.length === 1)

    const spin = setInterval(() => {
      const until = performance.now() + 250
      while (performance.now() < until);
    }, 1)
    t.teardown(() => clearInterval(spin))
    const shed = await waitUntil('a request to be shed', async () => {
      const answer = await send(`${gateway.url}/`, { headers: host })
      return answer.status === 503 ? answer : undefined
    })
    t.match(shed.json(), { code: 'gateway-overloaded', status: 503 })
    t.equal(shed.headers['retry-after'], '1')
    const big = await send(`${gateway.url}/`, { method: 'POST', headers: host, body: 'x'.repeat(200_000) })
    t.equal(big.status, 503, 'a request whose body is still arriving gets 503 too')
    t.equal((await send(`${gateway.adminUrl}/readyz`)).status, 200, 'health checks still get 200')
    t.match((await send(`${gateway.adminUrl}/metrics`)).body, /^sluice_overloaded 1$/m)
    app.finish()
    t.equal((await slow).body, 'done')
    clearInterval(spin)

    await waitUntil('recovery', async () => (await send(`${gateway.url}/`, { headers: host })).status === 200)
    const told = gateway.lines.map(({ msg }) => msg).filter(msg => /overloaded/i.test(String(msg)))
    t.ok(told.length >= 2)
    // A busy machine may make it late again.
    t.same(
      told,
      told.map((_, i) => (i % 2 === 0 ? 'Overloaded: new requests get 503' : 'No longer overloaded')),
      'one line for each change',
    )
    t.match((await send(`${gateway.adminUrl}/metrics`)).body, /^sluice_overloaded 0$/m)
  },
)

t.test('connections over a client’s limit are refused and counted', async t => {
  const gateway = await testGateway(t, {
    upstream: await startApp(t, (_req, res) => res.end('ok')),
    limits: 'maxConnections: 5, maxConnectionsPerClient: 2',
  })
  const { port } = new URL(gateway.url)
  const peers = await Promise.all([rawClient(Number(port)), rawClient(Number(port))])
  t.teardown(() => {
    for (const { socket } of peers) socket.destroy()
  })
  for (const peer of peers) peer.send('GET / HTTP/1.1\r\nHost: acme.localhost\r\n\r\n')
  for (const peer of peers) t.match((await peer.message()).line, / 200 /)
  const third = await rawClient(Number(port))
  t.match((await third.message()).line, / 503 /)
  const metrics = (await send(`${gateway.adminUrl}/metrics`)).body
  t.match(metrics, /^sluice_connections 2$/m)
  t.match(metrics, /^sluice_connections_refused_total\{cap="client"\} 1$/m)
  t.match(metrics, /^sluice_event_loop_delay_seconds \d/m)
})

t.test('a slow client loses no bytes and delays no other client', async t => {
  const body = 'x'.repeat(4_000_000)
  const gateway = await testGateway(t, {
    upstream: await startApp(t, (req, res) => res.end(req.url === '/big' ? body : 'ok')),
  })
  const slow = await rawClient(Number(new URL(gateway.url).port))
  t.teardown(() => slow.socket.destroy())
  slow.send('GET /big HTTP/1.1\r\nHost: acme.localhost\r\n\r\n')
  await slow.head()
  slow.socket.pause()
  const answers = await Promise.all(
    Array.from({ length: 50 }, () => send(`${gateway.url}/small`, { headers: host })),
  )
  t.ok(answers.every(({ body }) => body === 'ok'))
  slow.socket.resume()
  await waitUntil('the whole answer', () => slow.unread.length >= body.length)
})

t.test('a dead address of an upstream is shown as ejected, and no request fails', async t => {
  const alive = await startApp(t, (_req, res) => res.end('ok'))
  const dead = await rawUpstream()
  await dead.stop()
  const gateway = await testGateway(t, { upstream: dead.url, others: [alive] })
  for (let i = 0; i < 12; i++) {
    t.equal((await send(`${gateway.url}/`, { method: 'POST', headers: host, body: 'a' })).status, 200)
  }
  const { backends } = (await send(`${gateway.adminUrl}/state`)).json<{ backends: object[] }>()
  const none = { upstream: 'app', requests: 0, webSockets: 0 }
  matchList(t, backends, [
    { ...none, backend: dead.url, ejected: true, state: 'ejected', cause: /ECONNREFUSED/, since: String },
    { ...none, backend: alive, ejected: false, state: 'ok', cause: undefined },
  ])
  const metrics = (await send(`${gateway.adminUrl}/metrics`)).body
  t.ok(metrics.includes(`sluice_backend_ejected{upstream="app",backend="${dead.url}"} 1`))
  t.ok(metrics.includes(`sluice_backend_ejected{upstream="app",backend="${alive}"} 0`))
  const told = gateway.lines.filter(({ backend }) => backend !== undefined)
  matchList(
    t,
    told,
    [{ level: 'warn', upstream: 'app', backend: dead.url, reason: /ECONNREFUSED/ }],
    'the ejection is logged once',
  )
})

t.test('a drain ends in time whatever slow clients and open WebSockets do', async t => {
  const upstream = await rawUpstream(async peer => {
    const { line } = await peer.message()
    if (line.includes('/chat')) {
      peer.send('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
    } else peer.send(`HTTP/1.1 200 OK\r\nContent-Length: 4000000\r\n\r\n${'x'.repeat(4_000_000)}`)
  })
  t.teardown(() => upstream.stop())
  const gateway = await testGateway(t, { upstream: upstream.url, timeouts: '{ head: 30s, idle: 30s }' })
  const port = Number(new URL(gateway.url).port)
  const [reader, writer, headless, tunnel] = await Promise.all([1, 2, 3, 4].map(() => rawClient(port)))
  t.teardown(() => {
    for (const peer of [reader, writer, headless, tunnel]) peer?.socket.destroy()
  })
  reader?.send('GET /big HTTP/1.1\r\nHost: acme.localhost\r\n\r\n')
  await reader?.head()
  reader?.socket.pause()
  writer?.send('POST / HTTP/1.1\r\nHost: acme.localhost\r\nContent-Length: 1000\r\n\r\nx')
  headless?.send('GET / HTTP/1.1\r\n')
  tunnel?.send(
    'GET /chat HTTP/1.1\r\nHost: acme.localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x3JJHMbDL1EzLkh9GBhXDw==\r\nSec-WebSocket-Version: 13\r\n\r\n',
  )
  t.match((await tunnel?.head())?.line, / 101 /)
  const begun = performance.now()
  await gateway.drain()
  t.ok(performance.now() - begun < 10_000, 'the drain ends long before the 30 s timeouts')
  t.equal(tunnel?.unread, '\x88\x02\x03\xe9', 'the WebSocket gets a Close with 1001')
  await waitUntil('the ends to arrive', () => tunnel?.closed && writer?.closed && headless?.closed)
  await waitUntil('nothing to be left upstream', () =>
    upstream.connections.every(({ ended, closed }) => ended || closed),
  )
})
