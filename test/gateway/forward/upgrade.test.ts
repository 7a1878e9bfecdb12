import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { WebSocket, WebSocketServer } from 'ws'
import { valuesOf } from '../../helpers/raw.js'
import { waitUntil } from '../../helpers/wait.js'
import { clientOf, scene, startGateway } from './gateway.js'

const HANDSHAKE =
  'GET /chat?x HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Key: x3JJHMbDL1EzLkh9GBhXDw==\r\nSec-WebSocket-Version: 13\r\n'
const ACCEPTED =
  'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-Up: caf\xe9\r\n\r\n'

async function echoServer(t: Test): Promise<{ server: WebSocketServer; url: string }> {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  await once(server, 'listening')
  server.on('connection', socket => {
    socket.on('message', (data, binary) => socket.send(data, { binary }))
  })
  t.teardown(() => {
    for (const socket of server.clients) socket.terminate()
    server.close()
  })
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

t.test('WebSocket messages pass both ways, and so does a close', async t => {
  const { server, url } = await echoServer(t)
  const gateway = await startGateway(t, { url })
  const socket = new WebSocket(`ws://127.0.0.1:${gateway.port}/chat`)
  await once(socket, 'open')
  for (const text of ['hello', 'x'.repeat(200_000)]) {
    socket.send(text)
    const [data] = await once(socket, 'message')
    t.equal(String(data), text)
  }
  socket.close(4001, 'done')
  const [code] = await once(socket, 'close')
  t.equal(code, 4001)
  await waitUntil('both sides to end', () => server.clients.size === 0 && gateway.ended === 1)
})

t.test('the handshake carries the fields of any request, and early bytes are kept', async t => {
  const { client, upstream } = await scene(t, undefined, { answerFields: ['RateLimit', '"a";r=1'] })
  client.send(
    `${HANDSHAKE}X-Sluice-Project: evil\r\nX-Forwarded-For: 9.9.9.9\r\nCookie: a\r\ncookie: b\r\n\r\nearly`,
  )
  const peer = await upstream.connection(0)
  const request = await peer.message()
  t.equal(request.line, 'GET /chat?x HTTP/1.1')
  t.same(valuesOf(request, 'host'), ['a'])
  t.matchOnly(valuesOf(request, 'connection'), [/^upgrade$/i])
  t.matchOnly(valuesOf(request, 'upgrade'), [/^websocket$/i])
  t.same(valuesOf(request, 'x-sluice-project'), ['acme'])
  t.same(valuesOf(request, 'x-forwarded-for'), ['127.0.0.1'])
  t.same(valuesOf(request, 'via'), ['1.1 sluice'])
  peer.send(ACCEPTED)
  t.equal(await peer.bytes(5), 'early')

  const answer = await client.message()
  t.equal(answer.line, 'HTTP/1.1 101 Switching Protocols')
  t.same(valuesOf(answer, 'x-up'), ['caf\xe9'])
  t.same(valuesOf(answer, 'ratelimit'), ['"a";r=1'])
  peer.send('later')
  t.equal(await client.bytes(5), 'later')
})

t.test('a refusal passes with its body, and the connection closes', async t => {
  const { client, upstream, gateway } = await scene(t)
  client.send(`${HANDSHAKE}\r\n`)
  const peer = await upstream.connection(0)
  await peer.message()
  peer.send('HTTP/1.1 403 Forbidden\r\nTransfer-Encoding: chunked\r\nX-A: 1\r\n\r\n2\r\nno\r\n0\r\n\r\n')
  const answer = await client.message({ tillClose: true })
  t.same([answer.line, answer.body], ['HTTP/1.1 403 Forbidden', 'no'])
  t.same(valuesOf(answer, 'x-a'), ['1'])
  t.same(valuesOf(answer, 'connection'), ['close'])
  t.same(gateway.failures, [])
  await waitUntil('the end of the request', () => gateway.ended === 1)
})

t.test('a refusal passes whole when stray bytes follow it', async t => {
  const { client, upstream } = await scene(t)
  client.send(`${HANDSHAKE}\r\n`)
  const peer = await upstream.connection(0)
  await peer.message()
  peer.send('HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno more than two')
  const answer = await client.message({ tillClose: true })
  t.same([answer.line, answer.body], ['HTTP/1.1 403 Forbidden', 'no'])
})

t.test('a refusal that stops halfway is cut at the idle limit', async t => {
  const { client, upstream, gateway } = await scene(t, undefined, { idleMs: 200 })
  client.send(`${HANDSHAKE}\r\n`)
  const peer = await upstream.connection(0)
  await peer.message()
  peer.send('HTTP/1.1 403 Forbidden\r\nContent-Length: 20\r\n\r\nno')
  await waitUntil('both ends', () => client.closed && (peer.ended || peer.closed), 2_000)
  await waitUntil('the end of the request', () => gateway.ended === 1)
})

t.test('a client gets 502 upstream-unreachable when its upstream does not listen', async t => {
  const { client, upstream, gateway } = await scene(t)
  await upstream.stop()
  t.match((await client.send(`${HANDSHAKE}\r\n`).message()).line, / 502 /)
  t.same(gateway.failures, ['upstream-unreachable'])
  await waitUntil('the end of the request', () => gateway.ended === 1)
})

t.test('a client gets 504 upstream-timeout when its upstream is silent', async t => {
  const { client, gateway } = await scene(t, undefined, { headMs: 100 })
  t.match((await client.send(`${HANDSHAKE}\r\n`).message()).line, / 504 /)
  t.same(gateway.failures, ['upstream-timeout'])
  await waitUntil('the end of the request', () => gateway.ended === 1)
})

t.test('a client gets 502 upstream-invalid when its upstream does not speak HTTP', async t => {
  const { client, gateway } = await scene(t, async peer => {
    await peer.message()
    peer.send('hello\r\n\r\n')
  })
  t.match((await client.send(`${HANDSHAKE}\r\n`).message()).line, / 502 /)
  t.same(gateway.failures, ['upstream-invalid'])
})

/** A scene whose upgrade the upstream has accepted; `peer` is its end. */
async function openWebSocket(t: Test) {
  const { client, upstream, gateway } = await scene(t)
  client.send(`${HANDSHAKE}\r\n`)
  const peer = await upstream.connection(0)
  await peer.message()
  peer.send(ACCEPTED)
  await client.message()
  return { client, peer, gateway }
}

t.test('a side that resets its connection closes the other', async t => {
  for (const side of ['client', 'upstream'] as const) {
    t.test(side, async t => {
      const { client, peer, gateway } = await openWebSocket(t)
      const [gone, left] = side === 'client' ? [client, peer] : [peer, client]
      gone.reset()
      await waitUntil('the other side to be closed', () => left.ended || left.closed)
      await waitUntil('the end of the request', () => gateway.ended === 1)
    })
  }
})

t.test('a client that closes its side ends the WebSocket even if the upstream takes no notice', async t => {
  const { client, peer, gateway } = await openWebSocket(t)
  client.socket.end()
  await waitUntil('the upstream to be told', () => peer.ended)
  peer.send('last')
  t.equal(await client.bytes(4), 'last')
  await waitUntil('the end of the request', () => gateway.ended === 1)
})

t.test('a client that leaves during the handshake cancels it', async t => {
  const { client, upstream, gateway } = await scene(t)
  client.send(`${HANDSHAKE}\r\n`)
  const peer = await upstream.connection(0)
  await peer.message()
  client.reset()
  await waitUntil('the upstream to be cut', () => peer.ended || peer.closed)
  await waitUntil('the end of the request', () => gateway.ended === 1)
  t.same(gateway.failures, [])
})

t.test('anything but a body-less GET for websocket alone is forwarded without the upgrade', async t => {
  const offer = 'Host: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n'
  for (const [what, request, body] of [
    ['by POST', HANDSHAKE.replace('GET', 'POST').concat('\r\n'), ''],
    ['with a body', HANDSHAKE.concat('Content-Length: 2\r\n\r\nhi'), 'hi'],
    ['h2c by GET', `GET / HTTP/1.1\r\n${offer}\r\n`, ''],
    ['h2c by POST', `POST / HTTP/1.1\r\n${offer}Content-Length: 2\r\n\r\nhi`, 'hi'],
    ['two protocols', HANDSHAKE.concat('Upgrade: h2c\r\n\r\n'), ''],
  ] as const) {
    t.test(what, async t => {
      const { client, upstream } = await scene(t)
      client.send(request)
      const peer = await upstream.connection(0)
      const seen = await peer.message()
      t.equal(seen.body, body)
      for (const name of ['upgrade', 'http2-settings']) t.same(valuesOf(seen, name), [])
      peer.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
      t.equal((await client.message()).body, 'ok')
    })
  }
})

t.test('a drain closes open tunnels at its deadline', async t => {
  const { url } = await echoServer(t)
  const gateway = await startGateway(t, { url })
  const socket = new WebSocket(`ws://127.0.0.1:${gateway.port}/`)
  await once(socket, 'open')
  const closed = once(socket, 'close')
  await gateway.drain(100)
  await closed
  await t.rejects(clientOf(t, gateway), { code: 'ECONNREFUSED' })
})

t.test('a gateway that is going away', async t => {
  t.test('sends clients a Close with 1001, which reaches the upstream and ends both sides', async t => {
    const { server, url } = await echoServer(t)
    const gateway = await startGateway(t, { url })
    const codes: number[] = []
    server.on('connection', socket => socket.on('close', code => codes.push(code)))
    const socket = new WebSocket(`ws://127.0.0.1:${gateway.port}/chat`)
    await once(socket, 'open')
    socket.send('x'.repeat(70_000))
    await once(socket, 'message')
    gateway.goAway()
    const [code] = await once(socket, 'close')
    t.equal(code, 1001)
    await waitUntil('the upstream to be told', () => codes.length === 1 && gateway.ended === 1)
    t.same(codes, [1001])
  })

  t.test('sends it to a client whose handshake was still under way, or came later', async t => {
    const { client, upstream, gateway } = await scene(t)
    client.send(`${HANDSHAKE}\r\n`)
    const first = await upstream.connection(0)
    await first.message()
    gateway.goAway()
    const late = await clientOf(t, gateway)
    late.send(`${HANDSHAKE}\r\n`)
    const second = await upstream.connection(1)
    await second.message()
    for (const peer of [first, second]) peer.send(ACCEPTED)
    for (const told of [client, late]) {
      t.match((await told.head()).line, / 101 /)
      t.equal(await told.rest(), '\x88\x02\x03\xe9')
    }
  })

  t.test('never sends the Close within a frame', async t => {
    const { client, upstream, gateway } = await scene(t)
    client.send(`${HANDSHAKE}\r\n`)
    const peer = await upstream.connection(0)
    await peer.message()
    peer.send(`${ACCEPTED}\x82\x05ab`)
    await client.head()
    await waitUntil('half of it', () => client.unread.length === 4)
    gateway.goAway()
    peer.send('c')
    await waitUntil('more', () => client.unread.length === 5)
    peer.send('de')
    t.equal(await client.rest(), '\x82\x05abcde\x88\x02\x03\xe9')
  })
})
