/** Many requests side by side on one connection to an upstream. */
import { once } from 'node:events'
import { Agent, type IncomingMessage } from 'node:http'
import { type ClientHttp2Session, type ClientHttp2Stream, connect, type ServerHttp2Stream } from 'node:http2'
import t from 'tap'
import { canMakeCertificates, makeCertificate } from '../../../helpers/certificates.js'
import { sleep, waitUntil } from '../../../helpers/wait.js'
import { answerTo, ask, begin } from './http.js'
import { h2cScene } from './upstream.js'

const CHUNK = Buffer.alloc(64 * 1024, 1)

t.test('200 requests at a time share two connections, whatever the order of their responses', async t => {
  const waiting: [ServerHttp2Stream, string][] = []
  const { gateway, upstream } = await h2cScene(t, (stream, headers) => {
    waiting.push([stream, headers[':path'] ?? ''])
  })
  const agent = new Agent({ keepAlive: true })
  t.teardown(() => agent.destroy())
  const all = Array.from({ length: 200 }, (_, i) => ask(`${gateway.url}/${i}`, { agent }))
  await waitUntil('all requests', () => waiting.length === 200)
  t.equal(upstream.sessions.length, 2)
  for (const [stream, path] of waiting.reverse()) {
    stream.respond({ ':status': 200 })
    stream.end(path)
  }
  const bodies = (await Promise.all(all)).map(({ body }) => body.toString())
  t.same(
    bodies,
    bodies.map((_, i) => `/${i}`),
  )
})

t.test('a client that does not read keeps no other waiting, and little is held for it', async t => {
  let slowSent = 0
  const { gateway, upstream } = await h2cScene(t, (stream, headers) => {
    stream.respond({ ':status': 200 })
    if (headers[':path'] !== '/slow') {
      stream.end(Buffer.alloc(1024 * 1024))
      return
    }
    const more = (): void => {
      while (!stream.destroyed) {
        slowSent += CHUNK.length
        if (!stream.write(CHUNK)) break
      }
    }
    stream.on('drain', more)
    more()
  })
  const slow = Array.from({ length: 20 }, () => begin(`${gateway.url}/slow`).on('error', () => {}))
  for (const req of slow) {
    req.end()
    const [res] = (await once(req, 'response')) as [IncomingMessage]
    res.on('error', () => {}).pause()
  }
  let before = -1
  await waitUntil('the slow responses stop', async () => {
    const isSame = before === slowSent
    before = slowSent
    await sleep(100)
    return isSame
  })
  const external = process.memoryUsage().arrayBuffers
  for (let i = 0; i < 20; i++) t.equal((await ask(`${gateway.url}/fast`)).body.length, 1024 * 1024)
  t.equal(slowSent, before, 'the slow ones are still stopped')
  t.equal(upstream.sessions.length, 1)
  t.ok(process.memoryUsage().arrayBuffers - external < 64 * 1024 * 1024)
  for (const req of slow) req.destroy()
})

t.test('the request of a client that leaves is cancelled, and the connection stays', async t => {
  const { gateway, upstream } = await h2cScene(t, (stream, headers) => {
    if (headers[':path'] === '/wait') return
    stream.respond({ ':status': 200 })
    if (headers[':path'] === '/begin') stream.write('some')
    else stream.end('ok')
  })
  for (const path of ['/wait', '/begin']) {
    const req = begin(gateway.url + path).on('error', () => {})
    const response = once(req, 'response')
    response.catch(() => {})
    const count = upstream.streams.length
    req.end()
    const stream = await waitUntil('the request', () => upstream.streams[count])
    if (path === '/begin') await response
    req.destroy()
    await waitUntil('the reset', () => stream.closed)
    t.equal(stream.rstCode, 8, 'CANCEL')
    t.equal((await ask(gateway.url)).body.toString(), 'ok')
  }
  t.equal(upstream.sessions.length, 1)
})

t.test('an upstream that takes one stream at a time gets no two at once on any connection', async t => {
  const busy = new Set<unknown>()
  let shared = 0
  const { gateway, upstream } = await h2cScene(
    t,
    async stream => {
      const { session } = stream
      if (busy.has(session)) shared += 1
      busy.add(session)
      await sleep(30)
      busy.delete(session)
      stream.respond({ ':status': 200 })
      stream.end('ok')
    },
    { server: { settings: { maxConcurrentStreams: 1 } } },
  )
  t.equal((await ask(gateway.url)).status, 200)
  const all = await Promise.all(Array.from({ length: 10 }, () => ask(gateway.url)))
  t.same(
    all.map(({ status }) => status),
    Array(10).fill(200),
  )
  t.equal(shared, 0)
  // Not always ten: one that is answered before the others are open makes room for a request that waits.
  t.ok(upstream.sessions.length > 1)
})

t.test('an upload waits for the upstream’s window, and others go on', async t => {
  const { gateway, upstream } = await h2cScene(t, (stream, headers) => {
    if (headers[':path'] === '/full') return
    stream.respond({ ':status': 200 })
    stream.pipe(stream)
  })
  const full = begin(`${gateway.url}/full`, { method: 'POST', headers: { 'transfer-encoding': 'chunked' } })
  full.on('error', () => {})
  let taken = 0
  while (full.write(CHUNK) || taken < 4_000_000) {
    taken += CHUNK.length
    if (taken > 50_000_000) break
    await sleep(0)
  }
  t.ok(taken < 50_000_000, 'the client must wait')
  const { body } = await ask(gateway.url, { method: 'POST', body: Buffer.alloc(300_000, 2) })
  t.equal(body.length, 300_000)
  t.equal(upstream.sessions.length, 1)
  const [stream] = upstream.streams
  stream?.resume()
  stream?.on('end', () => {
    stream.respond({ ':status': 204 }, { endStream: true })
  })
  full.end()
  t.equal((await answerTo(full)).status, 204)
})

t.test('the last stream leaves a connection that is closed when it has been idle', async t => {
  const { gateway, upstream } = await h2cScene(t, stream => {
    stream.respond({ ':status': 200 })
    stream.end('ok')
  })
  await ask(gateway.url)
  const [session] = upstream.sessions
  await waitUntil('the end of the connection', () => session?.closed)
  t.equal((await ask(gateway.url)).status, 200)
  t.equal(upstream.sessions.length, 2)
})

t.test(
  'responses that their clients do not read keep their places, and no other request waits for them',
  async t => {
    if (!canMakeCertificates(t)) return
    const { certFile, keyFile } = makeCertificate(t.testdir(), 'gateway')
    const used: unknown[] = []
    const { gateway, upstream } = await h2cScene(
      t,
      (stream, headers) => {
        stream.respond({ ':status': 200 })
        if (headers[':path'] === '/held') stream.write(Buffer.alloc(30_000))
        else stream.end('ok')
        used.push(stream.session)
      },
      { tls: { certFile, keyFile } },
    )
    const connectTo = (initialWindowSize: number): ClientHttp2Session => {
      const session = connect(gateway.url, { rejectUnauthorized: false, settings: { initialWindowSize } })
      t.teardown(() => session.destroy())
      return session.on('error', () => {})
    }
    const get = (session: ClientHttp2Session, path: string): ClientHttp2Stream =>
      session.request({ ':path': path, ':authority': 'acme.localhost' }).on('error', () => {})
    const reader = connectTo(65_535)
    const read = async (): Promise<void> => {
      const stream = get(reader, '/read')
      const chunks: Buffer[] = []
      for await (const chunk of stream) chunks.push(chunk)
      t.equal(Buffer.concat(chunks).toString(), 'ok')
    }
    const holder = connectTo(0)
    const held = Array.from({ length: 100 }, () => get(holder, '/held'))
    await Promise.all(held.map(stream => once(stream, 'response')))
    // The gateway has passed on what came with the heads, and now pauses; the rest is held.
    await sleep(300)
    for (const stream of upstream.streams) stream.end(Buffer.alloc(30_000))
    await waitUntil('the upstream has sent them', () => upstream.streams.every(stream => stream.closed))
    await sleep(300)
    await read()
    t.equal(upstream.sessions.length, 2)
    t.equal(used.at(-1), upstream.sessions[1], 'the first connection is full')
    holder.destroy()
    await sleep(100)
    await read()
    t.equal(used.at(-1), upstream.sessions[0], 'once they are given up it takes requests again')
  },
)
