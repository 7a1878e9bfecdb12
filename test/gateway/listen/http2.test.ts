/** What differs when clients speak HTTP/2: the rest is the same pipeline, tested over HTTP/1.1. */
import { once } from 'node:events'
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
} from 'node:http2'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { canMakeCertificates, makeCertificate, type TestCertificate } from '../../helpers/certificates.js'
import { type TestGateway, type TestGatewayOptions, testGateway } from '../../helpers/gateway.js'
import { type RawMessage, type RawPeer, type RawUpstream, rawUpstream, valuesOf } from '../../helpers/raw.js'
import { sleep, waitUntil } from '../../helpers/wait.js'
import { startGateway } from '../forward/gateway.js'
import {
  CANCEL,
  CONTINUATION,
  code,
  DATA,
  END_HEADERS,
  END_STREAM,
  ENHANCE_YOUR_CALM,
  FrameClient,
  frame,
  GOAWAY,
  HEADERS,
  NO_ERROR,
  PING,
  PROTOCOL_ERROR,
  RST_STREAM,
  requestFields,
  SETTINGS,
} from './frames.js'

const quiet = { debug() {}, info() {}, warn() {}, error() {} }
const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

interface Answer {
  readonly headers: IncomingHttpHeaders
  readonly status: number | undefined
  readonly body: string
}

/** What came on a stream, to its end; rejects when it was reset. */
async function answerOf(stream: ClientHttp2Stream): Promise<Answer> {
  const [headers] = (await once(stream, 'response')) as [IncomingHttpHeaders]
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk)
  const body = Buffer.concat(chunks).toString('latin1')
  return { headers, status: Number(headers[':status']), body }
}

function open(session: ClientHttp2Session, headers: OutgoingHttpHeaders, body?: string): ClientHttp2Stream {
  const stream = session.request(
    { ':path': '/', ':authority': 'acme.localhost', ...headers },
    { endStream: false },
  )
  stream.on('error', () => {})
  if (body !== undefined) stream.end(body)
  return stream
}

const ask = (session: ClientHttp2Session, headers: OutgoingHttpHeaders, body = ''): Promise<Answer> =>
  answerOf(open(session, headers, body))

interface Scene {
  readonly gateway: TestGateway
  readonly port: number
  readonly upstream: RawUpstream
  readonly session: ClientHttp2Session
}

if (canMakeCertificates(t)) {
  const certificate = makeCertificate(t.testdir(), 'localhost')
  const anew = (t: Test, url: string) => openSession(t, url, certificate)

  async function scene(
    t: Test,
    script?: (peer: RawPeer) => unknown,
    options: Partial<TestGatewayOptions> = {},
  ): Promise<Scene> {
    const upstream = await rawUpstream(script)
    t.teardown(() => upstream.stop())
    const gateway = await testGateway(t, { upstream: upstream.url, tls: certificate, ...options })
    const session = await anew(t, gateway.url)
    return { gateway, port: Number(new URL(gateway.url).port), upstream, session }
  }

  const answering = (bytes: string) => async (peer: RawPeer) => {
    for (;;) {
      await peer.message()
      peer.send(bytes)
    }
  }

  t.test('a request reaches the upstream as one of HTTP/1.1', async t => {
    const { session, upstream } = await scene(t)
    const sent = open(
      session,
      {
        ':path': '/a//b?q=1',
        cookie: ['a=1', 'b=2'],
        'x-latin': 'caf\xe9',
        'x-repeated': ['1', '2'],
        te: 'trailers',
        x_ja4_fingerprint: 'spoofed',
        'x-forwarded-proto': 'http',
        'x-sluice-plan': 'enterprise',
      },
      '',
    )
    const peer = await upstream.connection(0)
    const message = await peer.message()
    t.equal(message.line, 'GET /a/b?q=1 HTTP/1.1')
    const values = (name: string): string[] => valuesOf(message, name)
    t.same(values('host'), ['acme.localhost'])
    t.same(values('cookie'), ['a=1; b=2'], 'crumbs are one field again')
    t.same(values('x-latin'), ['caf\xe9'])
    t.same(values('x-repeated').join(), '1,2')
    t.same(values('via'), ['2.0 sluice'])
    t.same(values('x-forwarded-proto'), ['https'])
    t.same(values('x-sluice-plan'), ['growth'])
    const names = message.fields.map(([name]) => name.toLowerCase())
    t.same(
      names.filter(name => /^:|^te$|ja4|_/.test(name)),
      [],
    )
    peer.send(OK)
    await answerOf(sent)
  })

  t.test('an answer is whole, without the fields of a connection', async t => {
    const head = 'Set-Cookie: a=1\r\nSet-Cookie: b=2\r\nVary: x\r\nVary: y\r\nX-Latin: caf\xe9\r\n'
    const hop = 'Keep-Alive: timeout=5\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\nUpgrade: h2c\r\n'
    const { session } = await scene(
      t,
      answering(
        `HTTP/1.1 203 Strange\r\n${head}${hop}Transfer-Encoding: chunked\r\n\r\n3\r\nab\xff\r\n0\r\n\r\n`,
      ),
    )
    const { status, headers, body } = await ask(session, {})
    t.same([status, body], [203, 'ab\xff'])
    t.match(headers, { 'set-cookie': ['a=1', 'b=2'], vary: 'x, y', 'x-latin': 'caf\xe9', date: /GMT/ })
    t.same(
      Object.keys(headers).filter(name => /connection|keep|transfer|hop|upgrade/.test(name)),
      [],
    )
  })

  t.test('answers without a body end with their head', async t => {
    for (const [method, bytes, status] of [
      ['HEAD', 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n', 200],
      ['GET', 'HTTP/1.1 204 No Content\r\n\r\n', 204],
      ['GET', 'HTTP/1.1 304 Not Modified\r\nETag: "a"\r\nContent-Length: 5\r\n\r\n', 304],
    ] as const) {
      const { session } = await scene(t, async peer => {
        await peer.message()
        peer.send(bytes)
      })
      const answer = await ask(session, { ':method': method })
      t.match(answer, { status, body: '' })
      if (method === 'HEAD') t.equal(answer.headers['content-length'], '5')
    }
  })

  t.test('the limits are the same, and so is what is told of them', async t => {
    const policy = `version: 1
kind: project-limits
buckets: { catch-all: ["*"] }
limits: [{ for: [{}], quotas: { catch-all: { burst: 2, sustained: 100 } } }]
`
    const { session, gateway } = await scene(t, answering(OK), {
      policies: { 'limits.yaml': policy },
      settings: 'log: { decisions: all }',
    })
    const answers = await Promise.all([1, 2, 3].map(() => ask(session, {})))
    t.same(answers.map(({ status }) => status).sort(), [200, 200, 429])
    const refused = answers.find(({ status }) => status === 429)
    t.match(refused?.headers, {
      'content-type': 'application/problem+json',
      'retry-after': '1',
      ratelimit: /catch-all\.burst/,
      'ratelimit-policy': /catch-all\.burst/,
      'x-ratelimit-remaining': '0',
    })
    const records = gateway.lines.filter(({ decision }) => decision !== undefined)
    t.match(records[0]?.ja4, /^t13.{5}h2_[0-9a-f]{12}_[0-9a-f]{12}$/, 'the record has the fingerprint')
    t.equal(new Set(records.map(({ ja4 }) => ja4)).size, 1)
  })

  t.test('what is refused over HTTP/1.1 is refused here', async t => {
    const { session, upstream } = await scene(t, answering(OK))
    for (const [headers, status, problem] of [
      [{ ':path': '/a%2fb' }, 400, 'bad-target'],
      [{ ':path': '/a\\b' }, 400, 'bad-target'],
      [{ host: 'other.localhost' }, 400, 'bad-host'],
      [{ ':authority': 'user@b' }, 400, 'bad-host'],
      [{ ':method': 'TRACE' }, 405, 'method-not-allowed'],
      [{ ':method': 'CONNECT', ':path': undefined, ':scheme': undefined }, 405, 'method-not-allowed'],
      [{ expect: 'tea' }, 417, 'expectation-failed'],
      [{ 'x-long': 'a'.repeat(17_000) }, 431, 'header-too-large'],
      [{ ':path': `/${'a'.repeat(17_000)}` }, 414, 'target-too-long'],
    ] as const) {
      const answer = await ask(session, headers as OutgoingHttpHeaders)
      t.equal(answer.status, status, JSON.stringify(headers).slice(0, 60))
      t.match(JSON.parse(answer.body), { status, code: problem })
    }
    const same = await ask(session, { host: 'ACME.localhost' })
    t.equal(same.status, 200, 'a Host that says the same is no second one')
    t.equal((await ask(session, { ':method': 'OPTIONS', ':path': '*' })).status, 204)
    t.equal(upstream.connections.length, 1, 'none of the refused reached the upstream')
  })

  t.test('what HTTP/2 forbids is no request', async t => {
    const received: RawMessage[] = []
    const { port, upstream } = await scene(t, async peer => {
      received.push(await peer.message())
      peer.send(OK)
    })
    for (const field of [
      ['transfer-encoding', 'chunked'],
      ['connection', 'close'],
      ['upgrade', 'websocket'],
      ['te', 'gzip'],
      ['content-length', '5'],
      ['X-Upper', 'a'],
    ] as const) {
      const client = await FrameClient.open(t, port)
      client.send(frame(HEADERS, END_HEADERS | END_STREAM, 1, requestFields('/', [field])))
      const reset = await client.frame(RST_STREAM)
      t.equal(reset.payload.readUInt32BE(), PROTOCOL_ERROR, field[0])
    }
    const absolute = await FrameClient.open(t, port)
    absolute.send(frame(HEADERS, END_HEADERS | END_STREAM, 1, requestFields('https://evil.test/')))
    t.equal((await absolute.frame(RST_STREAM)).payload.readUInt32BE(), PROTOCOL_ERROR)
    t.equal(upstream.connections.length, 0)

    const splitting = await FrameClient.open(t, port)
    const values = [
      ['x-split', 'a\r\nx-smuggled: b'],
      ['x-nul', 'a\0b'],
    ] as const
    splitting.send(frame(HEADERS, END_HEADERS | END_STREAM, 1, requestFields('/', values)))
    const peer = await upstream.connection(0)
    const { fields } = await waitUntil('the request', () => received[0])
    t.ok(peer)
    t.same(
      fields.filter(([name]) => /split|smuggled|nul/.test(name)),
      [],
      'fields with control characters are left out',
    )
  })

  t.test('an upload', async t => {
    t.test('arrives whole, with and without its length', async t => {
      const { session, upstream } = await scene(t, async peer => {
        for (;;) {
          const { body } = await peer.message()
          peer.send(`HTTP/1.1 200 OK\r\nContent-Length: ${String(body.length).length}\r\n\r\n${body.length}`)
        }
      })
      const body = 'x'.repeat(300_000)
      t.equal((await ask(session, { ':method': 'POST' }, body)).body, '300000')
      t.equal((await ask(session, { ':method': 'PUT', 'content-length': 300_000 }, body)).body, '300000')
      t.equal(upstream.connections.length, 1)
    })

    t.test('is looked into for the rules that ask for it', async t => {
      const rule = `version: 1
kind: in-flight
rules:
  - { id: recovery, match: [POST /recovery], key: [project, email-or-flow], max: 1, missing: skip }
`
      const { session, upstream } = await scene(t, undefined, { policies: { 'a.yaml': rule } })
      const recover = (email: string): Promise<Answer> =>
        ask(
          session,
          { ':method': 'POST', ':path': '/recovery', 'content-type': 'application/json' },
          JSON.stringify({ email }),
        )
      const first = recover('a@b.test')
      const peer = await upstream.connection(0)
      const { body } = await peer.message()
      t.equal((await recover('A@b.test')).status, 429)
      peer.send(OK)
      t.equal((await first).status, 200)
      t.same(JSON.parse(body), { email: 'a@b.test' })
    })

    t.test('that expects a 100 gets it once somebody reads', async t => {
      const { session, upstream } = await scene(t, answering(OK))
      const stream = open(session, { ':method': 'POST', expect: '100-continue' })
      await once(stream, 'continue')
      stream.end('body')
      t.equal((await answerOf(stream)).status, 200)
      t.equal(upstream.connections.length, 1)
    })

    for (const [method, reason] of [
      ['POST', CANCEL],
      ['POST', NO_ERROR],
      ['HEAD', NO_ERROR],
    ] as const) {
      t.test(`of ${method} that its client breaks off with code ${reason} never looks complete`, async t => {
        const { port, upstream } = await scene(t)
        const client = await FrameClient.open(t, port)
        client.send(
          frame(HEADERS, END_HEADERS, 1, requestFields('/', [], method)),
          frame(DATA, 0, 1, Buffer.from('half')),
        )
        const peer = await upstream.connection(0)
        await waitUntil('the half', () => peer.unread.includes('half'))
        client.send(frame(RST_STREAM, 0, 1, code(reason)))
        await waitUntil('the end upstream', () => peer.closed || peer.ended)
        t.match(peer.unread, /half$/)
      })
    }

    t.test('that stalls is answered 408', async t => {
      const { session } = await scene(t, undefined, { timeouts: '{ connect: 1s, head: 2s, idle: 100ms }' })
      const stream = open(session, { ':method': 'POST' })
      stream.write('half')
      t.equal((await answerOf(stream)).status, 408)
    })

    t.test('answered early is told to stop', async t => {
      const { session } = await scene(t, async peer => {
        await peer.head()
        peer.send(OK)
      })
      const stream = open(session, { ':method': 'POST' })
      stream.write('half')
      const answer = await answerOf(stream)
      t.same([answer.status, answer.body], [200, 'ok'])
      await waitUntil('the reset', () => stream.closed)
      t.equal(stream.rstCode, constants.NGHTTP2_NO_ERROR)
    })
  })

  t.test('a client that resets its request takes the upstream’s away, and only that one', async t => {
    const { session, upstream } = await scene(t)
    const left = open(session, { ':path': '/left' }, '')
    const first = await upstream.connection(0)
    await first.message()
    const kept = open(session, { ':path': '/kept' }, '')
    const second = await upstream.connection(1)
    await second.message()
    left.close(constants.NGHTTP2_CANCEL)
    await waitUntil('the end upstream', () => first.closed || first.ended)
    second.send(OK)
    t.equal((await answerOf(kept)).body, 'ok')
  })

  t.test('an answer that is cut upstream is reset, and never looks complete', async t => {
    const { session, upstream } = await scene(t)
    for (const [index, framing] of [
      'Content-Length: 10\r\n\r\nhalf',
      'Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n',
    ].entries()) {
      const stream = open(session, {}, '')
      const peer = await upstream.connection(index)
      await peer.message()
      peer.send(`HTTP/1.1 200 OK\r\n${framing}`)
      await once(stream, 'response')
      peer.reset()
      await waitUntil('the reset', () => stream.closed)
      t.equal(stream.rstCode, constants.NGHTTP2_INTERNAL_ERROR)
    }
    t.notOk(session.closed, 'its connection lives on')
  })

  t.test('a reader that stalls holds up the upstream, and is cut while others are served', async t => {
    const block = Buffer.alloc(64 * 1024)
    let sent = 0
    const { session } = await scene(
      t,
      async peer => {
        const { line } = await peer.message()
        if (line.includes('/small')) return answering(OK)(peer.send(OK))
        peer.send('HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n')
        while (!peer.closed) {
          sent += block.length
          if (!peer.socket.write(block)) await Promise.race([once(peer.socket, 'drain'), sleep(5_000)])
        }
      },
      { timeouts: '{ connect: 1s, head: 2s, idle: 400ms }' },
    )
    const stalled = open(session, { ':path': '/big' }, '')
    await once(stalled, 'response')
    stalled.pause()
    const beat = setInterval(() => ask(session, { ':path': '/small' }).catch(() => {}), 50)
    t.teardown(() => clearInterval(beat))
    await waitUntil('the cut', () => stalled.closed)
    t.equal(stalled.rstCode, constants.NGHTTP2_INTERNAL_ERROR)
    t.ok(sent < 30_000_000, `the upstream was held up after ${sent} bytes`)
    t.equal((await ask(session, { ':path': '/small' })).body, 'ok')
  })

  t.test('a flood', async t => {
    const { port, upstream, session } = await scene(t, answering(OK))
    const head = (stream: number): Buffer =>
      frame(HEADERS, END_HEADERS | END_STREAM, stream, requestFields('/'))

    t.test('of requests reset as they are sent ends its connection', async t => {
      const client = await FrameClient.open(t, port)
      const before = upstream.connections.length
      for (let i = 0; i < 1000 && !client.closed; i++) {
        const stream = 2 * i + 1
        client.send(head(stream), frame(RST_STREAM, 0, stream, code(CANCEL)))
        if (i % 50 === 49) await sleep(1)
      }
      const goaway = await client.frame(GOAWAY)
      t.equal(goaway.payload.readUInt32BE(4), ENHANCE_YOUR_CALM)
      await waitUntil('the end', () => client.closed)
      t.ok(upstream.connections.length - before < 210)
    })

    for (const [what, bytes] of [
      ['pings', frame(PING, 0, 0, Buffer.alloc(8))],
      ['settings', frame(SETTINGS, 0, 0)],
    ] as const) {
      t.test(`of ${what} ends its connection`, async t => {
        const client = await FrameClient.open(t, port)
        for (let i = 0; i < 300; i++) client.send(bytes)
        t.equal((await client.frame(GOAWAY)).payload.readUInt32BE(4), ENHANCE_YOUR_CALM)
        await waitUntil('the end', () => client.closed)
      })
    }

    for (const [what, size, frames, type] of [
      ['of fields in one request is reset', 16_000, 6, RST_STREAM],
      ['of pieces of a head ends its connection', 1_000, 60, GOAWAY],
    ] as const) {
      t.test(what, async t => {
        const client = await FrameClient.open(t, port)
        const fill = Array.from({ length: 700 }, (_, i) => [`x-${i}`, 'a'.repeat(110)] as const)
        const block = requestFields('/', fill)
        for (let i = 0; i < frames; i++) {
          const kind = i === 0 ? HEADERS : CONTINUATION
          const flags = (i === 0 ? END_STREAM : 0) | (i === frames - 1 ? END_HEADERS : 0)
          const end = i === frames - 1 ? block.length : (i + 1) * size
          client.send(frame(kind, flags, 1, block.subarray(i * size, end)))
        }
        const { payload } = await client.frame(type)
        if (type === RST_STREAM) t.equal(payload.readUInt32BE(), ENHANCE_YOUR_CALM)
        else await waitUntil('the end', () => client.closed)
      })
    }

    t.test('of whatever bytes ends its connection, or is nothing', async t => {
      const anyFrame = fc
        .tuple(fc.nat(12), fc.nat(255), fc.nat(5), fc.uint8Array({ maxLength: 40 }))
        .map(([type, flags, stream, bytes]) => frame(type, flags, stream, Buffer.from(bytes)))
      await fc.assert(
        fc.asyncProperty(fc.array(anyFrame, { minLength: 1, maxLength: 8 }), async frames => {
          const client = await FrameClient.open(t, port)
          client.send(...frames)
          client.socket.end()
          await waitUntil('the end', () => client.closed)
        }),
        { numRuns: 25 },
      )
    })

    t.equal(session.remoteSettings.maxConcurrentStreams, 100)
    t.equal((await ask(session, {})).status, 200, 'others do not notice')
  })

  t.test('drain: requests finish, new ones are not taken, idle connections close', async t => {
    const upstream = await rawUpstream()
    t.teardown(() => upstream.stop())
    const tls = { cert: certificate.certFile, key: certificate.keyFile, log: quiet }
    const gateway = await startGateway(t, { url: upstream.url, tls })
    const url = `https://127.0.0.1:${gateway.port}`
    const [session, idle] = [await anew(t, url), await anew(t, url)]
    const running = open(session, {}, '')
    const peer = await upstream.connection(0)
    await peer.message()
    const drained = gateway.drain(5_000)
    await once(session, 'goaway')
    await waitUntil('the idle one to close', () => idle.destroyed)
    t.throws(() => session.request({ ':path': '/' }), { code: 'ERR_HTTP2_GOAWAY_SESSION' })
    peer.send(OK)
    t.equal((await answerOf(running)).body, 'ok')
    await drained
    await waitUntil('the end', () => session.destroyed)
  })
}

async function openSession(t: Test, url: string, { cert }: TestCertificate): Promise<ClientHttp2Session> {
  const session = connect(url, { ca: cert })
  session.on('error', () => {})
  t.teardown(() => session.destroy())
  await once(session, 'connect')
  if (session.remoteSettings.maxConcurrentStreams === undefined) await once(session, 'remoteSettings')
  return session
}
