/** Connections whose writes never end: over TLS, Node may not notice that a client has reset its connection. */
import { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import t from 'tap'
import { ServerConnections } from '../../../gateway/http1/server-connections.js'
import { GET } from '../../helpers/raw.js'
import { waitUntil } from '../../helpers/wait.js'
import { reply } from '../listen/listener.js'

/** Takes what is written to it, and never says that it was sent. */
class StuckSocket extends Duplex {
  readonly bytesRead = 0
  readonly destroySoon = Socket.prototype.destroySoon
  setTimeout(): this {
    return this
  }
  override _read(): void {}
  override _write(): void {}
}

t.test('a client that has left is let go in the end, though its response is never sent', async t => {
  const settings = { maxHead: 1024, headTimeoutMs: 60_000, requestTimeoutMs: 60_000, keepAliveMs: 100 }
  let answered = 0
  const connections = new ServerConnections(
    {
      request(_req, res) {
        reply(res, 'ok')
        answered += 1
      },
      upgrade() {},
    },
    settings,
  )
  const socket = new StuckSocket()
  connections.accept(socket as unknown as Socket, { address: '127.0.0.1', fingerprints: undefined })
  socket.push(GET)
  await waitUntil('the request', () => answered === 1)
  socket.push(null)
  await waitUntil('the end of its connection', () => socket.closed)
  t.equal(connections.closeLongest(), false, 'none is left open')
})
