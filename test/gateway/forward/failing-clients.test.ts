/** Clients that leave, stall or do not read: what happens to their requests to the upstream. */
import t from 'tap'
import { GET, OK, type RawPeer, valuesOf } from '../../helpers/raw.js'
import { sleep, waitUntil } from '../../helpers/wait.js'
import { scene } from './gateway.js'

t.test('a client that leaves', async t => {
  t.test('has its upstream request cancelled before the response', async t => {
    const { client, upstream, gateway } = await scene(t)
    client.send(GET)
    const peer = await upstream.connection(0)
    await peer.message()
    client.reset()
    await waitUntil('the upstream to be cut', () => peer.ended || peer.closed)
    await waitUntil('the end of the request', () => gateway.ended === 1)
    t.same(gateway.failures, [])
  })

  t.test('has its upstream request cancelled during the response', async t => {
    const { client, upstream, gateway } = await scene(t)
    client.send(GET)
    const peer = await upstream.connection(0)
    await peer.message()
    peer.send('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart')
    await client.head()
    client.reset()
    await waitUntil('the upstream to be cut', () => peer.ended || peer.closed)
    await waitUntil('the end of the request', () => gateway.ended === 1)
  })

  t.test('has the response read to its end while its slot is held', async t => {
    const { client, upstream, gateway } = await scene(t, undefined, { keepUpstream: true })
    client.send('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi')
    const peer = await upstream.connection(0)
    await peer.message()
    client.reset()
    await sleep(50)
    t.notOk(peer.ended, 'the upstream connection stays open')
    t.equal(gateway.ended, 0)
    peer.send('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npa')
    await sleep(50)
    t.equal(gateway.ended, 0)
    peer.send('rt')
    await waitUntil('the end of the request', () => gateway.ended === 1)
  })

  t.test(
    'has its upstream request cancelled halfway through its body, even while its slot is held',
    async t => {
      const { client, upstream, gateway } = await scene(t, undefined, { keepUpstream: true })
      client.send('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nhi')
      const peer = await upstream.connection(0)
      await peer.head()
      client.reset()
      await waitUntil('the upstream to be cut', () => peer.ended || peer.closed)
      await waitUntil('the end of the request', () => gateway.ended === 1)
    },
  )

  t.test('is given up at the idle limit while its slot is held and its upstream is silent', async t => {
    const { client, upstream, gateway } = await scene(t, undefined, { keepUpstream: true, idleMs: 200 })
    client.send(GET)
    const peer = await upstream.connection(0)
    await peer.message()
    peer.send('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npa')
    await client.head()
    client.reset()
    await waitUntil('the end of the request', () => gateway.ended === 1)
    t.ok(await waitUntil('the upstream to be cut', () => peer.ended || peer.closed))
  })
})

t.test('a client that stops sending', async t => {
  const POST = 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nx'

  t.test('gets 408 before a response, its upstream request is cut, and its connection closes', async t => {
    const { client, upstream, gateway } = await scene(t, undefined, { idleMs: 200 })
    client.send(POST)
    const peer = await upstream.connection(0)
    const answer = await client.message({ tillClose: true })
    t.match(answer.line, / 408 /)
    t.same(valuesOf(answer, 'connection'), ['close'])
    t.same(gateway.failures, ['request-timeout'])
    await waitUntil('the upstream to be cut', () => peer.ended || peer.closed)
    t.equal(gateway.ended, 1)
  })

  t.test('is cut during a response, and so is its upstream request', async t => {
    const { client, upstream, gateway } = await scene(t, undefined, { idleMs: 200 })
    client.send(POST)
    const peer = await upstream.connection(0)
    peer.send('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\npart')
    t.equal(await client.rest().then(text => text.slice(-4)), 'part')
    await waitUntil('the upstream to be cut', () => peer.ended || peer.closed)
    await waitUntil('the end of the request', () => gateway.ended === 1)
    t.same(gateway.failures, [])
  })

  t.test('is served when it only pauses, or waits because its upstream does not read', async t => {
    const { client, upstream } = await scene(t, undefined, { idleMs: 200 })
    const size = 8 * 1024 * 1024
    client.send(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${size}\r\n\r\nx`)
    const peer = await upstream.connection(0)
    await peer.head()
    peer.socket.pause()
    client.send('x'.repeat(size - 201))
    await sleep(400)
    peer.socket.resume()
    for (let i = 0; i < 2; i++) {
      await sleep(120)
      client.send('x'.repeat(100))
    }
    await peer.bytes(size)
    peer.send(OK)
    t.equal((await client.message()).body, 'ok')
  })
})

t.test('a client that stops reading', async t => {
  const size = 64 * 1024 * 1024
  const flood = async (peer: RawPeer): Promise<void> => {
    await peer.message()
    peer.send(`HTTP/1.1 200 OK\r\nContent-Length: ${size}\r\n\r\n`)
    peer.socket.write(Buffer.alloc(size))
  }

  t.test('is reset, and its upstream request is cut', async t => {
    const { client, upstream, gateway } = await scene(t, flood, { idleMs: 300 })
    client.send(GET)
    await client.head()
    client.socket.pause()
    await waitUntil('the end of the request', () => gateway.ended === 1, 2_000)
    const peer = await upstream.connection(0)
    await waitUntil('the upstream to be cut', () => peer.ended || peer.closed)
    const failure = await new Promise(resolve => client.socket.write('x', resolve))
    t.type(failure, Error, 'the connection is reset, so the system does not keep what was not read')
    client.socket.resume()
    await waitUntil('the cut', () => client.ended || client.closed)
    t.ok(client.unread.length < size)
    t.same(gateway.failures, [])
  })

  t.test('has the rest of the response read and discarded while its slot is held', async t => {
    const { client, upstream, gateway } = await scene(t, flood, { idleMs: 300, keepUpstream: true })
    client.send(GET)
    await client.head()
    client.socket.pause()
    await waitUntil('the end of the request', () => gateway.ended === 1)
    const peer = await upstream.connection(0)
    t.equal(peer.socket.writableLength, 0)
    t.notOk(peer.ended, 'the upstream connection stays open')
  })

  t.test('is cut even when all its responses have ended', async t => {
    const body = 'x'.repeat(10_000)
    const atOnce = ({ socket }: RawPeer) =>
      socket.on('data', () => socket.write(`HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n${body}`))
    const { client } = await scene(t, atOnce, { idleMs: 300 })
    client.socket.pause()
    client.send(GET.repeat(2_000))
    await sleep(1_500)
    client.socket.resume()
    await waitUntil('the cut', () => client.ended || client.closed)
    t.ok(client.unread.length < 2_000 * body.length)
  })

  t.test('gets everything when it goes on slowly', async t => {
    const { client } = await scene(t, flood, { idleMs: 300 })
    client.send(GET)
    await client.head()
    let received = client.unread.length
    client.socket.removeAllListeners('data').on('data', bytes => {
      received += bytes.length
      if (received % 7 > 0 && received < size / 4) {
        client.socket.pause()
        setTimeout(() => client.socket.resume(), 5)
      }
    })
    await waitUntil('the rest', () => received === size)
  })
})
