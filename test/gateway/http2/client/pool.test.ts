/** The connections to an upstream, without the gateway around them. */
import t from 'tap'
import { Deadlines } from '../../../../gateway/http1/deadlines.js'
import { Http2ConnectionPool } from '../../../../gateway/http2/client/pool.js'
import type { OutgoingRequest } from '../../../../gateway/outgoing-request.js'
import { waitUntil } from '../../../helpers/wait.js'
import { Listener } from '../../http1/upstream.js'
import { ACK, frame, SETTINGS, settings } from '../../listen/frames.js'
import { frameUpstream } from './frame-upstream.js'

const TIMES = { connectMs: 5_000, headMs: 5_000, idleMs: 5_000 }

/** A request whose client has left while it waited for a connection. */
class Gone extends Listener {
  override onConnection(connection: OutgoingRequest): void {
    connection.release()
    left += 1
  }
}
let left = 0

t.test('thousands of requests whose clients have left make way for the one behind them', async t => {
  const upstream = await frameUpstream(t, () => {}, [])
  const address = { host: '127.0.0.1', port: upstream.port }
  const pool = new Http2ConnectionPool(address, TIMES, new Deadlines(), () => {})
  t.teardown(() => pool.close())
  for (let i = 0; i < 20_000; i++) pool.take(new Gone())
  let hasPlace = false
  class Last extends Listener {
    override onConnection(): void {
      hasPlace = true
    }
  }
  pool.take(new Last())
  const peer = await upstream.peer()
  peer.send(settings(), frame(SETTINGS, ACK, 0))
  await waitUntil('a place', () => hasPlace)
  t.equal(left, 20_000)
})
