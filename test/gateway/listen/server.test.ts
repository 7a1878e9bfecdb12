/** Connections, and the order of the responses on them, from the first request to the drain. */
import { connect } from 'node:net'
import t from 'tap'
import { createListener } from '../../../gateway/listen/server.js'
import { GET, RawPeer, rawClient, valuesOf } from '../../helpers/raw.js'
import { sleep, waitUntil } from '../../helpers/wait.js'
import { wideDoor } from './connection-cap.js'
import { type Answer, dropBody, listen, onClose, reply } from './listener.js'

const UPGRADE = 'GET /b HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'
const CONNECT = 'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n'
const request = (fields: string, body = ''): string => `POST /a HTTP/1.1\r\n${fields}\r\n${body}`

t.test('an invalid body never puts a second status line into a response that has begun', async t => {
  const { client } = await listen(t, (req, res) => {
    dropBody(req)
    res.writeHead(200, 'OK', ['Content-Length', '100'])
    res.write(Buffer.from('begun'))
  })
  client.send(request('Host: a\r\nTransfer-Encoding: chunked\r\n'))
  await client.head()
  client.send('zz\r\n')
  t.equal(await client.rest(), 'begun')
})

t.test('an upgrade or CONNECT behind a pending request waits for its turn', async t => {
  for (const [second, status] of [
    [UPGRADE, 200],
    [CONNECT, 405],
  ] as const) {
    const { client } = await listen(t, (req, res) => setTimeout(() => reply(res, req.target), 30))
    client.send(GET + second)
    t.equal((await client.message()).body, '/')
    t.match((await client.message({ tillClose: true })).line, new RegExp(` ${status} `))
  }
})

t.test('an upgrade behind a finished request is served', async t => {
  const { client } = await listen(t, (_req, res) => reply(res))
  client.send(GET)
  await client.message()
  t.match((await client.send(UPGRADE).message({ tillClose: true })).line, / 200 /)
})

t.test('a handler that throws closes only its own connection', async t => {
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

t.test('a client that leaves closes its current request, and none behind it begins', async t => {
  const events: string[] = []
  const { client } = await listen(t, (req, res) => {
    events.push(`${req.target} begun`)
    onClose(res, () => events.push(`${req.target} left`))
  })
  client.send(['/slow', '/b', '/c'].map(path => GET.replace('/', path)).join(''))
  await sleep(30)
  client.reset()
  await waitUntil('the end', () => events.length === 2)
  await sleep(30)
  t.same(events, ['/slow begun', '/slow left'], 'the client’s leaving is reported once')
})

t.test('Expect: 100-continue', async t => {
  const POST = 'POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n'

  t.test('a 100 is sent only once the body is read', async t => {
    let read = (): void => {}
    const { client } = await listen(t, (req, res) => {
      read = () => dropBody(req, () => reply(res, 'ok'))
    })
    client.send(POST)
    await sleep(30)
    t.equal(client.unread, '')
    read()
    t.match((await client.head()).line, / 100 /)
    t.equal((await client.send('hi').message()).body, 'ok')
  })

  t.test('a refusal is sent instead of the 100', async t => {
    const { client } = await listen(t, (_req, res) => reply(res, '', 429))
    const answer = await client.send(POST).message({ tillClose: true })
    t.match(answer.line, / 429 /)
    t.notMatch(answer.body, / 100 /)
    t.same(
      valuesOf(answer, 'connection'),
      ['close'],
      'what the client sends meanwhile is not read as a request',
    )
  })

  t.test('the 100 of a second request waits for the first response', async t => {
    const { client } = await listen(t, (req, res) => {
      dropBody(req, () => setTimeout(() => reply(res, req.method), 30))
    })
    client.send(GET + POST)
    t.equal((await client.message()).body, 'GET')
    t.match((await client.head()).line, / 100 /)
    t.equal((await client.send('hi').message()).body, 'POST')
  })
})

t.test('bytes that are not HTTP', async t => {
  const slow: Answer = (req, res) => setTimeout(() => reply(res, req.target), 50)

  t.test('get 400 after the response to the request before them', async t => {
    const { client } = await listen(t, (_req, res) => reply(res, 'ok'))
    client.send(GET)
    t.equal((await client.message()).body, 'ok')
    const answer = await client.send('not http\r\n\r\n').message({ tillClose: true })
    t.match(answer.line, / 400 /)
  })

  t.test('get 400 in their turn, however many arrive', async t => {
    const { client } = await listen(t, slow)
    client.send(`${GET}${GET.replace('/', '/2')}not http\r\n\r\n`)
    await sleep(20)
    client.send('more of it\r\n')
    t.equal((await client.message()).body, '/')
    t.equal((await client.message()).body, '/2')
    t.match((await client.message({ tillClose: true })).line, / 400 /)
  })

  t.test('are reported by the code of their refusal', async t => {
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

t.test('a client that keeps its side open after the last response is cut', async t => {
  const { port } = await listen(t, () => {}, { upgrade: (_req, res) => reply(res, '', 400) })
  const stays = async (bytes: string): Promise<void> => {
    const client = new RawPeer(connect({ port, host: '127.0.0.1', allowHalfOpen: true }))
    t.match((await client.send(bytes).message({ tillClose: true })).line, / 40[05] /)
    const writing = setInterval(() => client.send('x'), 100)
    await waitUntil('the cut', () => client.closed, 4_000)
    clearInterval(writing)
  }
  await Promise.all([UPGRADE, CONNECT, 'not http\r\n\r\n'].map(stays))
})

t.test('a drain', async t => {
  t.test('closes idle connections, and finishes open requests with Connection: close', async t => {
    const waiting: (() => void)[] = []
    const { listener, port, client } = await listen(t, (_req, res) => {
      waiting.push(() => reply(res, 'ok'))
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

  t.test('serves a request that is on its way to an idle connection', async t => {
    const { listener, client } = await listen(t, (_req, res) => reply(res, 'ok'))
    await client.send(GET).message()
    const drained = listener.drain(5_000)
    const answer = await client.send(GET).message()
    t.equal(answer.body, 'ok')
    t.same(valuesOf(answer, 'connection'), ['close'])
    await drained
  })

  t.test(
    'closes a connection that has sent nothing yet soon, but still serves a request that arrives',
    async t => {
      const { listener, port, client } = await listen(t, (_req, res) => reply(res, 'ok'))
      const silent = await rawClient(port)
      const begun = performance.now()
      const drained = listener.drain(9_000)
      t.equal((await client.send(GET).message()).body, 'ok')
      await drained
      t.ok(performance.now() - begun < 8_000, 'long before the deadline and the time for a head')
      await waitUntil('the end', () => silent.ended)
      t.equal(silent.unread, '', 'without a response')
    },
  )

  t.test('does not wait for a connection whose response had already begun', async t => {
    let finish = (): void => {}
    const { listener, client } = await listen(t, (_req, res) => {
      res.writeHead(200, 'OK', ['Content-Length', '2'])
      res.write(Buffer.from('o'))
      finish = () => res.end('k')
    })
    client.send(GET)
    await client.head()
    const drained = listener.drain(5_000)
    finish()
    const begun = performance.now()
    await drained
    t.ok(performance.now() - begun < 4_000, 'the drain ends long before its deadline')
    t.equal(await client.rest(), 'ok')
  })

  t.test('delivers whole a response that has ended but is still being sent', async t => {
    const bytes = 16 * 1024 * 1024
    const { listener, client } = await listen(t, (_req, res) => {
      res.writeHead(200, 'OK', ['Content-Length', String(bytes)])
      res.end(Buffer.alloc(bytes))
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

  t.test('cuts at its deadline what is still open', async t => {
    const { listener, client } = await listen(t, () => {})
    client.send('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    await sleep(30)
    await listener.drain(50)
    await waitUntil('the cut', () => client.ended || client.closed)
  })
})

t.test('starting on an address in use is rejected', async t => {
  const { port } = await listen(t, () => {})
  const second = createListener({ request() {}, upgrade() {} }, wideDoor())
  await t.rejects(second.start('127.0.0.1', port), { code: 'EADDRINUSE' })
})
