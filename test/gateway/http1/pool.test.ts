/** Which connections are kept, and which are reused. */
import t from 'tap'
import { Deadlines } from '../../../gateway/http1/deadlines.js'
import { ConnectionPool } from '../../../gateway/http1/pool.js'
import type { OutgoingRequest } from '../../../gateway/outgoing-request.js'
import { matchList } from '../../helpers/lists.js'
import { OK, type RawPeer } from '../../helpers/raw.js'
import { sleep, waitUntil } from '../../helpers/wait.js'
import { inPieces, Listener, scene } from './upstream.js'

const gone = (peer: RawPeer | undefined): boolean => peer === undefined || peer.ended || peer.closed

t.test('consecutive requests share a connection', async t => {
  const { asked, upstream } = await scene(t, inPieces(OK))
  for (let i = 0; i < 5; i++) t.equal((await asked()).body, 'ok')
  t.equal(upstream.connections.length, 1)
})

t.test('the connection used last is reused first', async t => {
  const { pool, upstream } = await scene(t)
  const listeners = [new Listener(), new Listener(), new Listener()]
  for (const listener of listeners) pool.take(listener)
  await upstream.connection(2)
  const order: Listener[] = []
  for (const i of [0, 2, 1]) {
    upstream.connections[i]?.send(OK)
    order.push(await waitUntil('an answer', () => listeners.find(one => one.over && !order.includes(one))))
  }
  const next = new Listener()
  pool.take(next)
  t.equal(next.connection, order[2]?.connection)
})

t.test('a connection is not reused', async t => {
  for (const [what, bytes] of [
    [
      'when its upstream sends Connection: close',
      'HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok',
    ],
    ['when its upstream speaks HTTP/1.0', 'HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok'],
    ['when its upstream keeps it for one second only', OK.replace('\r\n', '\r\nKeep-Alive: timeout=1\r\n')],
  ] as const) {
    t.test(what, async t => {
      const { asked, upstream } = await scene(t, inPieces(bytes))
      for (let i = 0; i < 2; i++) t.equal((await asked()).body, 'ok')
      t.equal(upstream.connections.length, 2)
    })
  }

  t.test('an HTTP/1.0 keep-alive connection is reused', async t => {
    const { asked, upstream } = await scene(
      t,
      inPieces('HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok'),
    )
    for (let i = 0; i < 2; i++) t.equal((await asked()).body, 'ok')
    t.equal(upstream.connections.length, 1)
  })

  for (const [what, act] of [
    ['after its upstream has ended it', (peer: RawPeer) => peer.end()],
    ['after its upstream has reset it', (peer: RawPeer) => peer.reset()],
    [
      'after its upstream has sent unsolicited bytes',
      (peer: RawPeer) => peer.send('HTTP/1.1 408 Timeout\r\n\r\n'),
    ],
  ] as const) {
    t.test(what, async t => {
      const { asked, upstream } = await scene(t, inPieces(OK))
      await asked()
      const [peer] = upstream.connections
      if (peer !== undefined) act(peer)
      await sleep(30)
      t.equal((await asked()).body, 'ok')
      t.equal(upstream.connections.length, 2)
      await waitUntil('the end of the first', () => gone(peer))
    })
  }
})

t.test('an idle connection is kept for a second less than its Keep-Alive timeout', async t => {
  const { asked, upstream } = await scene(
    t,
    inPieces(OK.replace('\r\n', '\r\nKeep-Alive: timeout=2, max=9\r\n')),
  )
  const startedAt = performance.now()
  await asked()
  await waitUntil('the end of the connection', () => gone(upstream.connections[0]), 3_000)
  const keptMs = performance.now() - startedAt
  t.ok(keptMs > 900 && keptMs < 2_000, `${keptMs} ms`)
})

t.test('a caller that asks for a new connection gets one, and may return it unused', async t => {
  const { pool, asked, upstream } = await scene(t, inPieces(OK))
  const first = await asked()
  const given: OutgoingRequest[] = []
  const other = new Listener()
  other.onConnection = connection => {
    given.push(connection)
    connection.release()
  }
  pool.takeNew(other)
  await waitUntil('the connection', () => given.length === 1)
  t.not(given[0], first.connection)
  t.equal((await asked()).connection, given[0])
  t.equal(upstream.connections.length, 2)
})

t.test('a request gets no connection', async t => {
  t.test('when nothing listens', async t => {
    const { asked, upstream, unreachable } = await scene(t)
    await upstream.stop()
    upstream.stop = async () => {}
    t.same((await asked()).heard, ['no-connection'])
    matchList(t, unreachable, [{ code: 'ECONNREFUSED' }])
  })

  t.test('when the handshake takes longer than connectMs', async t => {
    const { upstream } = await scene(t)
    const unreachable: Error[] = []
    // It accepts connections and never completes a TLS handshake.
    const address = { host: '127.0.0.1', port: upstream.port, tls: { servername: '', ca: undefined } }
    const times = { connectMs: 100, headMs: 5000, idleMs: 5000 }
    const pool = new ConnectionPool(address, times, new Deadlines(), error => unreachable.push(error))
    const listener = new Listener()
    pool.take(listener)
    t.same((await listener.end()).heard, ['no-connection'])
    matchList(t, unreachable, [{ code: 'ETIMEDOUT' }])
  })

  t.test('when the pool is closed, and requests in progress fail', async t => {
    const { pool, upstream } = await scene(t)
    const listener = new Listener()
    pool.take(listener)
    await upstream.connection(0)
    pool.close()
    t.same((await listener.end()).heard, ['gone'])
    const late = new Listener()
    pool.take(late)
    t.same(late.heard, ['no-connection'])
  })
})
