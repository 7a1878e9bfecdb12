import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { TrustedProxies } from '../../../gateway/listen/client.js'
import type { DoorSettings } from '../../../gateway/listen/connection-cap.js'
import { LoopDelay } from '../../../gateway/listen/loop-delay.js'
import { createListener, type Listener } from '../../../gateway/listen/server.js'
import type { OutgoingResponse } from '../../../gateway/message.js'
import { GET, RawPeer, valuesOf } from '../../helpers/raw.js'
import { sleep, waitUntil } from '../../helpers/wait.js'
import { wideDoor } from './connection-cap.js'
import { reply } from './listener.js'

interface Scene {
  readonly listener: Listener
  /** Responses not sent yet. */
  readonly open: OutgoingResponse[]
  /** Which cap each rejected connection had hit. */
  readonly away: string[]
  /** `allowHalfOpen`: it keeps its side open when the listener ends its own. */
  client(options?: { from?: string; allowHalfOpen?: boolean }): Promise<RawPeer>
}

async function scene(t: Test, limits: Partial<DoorSettings>): Promise<Scene> {
  const open: OutgoingResponse[] = []
  const away: string[] = []
  const listener = createListener(
    { request: (_req, res) => open.push(res), upgrade() {} },
    wideDoor({ turnedAway: cap => away.push(cap), ...limits }),
  )
  const { port } = await listener.start('127.0.0.1', 0)
  t.teardown(() => listener.drain(0))
  const client: Scene['client'] = async ({ from = '127.0.0.1', allowHalfOpen = false } = {}) => {
    const socket: Socket = connect({ port, host: '127.0.0.1', localAddress: from, allowHalfOpen })
    t.teardown(() => socket.destroy())
    await once(socket, 'connect')
    return new RawPeer(socket)
  }
  return { listener, open, away, client }
}

const answerAll = (open: OutgoingResponse[]): void => {
  for (const res of open.splice(0)) reply(res, 'ok')
}

t.test('with all connections taken', async t => {
  t.test('a new connection gets 503 with Retry-After at once', async t => {
    const { listener, open, away, client } = await scene(t, { maxConnections: 2 })
    const [one, two] = [await client(), await client()]
    one.send(GET)
    two.send(GET)
    await waitUntil('two requests', () => open.length === 2)
    const third = await client()
    const answer = await third.send(GET).message()
    t.match(answer.line, / 503 /)
    t.same(valuesOf(answer, 'retry-after'), ['1'])
    t.same(valuesOf(answer, 'connection'), ['close'])
    t.match(JSON.parse(answer.body), { code: 'gateway-overloaded' })
    await waitUntil('the end of the third', () => third.ended)
    t.same(away, ['all'])
    t.equal(listener.connections, 2)
    answerAll(open)
    t.match((await one.message()).body, 'ok', 'the connections already open are served')
  })

  t.test('a new connection replaces the one that has been idle longest', async t => {
    const { open, away, client } = await scene(t, { maxConnections: 3 })
    const [busy, idle, longestIdle] = [await client(), await client(), await client()]
    for (const peer of [longestIdle, idle]) {
      peer.send(GET)
      await waitUntil('a request', () => open.length === 1)
      answerAll(open)
      await peer.message()
    }
    busy.send(GET)
    await waitUntil('a request', () => open.length === 1)
    const late = await client()
    late.send(GET)
    await waitUntil('the new request', () => open.length === 2)
    await waitUntil('the longest idle one to be closed', () => longestIdle.ended)
    idle.send(GET)
    await waitUntil('a request on the other idle one', () => open.length === 3)
    answerAll(open)
    for (const peer of [late, busy, idle]) t.match((await peer.message()).line, / 200 /)
    t.same(away, [])
  })

  t.test('connections that never finish a head make room for new ones', async t => {
    const { open, client } = await scene(t, { maxConnections: 20 })
    const slow = await Promise.all(Array.from({ length: 20 }, () => client()))
    for (const peer of slow) peer.send('GET / HTTP/1.1\r\nX-Slow: ')
    for (let i = 0; i < 5; i++) {
      const peer = await client()
      peer.send(GET)
      await waitUntil('the request', () => open.length === 1)
      answerAll(open)
      t.match((await peer.message()).line, / 200 /)
      peer.end()
    }
  })

  t.test('only 256 of a crowd get a 503, and all are closed', async t => {
    const { open, client } = await scene(t, { maxConnections: 1 })
    ;(await client()).send(GET)
    await waitUntil('a request', () => open.length === 1)
    const crowd = await Promise.all(Array.from({ length: 300 }, () => client({ allowHalfOpen: true })))
    await waitUntil('all to be ended', () => crowd.every(({ ended, closed }) => ended || closed))
    const told = crowd.filter(({ unread }) => unread.includes(' 503 ')).length
    t.equal(told, 256, 'the others are closed without a response')
  })
})

t.test('one client cannot take more than its share', async t => {
  const { open, away, client } = await scene(t, { maxConnectionsPerClient: 3 })
  const greedy = await Promise.all([client(), client(), client()])
  const refused = await client()
  t.match((await refused.send(GET).message()).line, / 503 /)
  t.same(away, ['client'])
  const other = await client({ from: '127.0.0.2' })
  other.send(GET)
  await waitUntil('the other client', () => open.length === 1)
  answerAll(open)
  t.match((await other.message()).line, / 200 /)
  greedy[0]?.socket.destroy()
  await waitUntil('a place to be free again', async () => {
    const again = await client()
    again.send(GET)
    await waitUntil('an answer', () => open.length > 0 || again.ended)
    return open.length > 0
  })
})

t.test('the share of one client does not apply to a trusted proxy', async t => {
  const trusted = new TrustedProxies(['127.0.0.2'])
  const limits = { maxConnectionsPerClient: 1, trustedProxies: () => trusted }
  const { listener, away, client } = await scene(t, limits)
  await Promise.all([
    client({ from: '127.0.0.2' }),
    client({ from: '127.0.0.2' }),
    client({ from: '127.0.0.1' }),
  ])
  await client({ from: '127.0.0.1' })
  await waitUntil('one to be refused', () => away.length > 0)
  t.same([away, listener.connections], [['client'], 3])
})

t.test('all places are free again after every way of leaving', async t => {
  const { listener, client } = await scene(t, { maxConnections: 5, maxConnectionsPerClient: 4 })
  for (let round = 0; round < 20; round++) {
    const peers = await Promise.all(Array.from({ length: 4 }, () => client()))
    for (const [i, peer] of peers.entries()) {
      if (i % 3 === 0) peer.reset()
      else if (i % 3 === 1) peer.send('nonsense\r\n\r\n')
      else peer.end()
    }
    await waitUntil('all to be gone', () => listener.connections === 0)
  }
})

t.test('event loop delay', async t => {
  const watch = (limitMs: number) => {
    const changes: boolean[] = []
    const delay = new LoopDelay({ limitMs, changed: overloaded => changes.push(overloaded) })
    const look = (...delays: number[]): void => delays.forEach(ms => void delay.look(ms))
    return { delay, changes, look }
  }

  t.test('three late readings in a row are overload, fewer are not', async t => {
    const { delay, look } = watch(100)
    look(0, 5000, 5000, 0, 101, 101)
    t.notOk(delay.overloaded, 'a single long step, such as a reload, sheds nothing')
    look(101)
    t.ok(delay.overloaded)
  })

  t.test('overload ends only well below the limit', async t => {
    const { delay, changes, look } = watch(100)
    look(200, 200, 200, 60, 60, 60, 60, 49, 49, 60, 49, 49)
    t.ok(delay.overloaded)
    look(49)
    t.notOk(delay.overloaded)
    t.same(changes, [true, false])
  })

  t.test('a blocked event loop is noticed as overload, and so is its recovery', async t => {
    const { delay, changes } = watch(30)
    delay.start()
    t.teardown(() => delay.stop())
    const until = performance.now() + 3_000
    while (!delay.overloaded && performance.now() < until) {
      const busyUntil = performance.now() + 200
      while (performance.now() < busyUntil);
      await sleep(0)
    }
    t.ok(delay.overloaded)
    await waitUntil('calm', () => !delay.overloaded)
    t.same(changes, [true, false])
  })
})
