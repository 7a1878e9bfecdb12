/** What is different when clients use HTTP/2; the rest of the pipeline is the same and tested over HTTP/1.1. */
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http2'
import t from 'tap'
import { matchList } from '../../helpers/lists.js'
import { OK, type RawMessage, valuesOf } from '../../helpers/raw.js'
import { sleep, waitUntil } from '../../helpers/wait.js'
import { answering } from '../forward/gateway.js'
import {
  DATA,
  END_HEADERS,
  END_STREAM,
  FrameClient,
  frame,
  HEADERS,
  PROTOCOL_ERROR,
  RST_STREAM,
  requestFields,
} from './frames.js'
import { answerOf, ask, onBothWires, open } from './http2-scene.js'

onBothWires(t, (t, { wire, scene }) => {
  t.test('an HTTP/2 request reaches the upstream as an HTTP/1.1 request', async t => {
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
    t.same(values('cookie'), ['a=1; b=2'], 'cookie fields are joined into one')
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

  t.test('a status that HTTP/2 cannot carry becomes 502, and the upstream connection is reused', async t => {
    const { session, upstream } = await scene(t, answering(OK.replace('200', '999')))
    t.match(await ask(session, {}), { status: 502, body: 'ok' })
    t.match(await ask(session, {}), { status: 502, body: 'ok' })
    t.equal(upstream.connections.length, 1)
  })

  t.test('a response arrives whole, without hop-by-hop fields', async t => {
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

  t.test('trailers reach only a client that accepts them', async t => {
    const chunks = '2\r\nok\r\n0\r\nX-Late: 1\r\n\r\n'
    const { session } = await scene(
      t,
      answering(`HTTP/1.1 200 OK\r\nTrailer: X-Late\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}`),
    )
    for (const [te, late] of [
      ['trailers', '1'],
      [undefined, undefined],
    ] as const) {
      let trailers: IncomingHttpHeaders = {}
      const stream = open(session, te === undefined ? {} : { te }, '')
      stream.on('trailers', (fields: IncomingHttpHeaders) => {
        trailers = fields
      })
      t.equal((await answerOf(stream)).body, 'ok')
      t.equal(trailers['x-late'], late)
    }
  })

  t.test('trailers that arrive long after the body reach the client, and none are invented', async t => {
    for (const [behind, late] of [
      ['X-Late: 1\r\n', '1'],
      ['', undefined],
    ] as const) {
      const { session } = await scene(t, async peer => {
        await peer.message()
        peer.send('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n')
        await sleep(50)
        peer.send(`0\r\n${behind}\r\n`)
      })
      let trailers: IncomingHttpHeaders = {}
      const stream = open(session, { te: 'trailers' }, '')
      stream.on('trailers', (fields: IncomingHttpHeaders) => {
        trailers = fields
      })
      t.equal((await answerOf(stream)).body, 'ok')
      t.equal(trailers['x-late'], late)
    }
  })

  t.test('a response without a body ends with its head', async t => {
    for (const [method, bytes, status] of [
      ['HEAD', 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n', 200],
      ['GET', 'HTTP/1.1 204 No Content\r\n\r\n', 204],
      ['GET', 'HTTP/1.1 205 Reset Content\r\nContent-Length: 5\r\n\r\nhello', 205],
      ['GET', 'HTTP/1.1 304 Not Modified\r\nETag: "a"\r\nContent-Length: 5\r\n\r\n', 304],
    ] as const) {
      const { session } = await scene(t, async peer => {
        await peer.message()
        peer.send(bytes)
      })
      const answer = await ask(session, { ':method': method, te: 'trailers' })
      if (status === 304 || status === 205)
        t.notOk('content-length' in answer.headers, 'a 205 or 304 has no content-length')
      t.match(answer, { status, body: '' })
      if (method === 'HEAD') t.equal(answer.headers['content-length'], '5')
    }
  })

  t.test('limits apply to HTTP/2 requests, and are reported in the same fields', async t => {
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

  t.test('what HTTP/1.1 refuses is refused over HTTP/2 too', async t => {
    const { session, upstream } = await scene(t, answering(OK))
    for (const [headers, status, problem] of [
      [{ ':path': '/a%2fb' }, 400, 'bad-target'],
      [{ ':path': '/a\\b' }, 400, 'bad-target'],
      [{ host: 'other.localhost' }, 400, 'bad-host'],
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
    const withUser = open(session, { ':authority': 'user@b' }, '').resume()
    let status: unknown
    withUser.on('response', headers => {
      status = headers[':status']
    })
    await new Promise(resolve => withUser.on('close', resolve))
    t.ok([400, undefined].includes(status as undefined), 'newer versions of Node reset such a stream')
    const same = await ask(session, { host: 'ACME.localhost' })
    t.equal(same.status, 200, 'a Host equal to the authority is accepted')
    t.equal((await ask(session, { ':method': 'OPTIONS', ':path': '*' })).status, 204)
    t.equal(upstream.connections.length, 1, 'no refused request reaches the upstream')
  })

  t.test('fields that HTTP/2 forbids reset the stream', async t => {
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
    if (wire === 'own') {
      t.equal((await splitting.frame(RST_STREAM)).payload.readUInt32BE(), PROTOCOL_ERROR)
      t.equal(upstream.connections.length, 0)
      return
    }
    const peer = await upstream.connection(0)
    const { fields } = await waitUntil('the request', () => received[0])
    t.ok(peer)
    t.same(
      fields.filter(([name]) => /split|smuggled|nul/.test(name)),
      [],
      'Node drops fields with control characters',
    )
  })

  t.test('interim responses', async t => {
    const hints = (path: string): string =>
      `HTTP/1.1 103 Early Hints\r\nLink: <${path}>; rel=preload\r\nConnection: x-hop\r\nX-Hop: 1\r\n\r\n`

    t.test('arrive before the response, without hop-by-hop fields', async t => {
      const { session } = await scene(t, answering(hints('/a') + hints('/b') + OK))
      const seen: IncomingHttpHeaders[] = []
      const stream = open(session, {}, '')
      stream.on('headers', (headers: IncomingHttpHeaders) => seen.push(headers))
      const answer = await answerOf(stream)
      t.same([answer.status, answer.body], [200, 'ok'])
      matchList(t, seen, [
        { ':status': 103, link: '</a>; rel=preload', 'x-hop': undefined },
        { ':status': 103, link: '</b>; rel=preload', 'x-hop': undefined },
      ])
      t.equal(seen.length, 2)
    })

    t.test('are dropped for a client that does not read, and its response arrives', async t => {
      const sent = 30_000
      const { port, upstream } = await scene(t)
      const client = await FrameClient.open(t, port)
      client.socket.pause()
      client.send(frame(HEADERS, END_HEADERS | END_STREAM, 1, requestFields('/')))
      const peer = await upstream.connection(0)
      await peer.message()
      // Each different, or header compression would reduce them to nothing.
      for (let i = 0; i < sent; i++) peer.send(hints(`/${i}${'a'.repeat(1_000)}`))
      peer.send(OK)
      await waitUntil('all of it to be taken', () => peer.socket.writableLength === 0)
      await sleep(50)
      client.socket.resume()
      await client.frame(DATA)
      const heads = client.frames.filter(({ type }) => type === HEADERS).length
      t.ok(heads > 1 && heads < sent, `${heads} of ${sent} came`)
    })
  })
})
