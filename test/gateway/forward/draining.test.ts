/** An address that its name no longer has: requests and WebSockets in progress end there, and new ones go elsewhere. */
import { once } from 'node:events'
import { createServer } from 'node:net'
import t, { type Test } from 'tap'
import { GET, RawPeer, rawClient, rawUpstream } from '../../helpers/raw.js'
import { waitUntil } from '../../helpers/wait.js'
import { clientOf, startGateway } from './gateway.js'

const UPGRADE =
  'GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x3JJHMbDL1EzLkh9GBhXDw==\r\nSec-WebSocket-Version: 13\r\n\r\n'

/** Answers every request on this port of another loopback address. */
async function secondAddress(t: Test, port: number, host: string): Promise<void> {
  const server = createServer(async socket => {
    const peer = new RawPeer(socket)
    t.teardown(() => socket.destroy())
    while (!peer.ended && !peer.closed) {
      await peer.message().catch(() => undefined)
      peer.send('HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nnew')
    }
  })
  server.listen(port, host)
  await once(server, 'listening')
  t.teardown(() => server.close())
}

t.test('requests and WebSockets at an address that has left are not cut', async t => {
  const upstream = await rawUpstream()
  t.teardown(() => upstream.stop())
  await secondAddress(t, upstream.port, '127.0.0.2')
  let addresses = ['127.0.0.1']
  const gateway = await startGateway(t, {
    url: `http://app.test:${upstream.port}`,
    lookup: async () => addresses,
  })
  const shown = () =>
    [...gateway.backends].map(({ address, isLeaving }) => [new URL(address).hostname, isLeaving])
  await waitUntil('the first answer', () => shown().join() === '127.0.0.1,false')

  const [slow, socket, later] = [
    await clientOf(t, gateway),
    await rawClient(gateway.port),
    await clientOf(t, gateway),
  ]
  t.teardown(() => socket.socket.destroy())
  slow.send(GET)
  const first = await upstream.connection(0)
  await first.message()
  socket.send(UPGRADE)
  const second = await upstream.connection(1)
  await second.message()
  second.send('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
  t.match((await socket.head()).line, / 101 /)

  addresses = ['127.0.0.2']
  await waitUntil('the second answer', () => shown()[0]?.[0] === '127.0.0.2')
  t.same(shown(), [
    ['127.0.0.2', false],
    ['127.0.0.1', true],
  ])
  t.equal((await later.send(GET).message()).body, 'new')

  first.send('HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nold')
  t.equal((await slow.message()).body, 'old')
  second.send('\x81\x02hi')
  t.equal(await socket.bytes(4), '\x81\x02hi')
  t.equal(shown().length, 2, 'the WebSocket is still open')
  socket.socket.destroy()
  await waitUntil('the address to be given up', () => shown().length === 1)
})
