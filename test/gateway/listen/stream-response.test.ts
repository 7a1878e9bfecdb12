/** The answer on a stream of HTTP/2, by itself. */
import { once } from 'node:events'
import { connect, createServer, type ServerHttp2Stream } from 'node:http2'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { StreamResponse } from '../../../gateway/listen/stream-response.js'
import type { IncomingRequest } from '../../../gateway/message.js'
import { waitUntil } from '../../helpers/wait.js'

t.test('an answer that its client gives no room for does not stay for good', async t => {
  let closed = false
  const server = createServer()
  server.on('stream', (stream: ServerHttp2Stream) => {
    const res = new StreamResponse(stream, {} as IncomingRequest, 200)
    res.watch({
      onClose() {
        closed = true
      },
    })
    res.writeHead(200, 'OK', [])
    res.end('x')
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const client = connect(`http://127.0.0.1:${port}`, { settings: { initialWindowSize: 0 } })
  t.teardown(() => {
    client.destroy()
    server.close()
  })
  client.request().on('error', () => {})
  await waitUntil('its end', () => closed, 3_000)
})
