/** What an upstream says in its SETTINGS, and how many requests its connections carry. */
import t, { type Test } from 'tap'
import type { TestGateway } from '../../../helpers/gateway.js'
import { sleep, waitUntil } from '../../../helpers/wait.js'
import { ACK, code, frame, GOAWAY, HEADERS, SETTINGS, settings } from '../../listen/frames.js'
import { type FramePeer, type FrameUpstream, frameUpstream, whole } from './frame-upstream.js'
import { type Answered, ask } from './http.js'
import { h2cGateway } from './upstream.js'

const MAX_CONCURRENT_STREAMS = 3
const allows = (streams: number): Buffer => settings([MAX_CONCURRENT_STREAMS, streams])
const heads = (peer: FramePeer | undefined): number => peer?.ofType(HEADERS).length ?? 0
const streamOf = (request: number): number => 2 * request + 1

/** A gateway before an upstream whose connections say nothing but what `script` sends. */
async function scene(
  t: Test,
  script: (peer: FramePeer, index: number) => unknown,
  timeouts = '{ connect: 1s, head: 2s, idle: 2s }',
): Promise<{ upstream: FrameUpstream; gateway: TestGateway }> {
  let count = 0
  const upstream = await frameUpstream(t, peer => script(peer, count++), [])
  return { upstream, gateway: await h2cGateway(t, upstream.url, { timeouts }) }
}

const posts = (gateway: TestGateway, count: number): Promise<Answered>[] =>
  Array.from({ length: count }, () => ask(gateway.url, { method: 'POST', body: 'abc' }))

const statuses = async (all: readonly Promise<Answered>[]): Promise<number[]> =>
  (await Promise.all(all)).map(({ status }) => status)

const reasonIs = (gateway: TestGateway, pattern: RegExp): boolean =>
  gateway.lines.some(line => pattern.test(JSON.stringify(line)))

t.test('a request is sent only when the SETTINGS of the upstream have come', async t => {
  const { upstream, gateway } = await scene(t, () => {})
  const answer = ask(gateway.url)
  const peer = await upstream.peer()
  await peer.frame(SETTINGS)
  await sleep(100)
  t.equal(heads(peer), 0)
  peer.send(settings(), frame(SETTINGS, ACK, 0))
  await peer.request()
  peer.send(whole(1))
  t.equal((await answer).status, 200)
})

t.test('an upstream that sends no SETTINGS in time gets no request, and the log says so', async t => {
  const { upstream, gateway } = await scene(t, () => {}, '{ connect: 200ms, head: 5s, idle: 5s }')
  const { status, body } = await ask(gateway.url)
  t.equal(status, 502)
  t.equal(JSON.parse(String(body)).code, 'upstream-unreachable')
  t.ok(reasonIs(gateway, /no SETTINGS.* within 200 ms/))
  const [peer] = upstream.peers
  await waitUntil('the end of the connection', () => peer?.closed)
  t.equal(heads(peer), 0)
})

t.test(
  'those who come together are spread as the first connection allows, and nothing is refused',
  async t => {
    const { upstream, gateway } = await scene(t, peer => peer.send(allows(3)))
    const all = posts(gateway, 10)
    const sum = (): number => upstream.peers.reduce((total, peer) => total + heads(peer), 0)
    await waitUntil('all requests', () => sum() === 10)
    t.same(upstream.peers.map(heads), [3, 3, 3, 1])
    for (const peer of upstream.peers) {
      for (let i = 0; i < heads(peer); i++) peer.send(whole(streamOf(i)))
    }
    t.same(await statuses(all), Array(10).fill(200))
  },
)

t.test('what one connection allows says nothing of another', async t => {
  const { upstream, gateway } = await scene(t, (peer, index) =>
    peer.send(index === 0 ? allows(2) : settings()),
  )
  const all = posts(gateway, 8)
  await waitUntil('those on the second', () => heads(upstream.peers[1]) + heads(upstream.peers[2]) === 6)
  t.equal(heads(upstream.peers[0]), 2)
  for (const peer of upstream.peers) {
    for (let i = 0; i < heads(peer); i++) peer.send(whole(streamOf(i)))
  }
  t.same(await statuses(all), Array(8).fill(200))
})

t.test('a connection that is gone is no measure for new ones', async t => {
  const { upstream, gateway } = await scene(t, (peer, index) =>
    peer.send(index === 0 ? allows(1) : settings()),
  )
  const first = ask(gateway.url)
  const peer = await upstream.peer()
  await peer.request()
  peer.send(whole(1), frame(GOAWAY, 0, 0, Buffer.concat([code(1), code(0)])))
  await first
  await waitUntil('its end', () => peer.closed)
  const all = posts(gateway, 20)
  const second = await upstream.peer(1)
  await waitUntil('all requests', () => heads(second) === 20)
  for (let i = 0; i < 20; i++) second.send(whole(streamOf(i)))
  t.same(await statuses(all), Array(20).fill(200))
  t.equal(upstream.peers.length, 2)
})

t.test('a limit that changes is obeyed from then on', async t => {
  const { upstream, gateway } = await scene(t, peer => peer.send(settings()))
  const all = posts(gateway, 2)
  const peer = await upstream.peer()
  await waitUntil('two requests', () => heads(peer) === 2)
  peer.send(allows(2))
  await waitUntil(
    'its acknowledgement',
    () => peer.ofType(SETTINGS).filter(({ flags }) => flags === ACK).length === 2,
  )
  all.push(...posts(gateway, 1))
  const second = await upstream.peer(1)
  await second.request()
  t.equal(heads(peer), 2)
  peer.send(allows(3))
  await waitUntil(
    'its acknowledgement',
    () => peer.ofType(SETTINGS).filter(({ flags }) => flags === ACK).length === 3,
  )
  all.push(...posts(gateway, 1))
  await waitUntil('the third', () => heads(peer) === 3)
  for (let i = 0; i < 3; i++) peer.send(whole(streamOf(i)))
  second.send(whole(1))
  t.same(await statuses(all), Array(4).fill(200))
})

t.test('a place that becomes free goes to a request that waits for another connection', async t => {
  const { upstream, gateway } = await scene(t, (peer, index) => index === 0 && peer.send(allows(1)))
  const all = posts(gateway, 2)
  const peer = await upstream.peer()
  await peer.request()
  await upstream.peer(1)
  peer.send(whole(1))
  await peer.request(3)
  peer.send(whole(3))
  t.same(await statuses(all), [200, 200])
})

t.test('GOAWAY together with the SETTINGS', async t => {
  const goaway = frame(GOAWAY, 0, 0, Buffer.concat([code(0), code(0)]))

  await t.test('sends those who wait to a new connection', async t => {
    const { upstream, gateway } = await scene(t, (peer, index) =>
      index === 0 ? peer.send(settings(), goaway) : peer.send(settings()),
    )
    const all = posts(gateway, 5)
    const second = await upstream.peer(1)
    await waitUntil('all requests', () => heads(second) === 5)
    for (let i = 0; i < 5; i++) second.send(whole(streamOf(i)))
    t.same(await statuses(all), Array(5).fill(200))
    t.equal(upstream.peers.length, 2)
  })

  await t.test('each time fails them after the second connection, and the log says why', async t => {
    const { upstream, gateway } = await scene(t, peer => peer.send(settings(), goaway))
    t.same(await statuses(posts(gateway, 5)), Array(5).fill(502))
    t.ok(reasonIs(gateway, /the upstream ends the connection: NO_ERROR/))
    t.ok(upstream.peers.length <= 10, 'no request asks for more than two connections')
    t.same(upstream.peers.map(heads), Array(upstream.peers.length).fill(0))
  })
})

t.test('an upstream that allows no requests', async t => {
  await t.test('from the beginning fails those who wait, and keeps no connection', async t => {
    const { upstream, gateway } = await scene(t, peer => peer.send(allows(0)))
    t.same(await statuses(posts(gateway, 5)), Array(5).fill(502))
    t.ok(reasonIs(gateway, /MAX_CONCURRENT_STREAMS is 0/))
    await waitUntil('the end of all connections', () => upstream.peers.every(({ closed }) => closed))
    t.ok(upstream.peers.length <= 5)
    t.same(upstream.peers.map(heads), Array(upstream.peers.length).fill(0))
  })

  await t.test('any more finishes those it has, and is left', async t => {
    const { upstream, gateway } = await scene(t, peer => peer.send(settings()))
    const answer = ask(gateway.url)
    const peer = await upstream.peer()
    await peer.request()
    peer.send(allows(0))
    peer.send(whole(1))
    t.equal((await answer).status, 200)
    await waitUntil('the end of the connection', () => peer.closed)
  })
})

t.test('a connection that ends before it is open fails those who wait', async t => {
  const cases: Record<string, (peer: FramePeer) => unknown> = {
    'by GOAWAY with its SETTINGS': peer =>
      peer.send(settings(), frame(GOAWAY, 0, 0, Buffer.concat([code(0), code(0)]))),
    'by its end': peer => peer.socket.end(),
    'by a reset': peer => peer.socket.resetAndDestroy(),
    'by another frame than SETTINGS': peer => peer.send(whole(1)),
  }
  for (const [what, script] of Object.entries(cases)) {
    await t.test(what, async t => {
      const { upstream, gateway } = await scene(t, script)
      t.same(await statuses(posts(gateway, 3)), [502, 502, 502])
      await waitUntil('the end of all connections', () => upstream.peers.every(({ closed }) => closed))
    })
  }
})

t.test('an upstream that speaks HTTP/1.1 in pieces is told as one', async t => {
  const { gateway } = await scene(t, async peer => {
    peer.socket.write('H')
    await sleep(30)
    peer.socket.write('TTP/1.1 400 Bad Request\r\n\r\n')
  })
  t.equal((await ask(gateway.url)).status, 502)
  t.ok(reasonIs(gateway, /use protocol: http1/))
})

t.test('a gateway that is drained while a connection opens answers those who wait for it', async t => {
  const { upstream, gateway } = await scene(t, () => {}, '{ connect: 10s, head: 2s, idle: 2s }')
  const all = posts(gateway, 3).map(answer =>
    answer.then(
      ({ status }) => status,
      () => 'cut',
    ),
  )
  await upstream.peer()
  await sleep(50)
  await gateway.drain()
  t.equal((await Promise.all(all)).length, 3)
})
