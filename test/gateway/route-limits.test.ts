/** Timeouts and the largest body, by route. */

import { once } from 'node:events'
import { createServer } from 'node:http2'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { testGateway } from '../helpers/gateway.js'
import { send, startApp } from '../helpers/http.js'
import { rawClient, rawUpstream } from '../helpers/raw.js'

const HOST = 'acme.localhost'
const ROUTES = [
  '{ path: /quick/**, upstream: app, timeouts: { head: 100ms, idle: 150ms } }',
  '{ path: /patient/**, upstream: app, timeouts: { head: 10s } }',
  '{ path: /small/**, upstream: app, maxBody: 4 }',
  '{ path: /large/**, upstream: app, maxBody: 1KiB }',
  '{ path: /**, upstream: app }',
]
const TIMEOUTS = '{ connect: 1s, head: 1s, idle: 1s }'

t.test('the timeout of a route is its own, and others keep the upstream’s', async t => {
  const upstream = await startApp(t, (req, res) => {
    if (req.url?.endsWith('/stops')) res.writeHead(200, { 'content-length': 10 }).write('five ')
  })
  const { url } = await testGateway(t, { upstream, routes: ROUTES, timeouts: TIMEOUTS })
  const took = async (path: string) => {
    const startedAt = performance.now()
    const { status } = await send(url + path, { headers: { host: HOST } })
    return { status, ms: performance.now() - startedAt }
  }
  const [quick, usual] = await Promise.all([took('/quick/x'), took('/x')])
  t.equal(quick.status, 504)
  t.ok(quick.ms < 900, `${quick.ms} ms`)
  t.equal(usual.status, 504)
  t.ok(usual.ms > 900, `${usual.ms} ms`)
  const startedAt = performance.now()
  await t.rejects(send(`${url}/quick/stops`, { headers: { host: HOST } }), 'a pause in the body, too')
  t.ok(performance.now() - startedAt < 900)
})

t.test('a route may wait longer than its upstream says', async t => {
  const upstream = await startApp(t, (_req, res) => setTimeout(() => res.end('late'), 600))
  const { url } = await testGateway(t, {
    upstream,
    routes: ROUTES,
    timeouts: '{ connect: 1s, head: 200ms, idle: 1s }',
  })
  t.equal((await send(`${url}/x`, { headers: { host: HOST } })).status, 504)
  t.match(await send(`${url}/patient/x`, { headers: { host: HOST } }), { status: 200, body: 'late' })
})

t.test('over HTTP/2 to the upstream as well', async t => {
  const server = createServer().on('stream', stream => stream.on('error', () => {}))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  const { url } = await testGateway(t, {
    upstream: `http://127.0.0.1:${port}`,
    upstreamSettings: 'protocol: h2c',
    routes: ROUTES,
    timeouts: TIMEOUTS,
  })
  const startedAt = performance.now()
  t.equal((await send(`${url}/quick/x`, { headers: { host: HOST } })).status, 504)
  t.ok(performance.now() - startedAt < 900)
})

t.test('of two limits of a body the smaller one holds', async t => {
  const upstream = await startApp(t, (req, res) => req.resume().on('end', () => res.end('ok')))
  const { url } = await testGateway(t, { upstream, routes: ROUTES, upstreamSettings: 'maxBody: 100' })
  const status = async (path: string, length: number, chunked = false) => {
    const body = 'x'.repeat(length)
    const framing = chunked ? 'transfer-encoding' : 'content-length'
    const headers = { host: HOST, [framing]: chunked ? 'chunked' : String(length) }
    return (await send(url + path, { method: 'POST', headers, body })).status
  }
  for (const chunked of [false, true]) {
    t.equal(await status('/small/x', 4, chunked), 200)
    t.equal(await status('/small/x', 5, chunked), 413)
    t.equal(await status('/large/x', 100, chunked), 200)
    t.equal(await status('/large/x', 101, chunked), 413, 'the upstream’s')
    t.equal(await status('/x', 101, chunked), 413)
  }
})

t.test('an idle WebSocket is cut after the route’s time', async t => {
  const upstream = await rawUpstream(async peer => {
    await peer.head()
    peer.send('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
  })
  t.teardown(() => upstream.stop())
  const { url } = await testGateway(t, {
    upstream: upstream.url,
    routes: ['{ path: /**, upstream: app, timeouts: { upgradeIdle: 100ms } }'],
  })
  const client = await rawClient(Number(new URL(url).port))
  t.teardown(() => client.socket.destroy())
  const fields =
    'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: x\r\n'
  client.send(`GET / HTTP/1.1\r\nHost: ${HOST}\r\n${fields}\r\n`)
  t.match((await client.head()).line, '101')
  await client.rest()
  t.pass('well before the hour that is the default')
})
