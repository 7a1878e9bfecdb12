/** Transfers that wait for a side that does not read: so many at most, and the one without progress for longest ends. */
import t from 'tap'
import { mostStalls, Stalls } from '../../../gateway/http1/stalls.js'
import { GET, OK, type RawPeer } from '../../helpers/raw.js'
import { sleep, waitUntil } from '../../helpers/wait.js'
import { clientOf, scene } from './gateway.js'

const LARGE = 32 * 1024 * 1024

t.test('beyond the limit, the transfer that has waited longest is given up', async t => {
  const stalls = new Stalls(2)
  const ended: string[] = []
  const transfer = (name: string) => ({ client: 'one', onMostStalled: () => ended.push(name) })
  const [a, b, c, d] = [transfer('a'), transfer('b'), transfer('c'), transfer('d')] as const
  stalls.begin(a)
  stalls.begin(b)
  stalls.begin(a)
  stalls.end(a)
  stalls.begin(a)
  t.same(ended, [])
  stalls.begin(c)
  t.same(ended, ['b'], 'one that went on in between is not the oldest')
  stalls.end(c)
  stalls.begin(d)
  t.same(ended, ['b'])
  t.ok(mostStalls() >= 100)
})

t.test('a client with many transfers never costs another client its one', async t => {
  const stalls = new Stalls(4)
  const ended: string[] = []
  const transfer = (client: string, name: string) => ({ client, onMostStalled: () => ended.push(name) })
  const paused = transfer('modest', 'the paused one')
  const many = Array.from({ length: 6 }, (_, i) => transfer('greedy', `${i}`))
  stalls.begin(paused)
  for (const one of many) stalls.begin(one)
  t.same(ended, ['0', '1', '2'])
  for (const one of many.slice(3)) {
    stalls.end(one)
    stalls.begin(one)
  }
  stalls.begin(transfer('late', 'another'))
  t.same(ended, ['0', '1', '2', '3'], 'not even if they read a little now and then')
})

t.test('of clients with one transfer each, the longest wait ends', async t => {
  const stalls = new Stalls(2)
  const ended: string[] = []
  const transfer = (client: string) => ({ client, onMostStalled: () => ended.push(client) })
  const [a, b, c, d] = [transfer('a'), transfer('b'), transfer('c'), transfer('d')] as const
  stalls.begin(a)
  stalls.begin(b)
  stalls.end(a)
  stalls.begin(a)
  stalls.begin(c)
  t.same(ended, ['b'])
  stalls.end(a)
  stalls.end(c)
  for (const one of [c, d]) stalls.begin(one)
  t.same(ended, ['b'], 'those that have ended are not counted')
})

/** An upload that the upstream does not read. */
const UPLOAD = `POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: ${LARGE}\r\n\r\n`

t.test(
  'of three uploads that the upstream does not read, where two may wait, the first gets 503',
  async t => {
    const { gateway, upstream, client } = await scene(t, peer => void peer.socket.pause(), { mostStalls: 2 })
    const clients: RawPeer[] = [client, await clientOf(t, gateway), await clientOf(t, gateway)]
    for (const [i, one] of clients.entries()) {
      one.send(UPLOAD).send('x'.repeat(LARGE))
      await waitUntil('its connection', () => upstream.connections.length === i + 1)
      await sleep(300)
    }
    t.match((await client.message()).line, / 503 /)
    t.same(gateway.failures, ['overloaded'])
    await sleep(100)
    t.equal(gateway.ended, 1, 'the others go on')
    for (const { socket } of upstream.connections) socket.resume()
    await waitUntil('the others to arrive', () =>
      upstream.connections.slice(1).every(({ socket }) => socket.bytesRead > LARGE),
    )
  },
)

t.test('a response that its client does not read is cut, one that is read slowly is not', async t => {
  const upstreamSays = async (peer: RawPeer): Promise<void> => {
    const { line } = await peer.message()
    if (!line.includes('/large')) return void peer.send(OK)
    peer.send(`HTTP/1.1 200 OK\r\nContent-Length: ${LARGE}\r\n\r\n`)
    peer.socket.write(Buffer.alloc(LARGE, 'x'))
  }
  const { gateway, client } = await scene(t, upstreamSays, { mostStalls: 1 })
  client.socket.pause()
  client.send(GET.replace('/', '/large'))
  await waitUntil('the first', () => gateway.forwarded === 1)
  await sleep(300)
  const slow = await clientOf(t, gateway)
  let received = 0
  slow.socket.removeAllListeners('data').on('data', (bytes: Buffer) => {
    received += bytes.length
    slow.socket.pause()
    setTimeout(() => slow.socket.resume(), 1)
  })
  slow.send(GET.replace('/', '/large'))
  await waitUntil('the slow reader', () => received > LARGE, 20_000)
  client.socket.resume()
  await waitUntil('the cut', () => client.closed || client.ended)
  t.ok(client.unread.length < LARGE)
})

t.test('one client that reads many responses slowly does not cut another’s that is paused', async t => {
  const upstreamSays = async (peer: RawPeer): Promise<void> => {
    await peer.message()
    peer.send(`HTTP/1.1 200 OK\r\nContent-Length: ${LARGE}\r\n\r\n`)
    peer.socket.write(Buffer.alloc(LARGE, 'x'))
  }
  const { gateway, client } = await scene(t, upstreamSays, { mostStalls: 2, trusted: ['127.0.0.1'] })
  const ask = (one: RawPeer, address: string): void => {
    one.socket.pause()
    one.send(`GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: ${address}\r\n\r\n`)
  }
  ask(client, '10.0.0.1')
  await waitUntil('the first', () => gateway.forwarded === 1)
  await sleep(200)
  for (let i = 0; i < 4; i++) ask(await clientOf(t, gateway), '10.0.0.2')
  await waitUntil('those beyond the limit to end', () => gateway.ended >= 3)
  client.socket.resume()
  t.equal((await client.message()).body.length, LARGE)
})
