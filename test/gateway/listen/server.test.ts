import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import type { Readable } from 'node:stream'
import t, { type Test } from 'tap'
import { GatewayError } from '../../../gateway/errors.js'
import { peekBody, tapBody } from '../../../gateway/listen/body.js'
import { TrustedProxies } from '../../../gateway/listen/client.js'
import { readFacts } from '../../../gateway/listen/facts.js'
import { createListener, type Handlers, type Listener } from '../../../gateway/listen/server.js'
import type { Facts } from '../../../gateway/types.js'
import { RawPeer, rawClient, valuesOf } from '../../helpers/raw.js'
import { sleep, waitUntil } from '../../helpers/wait.js'
import { wideDoor } from './door.js'

type Answer = (req: IncomingMessage, res: ServerResponse) => void

async function listen(
  t: Test,
  request: Answer,
  handlers: Partial<Handlers> = {},
): Promise<{ listener: Listener; port: number; client: RawPeer }> {
  const listener = createListener({ request, upgrade: (_req, res) => res.end(), ...handlers }, wideDoor())
  const { port } = await listener.start('127.0.0.1', 0)
  t.teardown(() => listener.drain(0))
  const client = await rawClient(port)
  t.teardown(() => client.socket.destroy())
  return { listener, port, client }
}

const settings = (cidrs: string[] = []) => ({
  trusted: new TrustedProxies(cidrs),
  fingerprintHeaders: { ja3: 'x-ja3-fingerprint', ja4: 'x-ja4-fingerprint' },
})

/** What the listen room makes of raw request bytes: facts, or the code of the refusal. */
async function heard(t: Test, bytes: string, cidrs?: string[]): Promise<Facts | string> {
  let result: Facts | string | undefined
  const { client } = await listen(t, (req, res) => {
    try {
      result = readFacts(req, settings(cidrs))
    } catch (error) {
      result = error instanceof GatewayError ? error.code : String(error)
    }
    res.writeHead(200, ['Connection', 'close']).end()
  })
  const answer = await client.send(bytes).message({ tillClose: true })
  if (result !== undefined) return result
  t.same(valuesOf(answer, 'content-type'), ['application/problem+json'])
  t.same(valuesOf(answer, 'connection'), ['close'])
  return JSON.parse(answer.body).code
}

const request = (fields: string, body = ''): string => `POST /a HTTP/1.1\r\n${fields}\r\n${body}`

t.test('what two servers could read differently is refused', async t => {
  for (const [what, bytes, code] of [
    [
      'length beside chunks',
      request('Host: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n', '0\r\n\r\n'),
      /bad-(framing|request)/,
    ],
    [
      'two lengths',
      request('Host: a\r\nContent-Length: 2\r\nContent-Length: 3\r\n', 'abc'),
      /bad-(framing|request)/,
    ],
    [
      'two equal lengths',
      request('Host: a\r\nContent-Length: 2\r\nContent-Length: 2\r\n', 'ab'),
      /bad-(framing|request)/,
    ],
    ['a list of lengths', request('Host: a\r\nContent-Length: 2, 2\r\n', 'ab'), /bad-(framing|request)/],
    ['a signed length', request('Host: a\r\nContent-Length: +2\r\n', 'ab'), /bad-(framing|request)/],
    [
      'a length beyond all numbers',
      request('Host: a\r\nContent-Length: 18446744073709551618\r\n', 'ab'),
      /bad-(framing|request)/,
    ],
    [
      'an unknown coding',
      request('Host: a\r\nTransfer-Encoding: xchunked\r\n', '0\r\n\r\n'),
      /bad-(framing|request)/,
    ],
    [
      'a coding after chunked',
      request('Host: a\r\nTransfer-Encoding: chunked, gzip\r\n', '0\r\n\r\n'),
      /bad-(framing|request)/,
    ],
    [
      'a coding before chunked',
      request('Host: a\r\nTransfer-Encoding: gzip, chunked\r\n', '0\r\n\r\n'),
      /bad-(framing|request)/,
    ],
    [
      'chunked twice',
      request('Host: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n', '0\r\n\r\n'),
      /bad-(framing|request)/,
    ],
    [
      'chunks in HTTP/1.0',
      'POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      /bad-(framing|request)/,
    ],
    ['no Host', request('X: 1\r\n'), 'bad-host'],
    ['two Hosts', request('Host: a\r\nHost: a\r\n'), 'bad-host'],
    ['an empty Host', request('Host:\r\n'), 'bad-host'],
    ['a Host with a path', request('Host: a/b\r\n'), 'bad-host'],
    ['a Host with a user', request('Host: u@a\r\n'), 'bad-host'],
    ['a Host with two ports', request('Host: a:1:2\r\n'), 'bad-host'],
    ['an authority with a user', 'GET http://u@a/ HTTP/1.1\r\nHost: a\r\n\r\n', 'bad-host'],
    ['TRACE', 'TRACE / HTTP/1.1\r\nHost: a\r\n\r\n', 'method-not-allowed'],
    ['CONNECT', 'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n', 'method-not-allowed'],
    ['a blank before the colon', request('Host: a\r\nX : 1\r\n'), 'bad-request'],
    ['a folded line', request('Host: a\r\nX: 1\r\n 2\r\n'), 'bad-request'],
    ['NUL in a value', request('Host: a\r\nX: a\0b\r\n'), 'bad-request'],
    ['a bare CR in a value', request('Host: a\r\nX: a\rb\r\n'), 'bad-request'],
    ['a bare LF', 'GET / HTTP/1.1\nHost: a\n\n', 'bad-request'],
    ['HTTP/2 preface', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'bad-request'],
    ['an ambiguous path', 'GET /a%2fb HTTP/1.1\r\nHost: a\r\n\r\n', 'bad-target'],
    ['too long a head', request(`Host: a\r\nX: ${'x'.repeat(17_000)}\r\n`), 'header-too-large'],
  ] as const) {
    t.test(what, async t => {
      t.match(await heard(t, bytes), code)
    })
  }
})

t.test('fields beyond a thousand are seen', async t => {
  const many = 'a:b\r\n'.repeat(1100)
  t.match(
    await heard(
      t,
      request(`Host: a\r\n${many}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n`, '0\r\n\r\n'),
    ),
    /^bad-/,
  )
  t.equal(await heard(t, request(`Host: a\r\n${many}Host: b\r\n`)), 'bad-host')
})

t.test('facts', async t => {
  t.match(await heard(t, 'GET /a/../b?x=1 HTTP/1.1\r\nHost: ACME.localhost.:8080\r\n\r\n'), {
    id: /^[0-9a-f-]{36}$/,
    method: 'GET',
    path: '/b',
    query: '?x=1',
    host: 'acme.localhost',
    client: '127.0.0.1',
    network: '127.0.0.1',
    trusted: false,
    authenticated: false,
  })
  t.match(await heard(t, 'GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n'), { host: '[::1]' })
  t.match(await heard(t, 'GET http://shop:81/ HTTP/1.1\r\nHost: other\r\n\r\n'), { host: 'shop' })
  t.match(await heard(t, 'GET / HTTP/1.0\r\n\r\n'), { host: '' })
  t.match(await heard(t, 'OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n'), { path: '*' })

  const signs =
    'Host: a\r\nX-Forwarded-For: 9.9.9.9\r\nX-JA3-Fingerprint: three\r\nX-JA4-Fingerprint: four\r\n'
  const believed = await heard(t, request(signs), ['127.0.0.1'])
  t.match(believed, { client: '9.9.9.9', trusted: true, ja3: 'three', ja4: 'four' })
  t.match(await heard(t, request(signs)), {
    client: '127.0.0.1',
    trusted: false,
    ja3: undefined,
    ja4: undefined,
  })

  for (const [fields, authenticated] of [
    ['Authorization: Bearer x\r\n', true],
    ['Cookie: a=1; ory_kratos_SESSION=x\r\n', true],
    ['Cookie: a=session; b=1\r\n', false],
    ['Cookie: session\r\n', false],
  ] as const) {
    t.match(await heard(t, request(`Host: a\r\n${fields}`)), { authenticated }, fields)
  }

  const facts = (await heard(t, request('Host: a\r\nX-A: 1\r\nx-a: 2\r\nAuthorization: secret\r\n'))) as Facts
  t.equal(facts.header('x-a'), '1, 2')
  t.equal(facts.header('constructor'), undefined)
  t.notMatch(JSON.stringify(facts), /secret/, 'facts can be logged')
})

t.test('a broken body never puts a second status line into an answer that has begun', async t => {
  const { client } = await listen(t, (req, res) => {
    req.on('error', () => {}).resume()
    res.writeHead(200, ['Content-Length', '100']).write('begun')
  })
  client.send(request('Host: a\r\nTransfer-Encoding: chunked\r\n'))
  await client.head()
  client.send('zz\r\n')
  t.equal(await client.rest(), 'begun')
})

const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'
const UPGRADE = 'GET /b HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'
const CONNECT = 'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n'
const CLOSE = ['Connection', 'close']

t.test(
  'an upgrade or CONNECT behind a request still unanswered ends the connection, not the process',
  async t => {
    for (const second of [UPGRADE, CONNECT]) {
      const left: string[] = []
      const { client, port } = await listen(t, (req, res) => {
        res.on('close', () => left.push(req.url ?? ''))
        if (req.url === '/alive') res.end()
      })
      client.send(GET + second)
      await waitUntil('the cut', () => client.ended || client.closed)
      t.equal(client.unread, '', 'nothing is taken for the first answer')
      t.same(left, ['/'], 'the first request hears of it')
      const next = await rawClient(port)
      t.match((await next.send(GET.replace('/', '/alive')).message()).line, / 200 /)
      next.end()
    }
  },
)

t.test('an upgrade behind a request already answered is served', async t => {
  const { client } = await listen(t, (_req, res) => res.end())
  client.send(GET)
  await client.message()
  t.match((await client.send(UPGRADE).message({ tillClose: true })).line, / 200 /)
})

t.test('a handler that throws loses one connection', async t => {
  const errors: unknown[] = []
  const broken = () => {
    throw new Error('broken')
  }
  const { port, client } = await listen(t, broken, { upgrade: broken, failed: error => errors.push(error) })
  client.send(GET)
  const other = await rawClient(port)
  other.send(UPGRADE)
  await waitUntil('both cuts', () => (client.closed || client.ended) && (other.closed || other.ended))
  t.equal(errors.length, 2)
  const third = await rawClient(port)
  third.send('x\r\n\r\n')
  t.match((await third.message()).line, / 400 /)
})

t.test('a client that leaves is told to every request that waits for its turn', async t => {
  const left: string[] = []
  const { client } = await listen(t, (req, res) => {
    res.on('close', () => left.push(req.url ?? ''))
    if (req.url !== '/slow') res.writeHead(200).write('begun')
    if (req.url === '/cut') res.destroy()
  })
  client.send(['/slow', '/b', '/cut', '/d'].map(path => GET.replace('/', path)).join(''))
  await sleep(30)
  client.reset()
  await waitUntil('four ends', () => left.length === 4)
  await sleep(30)
  t.same(left.sort(), ['/b', '/cut', '/d', '/slow'], 'once')
})

t.test('Expect', async t => {
  const POST = 'POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n'

  t.test('the body is asked for when somebody reads it, and once', async t => {
    let read = (): void => {}
    const { client } = await listen(t, (req, res) => {
      read = () => {
        req.on('end', () => res.end('ok')).resume()
      }
    })
    client.send(POST)
    await sleep(30)
    t.equal(client.unread, '')
    read()
    t.match((await client.head()).line, / 100 /)
    t.equal((await client.send('hi').message()).body, 'ok')
  })

  t.test('a refusal comes instead of the 100', async t => {
    const { client } = await listen(t, (_req, res) => res.writeHead(429).end())
    const answer = await client.send(POST).message({ tillClose: true })
    t.match(answer.line, / 429 /)
    t.notMatch(answer.body, / 100 /)
    t.same(valuesOf(answer, 'connection'), ['close'], 'what the client sends meanwhile is no request')
  })

  t.test('a second request waits for its 100 as for its answer', async t => {
    const { client } = await listen(t, (req, res) => {
      req.on('end', () => setTimeout(() => res.end(req.method), 30)).resume()
    })
    client.send(GET + POST)
    t.equal((await client.message()).body, 'GET')
    t.match((await client.head()).line, / 100 /)
    t.equal((await client.send('hi').message()).body, 'POST')
  })

  t.test('anything else is refused, of HTTP/1.1', async t => {
    t.equal(await heard(t, request('Host: a\r\nExpect: foo\r\n')), 'expectation-failed')
    t.match(await heard(t, 'GET / HTTP/1.0\r\nHost: a\r\nExpect: foo\r\n\r\n'), { path: '/' })
  })
})

t.test('what is not HTTP', async t => {
  const slow: Answer = (req, res) => setTimeout(() => res.end(req.url), 50)

  t.test('is answered after the answer that came before it', async t => {
    const { client } = await listen(t, (_req, res) => res.end('ok'))
    client.send(GET)
    t.equal((await client.message()).body, 'ok')
    const answer = await client.send('not http\r\n\r\n').message({ tillClose: true })
    t.match(answer.line, / 400 /)
  })

  t.test('is answered in its turn, however much of it comes', async t => {
    const { client } = await listen(t, slow)
    client.send(`${GET}${GET.replace('/', '/2')}not http\r\n\r\n`)
    await sleep(20)
    client.send('more of it\r\n')
    t.equal((await client.message()).body, '/')
    t.equal((await client.message()).body, '/2')
    t.match((await client.message({ tillClose: true })).line, / 400 /)
  })

  t.test('is reported by its code', async t => {
    const codes: string[] = []
    const { port } = await listen(t, slow, { refused: code => codes.push(code) })
    for (const bytes of ['not http\r\n\r\n', CONNECT, request(`Host: a\r\nX: ${'x'.repeat(40_000)}\r\n`)]) {
      const client = await rawClient(port)
      await client.send(bytes).message({ tillClose: true })
      client.end()
    }
    t.same(codes, ['bad-request', 'method-not-allowed', 'header-too-large'])
  })
})

t.test('a client that keeps its side open after the last answer is cut', async t => {
  const { port } = await listen(t, () => {}, { upgrade: (_req, res) => res.writeHead(400, CLOSE).end() })
  const stays = async (bytes: string): Promise<void> => {
    const client = new RawPeer(connect({ port, host: '127.0.0.1', allowHalfOpen: true }))
    t.match((await client.send(bytes).message({ tillClose: true })).line, / 40[05] /)
    const writing = setInterval(() => client.send('x'), 100)
    await waitUntil('the cut', () => client.closed, 4_000)
    clearInterval(writing)
  }
  await Promise.all([UPGRADE, CONNECT, 'not http\r\n\r\n'].map(stays))
})

t.test('drain', async t => {
  t.test('idle connections close, open requests finish with Connection: close', async t => {
    const waiting: (() => void)[] = []
    const { listener, port, client } = await listen(t, (_req, res) => {
      waiting.push(() => res.writeHead(200, ['Content-Length', '2']).end('ok'))
    })
    const idle = await rawClient(port)
    idle.send('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    await waitUntil('the first request', () => waiting.length === 1)
    waiting[0]?.()
    await idle.message()
    client.send('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    await waitUntil('the second request', () => waiting.length === 2)
    const drained = listener.drain(5_000)
    await waitUntil('the idle connection to close', () => idle.ended)
    waiting[1]?.()
    const answer = await client.message()
    t.equal(answer.body, 'ok')
    t.same(valuesOf(answer, 'connection'), ['close'])
    await drained
    await t.rejects(rawClient(port), { code: 'ECONNREFUSED' })
  })

  t.test('an answer that had begun before does not keep its connection', async t => {
    let finish = (): void => {}
    const { listener, client } = await listen(t, (_req, res) => {
      res.writeHead(200, ['Content-Length', '2']).write('o')
      finish = () => res.end('k')
    })
    client.send(GET)
    await client.head()
    const drained = listener.drain(5_000)
    finish()
    const begun = performance.now()
    await drained
    t.ok(performance.now() - begun < 1_000)
    t.equal(await client.rest(), 'ok')
  })

  t.test('an answer that has ended but is still on its way arrives whole', async t => {
    const bytes = 16 * 1024 * 1024
    const { listener, client } = await listen(t, (_req, res) => {
      res.writeHead(200, ['Content-Length', String(bytes)]).end(Buffer.alloc(bytes))
    })
    client.send(GET)
    await client.head()
    client.socket.pause()
    const drained = listener.drain(5_000)
    await sleep(50)
    let received = client.unread.length
    client.socket.removeAllListeners('data').on('data', chunk => {
      received += chunk.length
    })
    client.socket.resume()
    await drained
    await waitUntil('the end', () => client.ended)
    t.equal(received, bytes)
  })

  t.test('what is left at the deadline is cut', async t => {
    const { listener, client } = await listen(t, () => {})
    client.send('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    await sleep(30)
    await listener.drain(50)
    await waitUntil('the cut', () => client.ended || client.closed)
  })
})

t.test('an address in use is told', async t => {
  const { port } = await listen(t, () => {})
  const second = createListener({ request() {}, upgrade() {} }, wideDoor())
  await t.rejects(second.start('127.0.0.1', port), { code: 'EADDRINUSE' })
})

t.test('a look at the body', async t => {
  /** A server whose requests are handed over one by one, and a connection to it. */
  async function requestOf(t: Test): Promise<{ req: IncomingMessage; client: RawPeer }> {
    const server = createServer()
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const client = new RawPeer(connect((server.address() as AddressInfo).port, '127.0.0.1'))
    t.teardown(() => {
      client.socket.destroy()
      server.closeAllConnections()
      server.close()
    })
    const arrived = once(server, 'request')
    client.send('POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n')
    const [req] = await arrived
    return { req, client }
  }
  const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`
  const END = '0\r\n\r\n'
  async function all(body: Readable): Promise<string> {
    let text = ''
    for await (const bytes of body) text += bytes
    return text
  }

  t.test('a short body is seen whole and still there', async t => {
    const { req, client } = await requestOf(t)
    client.send(chunk('ab') + chunk('cd') + END)
    const { prefix, body } = await peekBody(req, 4, 1000)
    t.equal(String(prefix), 'abcd')
    t.equal(await all(body), 'abcd')
  })

  t.test('of a long body the beginning is seen and everything is still there', async t => {
    const { req, client } = await requestOf(t)
    client.send(chunk('abcdef'))
    const { prefix, body } = await peekBody(req, 4, 1000)
    t.equal(String(prefix), 'abcd')
    client.send(chunk('gh') + END)
    t.equal(await all(body), 'abcdefgh')
  })

  t.test('a slow body is not waited for beyond the time', async t => {
    const { req, client } = await requestOf(t)
    client.send(chunk('ab'))
    const { prefix, body } = await peekBody(req, 100, 50)
    t.equal(String(prefix), 'ab')
    client.send(chunk('cd') + END)
    t.equal(await all(body), 'abcd')
  })

  t.test('a client that leaves is an error', async t => {
    const { req, client } = await requestOf(t)
    client.send(chunk('ab'))
    const peek = peekBody(req, 100, 5000)
    await sleep(20)
    client.reset()
    await t.rejects(peek, { message: /client left/ })
  })

  t.test('a tapped body streams on and is told once', async t => {
    const { req, client } = await requestOf(t)
    const told: string[] = []
    const body = tapBody(req, 4, prefix => told.push(String(prefix)))
    client.send(chunk('abc'))
    await sleep(30)
    t.same(told, [], 'nothing flows before somebody reads')
    client.send(chunk('defg') + chunk('h') + END)
    t.equal(await all(body), 'abcdefgh')
    t.same(told, ['abcd'])
  })

  t.test('a tapped short body is told at its end', async t => {
    const { req, client } = await requestOf(t)
    const told: string[] = []
    const body = tapBody(req, 4, prefix => told.push(String(prefix)))
    client.send(chunk('abcd') + END)
    t.equal(await all(body), 'abcd')
    t.same(told, ['abcd'])
  })
})
