/** Requests to upstreams that speak HTTP/2, and their responses, through a whole gateway. */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { WebSocket, WebSocketServer } from 'ws'
import { canMakeCertificates, makeCertificate } from '../../../helpers/certificates.js'
import { testGateway } from '../../../helpers/gateway.js'
import { startApp } from '../../../helpers/http.js'
import { answerTo, ask, begin } from './http.js'
import { h2cGateway, h2cScene, http2Upstream, tlsScene } from './upstream.js'

const MEGABYTE = Buffer.alloc(1024 * 1024, 'abcdefghijk')
const hashOf = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')

t.test('a request arrives as the client sent it, and so does the response', async t => {
  const { gateway } = await h2cScene(t, (stream, headers) => {
    stream.respond({ ':status': 201, 'x-seen': JSON.stringify(headers) })
    stream.end('hello')
  })
  const answer = await ask(`${gateway.url}/a%20b?x=1&y=%20`, { headers: { 'x-a': '1' } })
  t.equal(answer.status, 201)
  t.equal(answer.body.toString(), 'hello')
  const seen = JSON.parse(answer.headers['x-seen'] as string)
  t.match(seen, {
    ':method': 'GET',
    ':scheme': 'http',
    ':authority': 'acme.localhost',
    ':path': '/a%20b?x=1&y=%20',
    te: 'trailers',
    'x-a': '1',
    'x-sluice-project': 'acme',
  })
  for (const name of ['host', 'connection', 'transfer-encoding']) t.notOk(name in seen, name)
})

t.test('a megabyte arrives whole, both ways', async t => {
  const { gateway } = await h2cScene(t, async stream => {
    const chunks: Buffer[] = []
    for await (const chunk of stream) chunks.push(chunk)
    const body = Buffer.concat(chunks)
    stream.respond({ ':status': 200, 'x-hash': hashOf(body) })
    stream.end(body)
  })
  const framings: Record<string, string>[] = [
    { 'content-length': String(MEGABYTE.length) },
    { 'transfer-encoding': 'chunked' },
  ]
  for (const headers of framings) {
    const { body, headers: answered } = await ask(gateway.url, { method: 'POST', headers, body: MEGABYTE })
    t.equal(answered['x-hash'], hashOf(MEGABYTE))
    t.equal(hashOf(body), hashOf(MEGABYTE))
  }
})

t.test('trailers pass both ways, and so does a 103', async t => {
  const { gateway } = await h2cScene(t, async stream => {
    let sent: unknown
    stream.on('trailers', trailers => {
      sent = trailers['x-sum']
    })
    stream.additionalHeaders({ ':status': 103, link: '</a.css>; rel=preload' })
    for await (const _ of stream);
    stream.respond({ ':status': 200 }, { waitForTrailers: true })
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0', 'x-heard': String(sent) }))
    stream.end('body')
  })
  const req = begin(gateway.url, {
    method: 'POST',
    headers: { trailer: 'x-sum', 'transfer-encoding': 'chunked' },
  })
  req.write('abc')
  req.addTrailers({ 'x-sum': '7' })
  req.end()
  const { status, trailers, interim, body } = await answerTo(req)
  t.equal(status, 200)
  t.equal(body.toString(), 'body')
  t.same(interim, [103])
  t.match(trailers, { 'grpc-status': '0', 'x-heard': '7' })
})

t.test('responses without content end with their head', async t => {
  const { gateway } = await h2cScene(t, (stream, headers) => {
    const status = Number(headers[':path']?.slice(1))
    stream.respond(
      { ':status': status, ...(status === 200 && { 'content-length': '5' }) },
      { endStream: true },
    )
  })
  const head = await ask(`${gateway.url}/200`, { method: 'HEAD' })
  t.equal(head.headers['content-length'], '5')
  t.equal((await ask(`${gateway.url}/204`)).status, 204)
  t.equal((await ask(`${gateway.url}/304`)).status, 304)
  t.equal((await ask(`${gateway.url}/404`)).body.length, 0)
})

t.test('a response that comes before the end of the upload is passed on at once', async t => {
  const { gateway, upstream } = await h2cScene(t, stream => {
    stream.respond({ ':status': 413 })
    stream.end('enough')
  })
  const req = begin(gateway.url, { method: 'POST', headers: { 'transfer-encoding': 'chunked' } })
  req.on('error', () => {})
  req.write('the beginning')
  t.equal((await answerTo(req)).body.toString(), 'enough')
  req.destroy()
  t.equal((await ask(gateway.url)).status, 413)
  t.equal(upstream.sessions.length, 1, 'the connection is still used')
})

t.test('messages stream in both directions at the same time', async t => {
  const { gateway } = await h2cScene(t, stream => {
    stream.respond({ ':status': 200 })
    stream.pipe(stream)
  })
  const req = begin(gateway.url, { method: 'POST', headers: { 'transfer-encoding': 'chunked' } })
  req.write('a')
  const [res] = await once(req, 'response')
  for (const text of ['b', 'c', 'd']) {
    const [echo] = await once(res, 'data')
    t.equal(echo.length, 1)
    req.write(text)
  }
  req.end()
  res.resume()
  await once(res, 'end')
})

t.test('a WebSocket is opened by HTTP/1.1 beside it', async t => {
  // One server for both, as a proxy before an application would be.
  const server = createServer((_, res) => res.end('by HTTP/1.1'))
  const sockets = new WebSocketServer({ server })
  sockets.on('connection', socket => socket.on('message', data => socket.send(data)))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    sockets.close()
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const gateway = await h2cGateway(t, `http://127.0.0.1:${port}`)
  const socket = new WebSocket(`ws://127.0.0.1:${new URL(gateway.url).port}/`, {
    headers: { host: 'acme.localhost' },
  })
  t.teardown(() => socket.terminate())
  await once(socket, 'open')
  socket.send('hello')
  const [data] = await once(socket, 'message')
  t.equal(String(data), 'hello')

  const { status } = await ask(gateway.url)
  t.equal(status, 502)
  t.ok(
    gateway.lines.some(line =>
      JSON.stringify(line).includes('the upstream speaks HTTP/1.1; use protocol: http1'),
    ),
    'what is not HTTP/2 is said in the log',
  )
})

t.test('a reload that changes the protocol opens other connections', async t => {
  const { gateway, upstream } = await h2cScene(t, stream => {
    stream.respond()
    stream.end('by HTTP/2')
  })
  const app = await startApp(t, (_, res) => res.end('by HTTP/1.1'))
  t.equal((await ask(gateway.url)).body.toString(), 'by HTTP/2')
  const file = join(gateway.folder, 'gateway.yaml')
  const text = readFileSync(file, 'utf8')
  writeFileSync(file, text.replace(upstream.url, app).replace('protocol: h2c', 'protocol: http1'))
  t.match(await gateway.reloader.reload('admin'), { result: 'loaded' })
  t.equal((await ask(gateway.url)).body.toString(), 'by HTTP/1.1')
})

if (canMakeCertificates(t)) {
  t.test('within TLS, HTTP/2 is negotiated', async t => {
    const { gateway, upstream } = await tlsScene(t, (stream, headers) => {
      stream.respond({ ':status': 200 })
      stream.end(headers[':scheme'])
    })
    for (let i = 0; i < 3; i++) t.equal((await ask(gateway.url)).body.toString(), 'https')
    t.equal(upstream.sessions.length, 1, 'over one connection')
  })

  t.test(
    'an upstream that does not agree to HTTP/2 gets no request, and the log says what to do',
    async t => {
      const certificate = makeCertificate(t.testdir(), 'upstream')
      const { createServer } = await import('node:https')
      for (const ALPNProtocols of [['http/1.1'], undefined]) {
        const server = createServer(
          { cert: certificate.cert, key: certificate.key, ...(ALPNProtocols && { ALPNProtocols }) },
          (_, res) => res.end(),
        )
        server.on('tlsClientError', () => {})
        server.listen(0, '127.0.0.1')
        await once(server, 'listening')
        t.teardown(() => server.close())
        const gateway = await testGateway(t, {
          upstream: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
          ca: certificate.certFile,
          upstreamSettings: 'protocol: h2',
        })
        t.equal((await ask(gateway.url)).status, 502)
        const reasons = gateway.lines.map(({ reason }) => reason)
        t.ok(
          reasons.includes('the upstream did not agree to HTTP/2 (ALPN); use protocol: http1'),
          JSON.stringify(reasons),
        )
      }
    },
  )
}

t.test('without ALPN the port is asked in the clear, and an empty pool opens one connection', async t => {
  const upstream = await http2Upstream(t, stream => {
    stream.respond({ ':status': 200 })
    stream.end('ok')
  })
  const gateway = await h2cGateway(t, upstream.url)
  const all = await Promise.all(Array.from({ length: 50 }, () => ask(gateway.url)))
  t.ok(all.every(({ status }) => status === 200))
  t.equal(upstream.sessions.length, 1)
})

t.test('bytes above ASCII at the ends of a value arrive, both ways', async t => {
  const values = { 'x-a': Buffer.from('voilà').toString('latin1'), 'x-b': '\xa0', 'x-c': '\xa0a\xa0' }
  const { gateway } = await h2cScene(t, (stream, headers) => {
    const { 'x-a': a, 'x-b': b, 'x-c': c } = headers
    stream.respond({ 'x-a': a, 'x-b': b, 'x-c': c })
    stream.end()
  })
  t.match((await ask(gateway.url, { headers: values })).headers, values)
})
