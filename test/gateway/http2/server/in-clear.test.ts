/** HTTP/2 in the clear ends like any other: with its client, and at the end of a drain. */
import { connect } from 'node:http2'
import { connect as connectSocket } from 'node:net'
import t, { type Test } from 'tap'
import { waitUntil } from '../../../helpers/wait.js'
import { h2cScene } from '../client/upstream.js'

/** A request that the upstream does not answer. */
async function scene(t: Test) {
  const { gateway, upstream } = await h2cScene(t, () => undefined)
  const socket = connectSocket(Number(new URL(gateway.url).port), '127.0.0.1')
  const session = connect(gateway.url, { createConnection: () => socket }).on('error', () => {})
  t.teardown(() => session.destroy())
  const request = session.request({ ':authority': 'acme.localhost' }).on('error', () => {})
  const stream = await waitUntil('the request', () => upstream.streams[0])
  return { gateway, socket, request, stream }
}

t.test('a client that closes its connection has its requests cancelled at once', async t => {
  const { socket, stream } = await scene(t)
  socket.destroy()
  await waitUntil('the cancellation', () => stream.closed, 2000)
  t.equal(stream.rstCode, 8)
})

t.test('what is in progress after the time of a drain is cut', async t => {
  const { gateway, request } = await scene(t)
  const drained = gateway.drain().then(() => true)
  // `drain` of the test's gateway is 100 ms.
  t.equal(await Promise.race([drained, new Promise(resolve => setTimeout(resolve, 3000))]), true)
  await waitUntil('the end', () => request.closed)
})
