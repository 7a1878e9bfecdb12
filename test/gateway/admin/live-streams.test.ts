/** Streams whose readers are slow, or gone. */
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import t from 'tap'
import { type LiveListener, LiveStreams } from '../../../gateway/admin/live.js'
import { waitUntil } from '../../helpers/wait.js'

t.test('a stream that is not read skips snapshots, and is closed after thirty seconds', async t => {
  const listeners = new Set<LiveListener>()
  const streams = new LiveStreams({
    watch(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  })
  let opened: ServerResponse | undefined
  const server = createServer((_req, res) => {
    opened = res
    streams.open(res)
  }).listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await once(server, 'listening')
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  t.teardown(() => socket.destroy())
  socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
  await once(socket, 'data')
  socket.pause()

  const res = opened as ServerResponse
  const snapshot = 'x'.repeat(1_000_000)
  const tell = () => {
    for (const listener of listeners) listener('live', snapshot)
  }
  await waitUntil('its buffers are full', () => {
    tell()
    return res.writableNeedDrain
  })
  const waiting = res.writableLength
  for (let i = 0; i < 50; i += 1) tell()
  t.equal(res.writableLength, waiting, 'no further snapshots are buffered for it')

  let late = performance.now() + 29_000
  t.intercept(performance, 'now', { value: () => late })
  tell()
  t.notOk(res.destroyed)
  late += 2000
  tell()
  t.ok(res.destroyed)
  await waitUntil('no listener to be left', () => listeners.size === 0)
})
