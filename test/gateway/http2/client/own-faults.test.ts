/** Faults of the gateway itself while it handles a response: they end that exchange, and no other. */
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import t, { type Test } from 'tap'
import type { Exchange } from '../../../../gateway/forward/transport.js'
import { startGateway } from '../../forward/gateway.js'
import { code, DATA, END_STREAM, frame, RST_STREAM } from '../../listen/frames.js'
import { type FramePeer, frameUpstream, head, whole } from './frame-upstream.js'
import { answerTo, ask, begin } from './http.js'

/** A gateway whose exchanges on `/bad` are changed. */
async function scene(t: Test, change: Partial<Exchange>) {
  const upstream = await frameUpstream(t)
  const causes: (string | undefined)[] = []
  const own = (exchange: Exchange): Partial<Exchange> => ({
    fail: (code, cause) => {
      causes.push(cause)
      exchange.fail(code, cause)
    },
    onCut: cause => causes.push(cause),
    ...change,
  })
  const gateway = await startGateway(t, {
    url: upstream.url,
    protocol: 'h2c',
    between: async exchange =>
      exchange.facts.path === '/bad' ? { ...exchange, ...own(exchange) } : exchange,
  })
  const url = `http://127.0.0.1:${gateway.port}`
  const bad = begin(`${url}/bad`)
  bad.end()
  const peer = await upstream.peer()
  await peer.request(1)
  const neighbour = ask(`${url}/good`)
  await peer.request(3)
  return { upstream, bad, neighbour, peer, causes }
}

const broken = (): never => {
  throw new Error('a fault of ours')
}
const reason = 'the gateway failed to handle the response: a fault of ours'

t.test('a fault at the head of a response', async t => {
  const { bad, neighbour, peer, causes, upstream } = await scene(t, { onAnswer: broken })
  peer.send(head(1))
  t.equal((await answerTo(bad)).status, 502)
  await peer.frame(RST_STREAM, 1)
  peer.send(whole(3))
  t.equal((await neighbour).status, 200, 'its neighbour is answered')
  t.same(causes, [reason], 'it is reported once')
  t.equal(upstream.peers.length, 1)
})

for (const [what, end] of [
  ['at the end of a response', (peer: FramePeer) => peer.send(frame(DATA, END_STREAM, 1))],
  ['when a response breaks off', (peer: FramePeer) => peer.send(frame(RST_STREAM, 0, 1, code(2)))],
] as const) {
  t.test(`a fault ${what} cuts it`, async t => {
    const { bad, neighbour, peer, causes } = await scene(t, { onUpstreamEnd: broken })
    peer.send(head(1), frame(DATA, 0, 1, Buffer.from('half')))
    const [res] = (await once(bad, 'response')) as [IncomingMessage]
    const over = once(res.resume(), 'end')
    over.catch(() => {})
    end(peer)
    await t.rejects(over)
    peer.send(whole(3))
    t.equal((await neighbour).status, 200)
    t.same(causes, [reason])
  })
}

t.test('a fault of the error response itself still ends the exchange', async t => {
  const { bad, neighbour, peer } = await scene(t, { fail: broken })
  const answer = answerTo(bad)
  answer.catch(() => {})
  peer.send(frame(RST_STREAM, 0, 1, code(2)))
  await t.rejects(answer, 'it is cut')
  peer.send(whole(3))
  t.equal((await neighbour).status, 200)
})
