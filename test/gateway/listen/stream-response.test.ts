/** The response on an HTTP/2 stream, tested alone. */
import { once } from 'node:events'
import { connect, createServer, type ServerHttp2Stream } from 'node:http2'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { fieldsOf } from '../../../gateway/http1/fields.js'
import { StreamBody } from '../../../gateway/listen/stream-body.js'
import { StreamResponse } from '../../../gateway/listen/stream-response.js'
import type { IncomingRequest } from '../../../gateway/message.js'
import { waitUntil } from '../../helpers/wait.js'

t.test('a response without flow-control window is closed when its time is over', async t => {
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
  await waitUntil('the end of the response', () => closed, 3_000)
})

t.test('a stream that is being closed is not destroyed before it is reset', async t => {
  let destroyed: boolean | undefined
  const server = createServer()
  // As in the listener: the reader of the upload is notified first, and cuts the response.
  server.on('stream', (stream: ServerHttp2Stream) => {
    const body = new StreamBody(stream, undefined, { wanted() {}, received() {} })
    const req: Partial<IncomingRequest> = { body, fields: fieldsOf([]) }
    const res = new StreamResponse(stream, req as IncomingRequest)
    body.read({
      onData() {},
      onEnd() {},
      onAbort() {
        res.cut()
        destroyed = stream.destroyed
      },
    })
    res.writeHead(200, 'OK', [])
    res.flush()
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const client = connect(`http://127.0.0.1:${port}`)
  t.teardown(() => {
    client.destroy()
    server.close()
  })
  const stream = client.request({ ':method': 'POST' }).on('error', () => {})
  await once(stream, 'response')
  client.destroy()
  await waitUntil('the end of the upload', () => destroyed !== undefined, 3_000)
  t.equal(destroyed, false)
})
