/**
 * A peer that makes no progress holds nothing forever: stalled readers and senders, endless responses, silent tunnels.
 */
import t, { type Test } from 'tap'
import type { Exchange } from '../../../gateway/forward/transport.js'
import { GET, OK, type RawPeer } from '../../helpers/raw.js'
import { sleep, waitUntil } from '../../helpers/wait.js'
import { scene } from './gateway.js'

const HANDSHAKE =
  'GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x3JJHMbDL1EzLkh9GBhXDw==\r\nSec-WebSocket-Version: 13\r\n\r\n'
const ACCEPTED = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'

/** Sends as fast as the peer accepts it, and counts the bytes. */
function flood(peer: RawPeer, total: number): { sent: number } {
  const count = { sent: 0 }
  const block = Buffer.alloc(64 * 1024)
  const fill = (): void => {
    while (count.sent < total) {
      count.sent += block.length
      if (!peer.socket.write(block)) break
    }
  }
  peer.socket.on('drain', fill)
  fill()
  return count
}

/** Begins an endless response: a byte every 20 ms until it is stopped. */
function trickle(t: Test, peer: RawPeer): { stop(): void } {
  peer.send('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n')
  const beat = setInterval(() => peer.send('1\r\nx\r\n'), 20)
  const stop = () => clearInterval(beat)
  t.teardown(stop)
  return { stop }
}

/** Waits until a number has stopped changing. */
async function standsStill(number: () => number): Promise<void> {
  for (let last = -1; last !== number(); ) {
    last = number()
    await sleep(200)
  }
}

t.test('an endless response whose client has left is discarded while its slot is held, then cut', async t => {
  const slot = { keepUpstream: true }
  const between = async (exchange: Exchange): Promise<Exchange> =>
    Object.defineProperty({ ...exchange }, 'keepUpstream', { get: () => slot.keepUpstream })
  const { client, upstream, gateway } = await scene(t, undefined, { between })
  client.send(GET)
  const peer = await upstream.connection(0)
  await peer.message()
  trickle(t, peer)
  await client.head()
  client.reset()
  await sleep(150)
  t.equal(gateway.ended, 0, 'the response is discarded while the request holds its slot')
  slot.keepUpstream = false
  await waitUntil('the upstream to be cut', () => peer.ended || peer.closed, 1_000)
  t.equal(gateway.ended, 1, 'the response is cut once the slot is gone')
})

t.test('a request behind a long response waits for its turn and is then served', async t => {
  const { client, upstream, gateway } = await scene(t, undefined, { idleMs: 200 })
  client.send(GET.repeat(2))
  const peer = await upstream.connection(0)
  await peer.message()
  const { stop } = trickle(t, peer)
  await sleep(500)
  t.equal(gateway.forwarded, 1)
  stop()
  peer.send('0\r\n\r\n')
  await peer.message()
  peer.send(OK)
  t.match((await client.message()).body, /^x+$/)
  t.equal((await client.message()).body, 'ok')
  t.equal(upstream.connections.length, 1)
})

t.test('a request behind a response that is cut is never forwarded', async t => {
  const { client, upstream, gateway } = await scene(t)
  client.send(GET.repeat(2))
  const peer = await upstream.connection(0)
  await peer.message()
  peer.send('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\npart')
  await sleep(50)
  peer.reset()
  t.equal((await client.message({ tillClose: true })).body, 'part')
  t.equal(gateway.forwarded, 1)
})

t.test('a large response its reader holds up and the small one behind it both arrive whole', async t => {
  const size = 16 * 1024 * 1024
  let count = { sent: 0 }
  const { client } = await scene(t, async peer => {
    for (;;) {
      const { line } = await peer.message()
      if (line.includes('/large')) {
        peer.send(`HTTP/1.1 200 OK\r\nContent-Length: ${size}\r\n\r\n`)
        count = flood(peer, size)
      } else peer.send(OK)
    }
  })
  client.socket.pause()
  client.send(GET.replace('/', '/large'))
  await standsStill(() => count.sent)
  client.send(GET)
  await sleep(100)
  client.socket.resume()
  t.equal((await client.message()).body.length, size)
  t.equal((await client.message()).body, 'ok')
})

t.test('a slow client keeps its request, and one that sends a byte now and then gets 408', async t => {
  const { client, upstream, gateway } = await scene(t, undefined, { idleMs: 250, keepUpstream: true })
  client.send('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nx')
  const peer = await upstream.connection(0)
  await peer.head()
  for (let i = 0; i < 5; i++) {
    await sleep(100)
    client.send('x'.repeat(60))
  }
  t.equal(gateway.ended, 0)
  const bytes = setInterval(() => client.send('x'), 60)
  t.teardown(() => clearInterval(bytes))
  t.match((await client.message({ tillClose: true })).line, / 408 /)
  await waitUntil('the upstream to be cut', () => peer.ended || peer.closed)
  t.equal(gateway.ended, 1)
})

t.test('an open WebSocket', async t => {
  const open = async (upgradeIdleMs: number) => {
    const { client, upstream, gateway } = await scene(t, undefined, { upgradeIdleMs, idleMs: 50 })
    client.send(HANDSHAKE)
    const peer = await upstream.connection(0)
    await peer.message()
    peer.send(ACCEPTED)
    await client.message({ bodyless: true })
    return { client, peer, gateway }
  }
  const gone = (peer: RawPeer) => peer.ended || peer.closed

  t.test('without a byte either way is closed on both sides at its own idle limit', async t => {
    const { client, peer, gateway } = await open(400)
    const openedAt = performance.now()
    await waitUntil('both ends', () => gone(client) && gone(peer), 2_000)
    t.ok(performance.now() - openedAt > 350, 'the shorter limit for bodies does not apply')
    await waitUntil('the end of the request', () => gateway.ended === 1)
  })

  for (const from of ['client', 'peer'] as const) {
    t.test(`stays open while only its ${from === 'peer' ? 'upstream' : 'client'} sends`, async t => {
      const both = await open(800)
      for (let i = 0; i < 10; i++) {
        both[from].send('x')
        await sleep(100)
      }
      t.notOk(gone(both.client) || gone(both.peer))
      await waitUntil('both ends', () => gone(both.client) && gone(both.peer), 2_000)
    })

    t.test(
      `whose ${from === 'peer' ? 'upstream' : 'client'} stops reading holds the other side back and is cut`,
      async t => {
        const both = await open(400)
        const other = from === 'peer' ? both.client : both.peer
        both[from].socket.pause()
        const total = 256 * 1024 * 1024
        const count = flood(other, total)
        await waitUntil('the end of the request', () => both.gateway.ended === 1, 4_000)
        t.ok(count.sent < total / 4, `${count.sent} bytes were taken in`)
        await waitUntil('the cut', () => gone(other))
      },
    )
  }

  for (const [side, how] of [
    ['client', 'reset'],
    ['client', 'end'],
    ['peer', 'reset'],
    ['peer', 'end'],
  ] as const) {
    t.test(
      `closes on both sides and ends once after ${how} by its ${side === 'peer' ? 'upstream' : 'client'}`,
      async t => {
        const both = await open(60_000)
        both[side][how]()
        const other = side === 'peer' ? both.client : both.peer
        await waitUntil('the other side to be closed', () => gone(other))
        other.end()
        await waitUntil('the end of the request', () => both.gateway.ended === 1)
        await sleep(20)
        t.equal(both.gateway.ended, 1)
      },
    )
  }
})
