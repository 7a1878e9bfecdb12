/** A client's connection at the byte level: which bytes are requests, in which order they are answered, how it ends. */
import { connect } from 'node:net'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t, { type Test } from 'tap'
import type { IncomingRequest, OutgoingResponse, Takeover } from '../../../gateway/message.js'
import { GET, RawPeer, rawClient, valuesOf } from '../../helpers/raw.js'
import { sleep, waitUntil } from '../../helpers/wait.js'
import { dropBody, listen, onClose, reply } from '../listen/listener.js'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

const POST = 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n'
const BIG = 'x'.repeat(20_000)

const echo = (req: IncomingRequest, res: OutgoingResponse): void => {
  const chunks: Buffer[] = []
  const onEnd = (): void => reply(res, `${req.target} ${Buffer.concat(chunks)}`)
  if (req.body === undefined) onEnd()
  else req.body.read({ onData: chunk => chunks.push(chunk), onEnd, onAbort() {} })
}

/** A client that keeps its side open when the server ends its own. */
function halfOpenClient(t: Test, port: number): RawPeer {
  const peer = new RawPeer(connect({ port, host: '127.0.0.1', allowHalfOpen: true }))
  t.teardown(() => peer.socket.destroy())
  return peer
}

t.test('requests that arrive byte by byte are read as if they arrived at once', async t => {
  const { client } = await listen(t, echo)
  const bytes = `\r\n${GET}${POST}hello${POST.replace('Content-Length: 5', 'Transfer-Encoding: chunked')}2;x=y\r\nhi\r\n0\r\nX: 1\r\n\r\n${GET}`
  for (const byte of bytes) {
    client.send(byte)
    await sleep(0)
  }
  const bodies: string[] = []
  for (let i = 0; i < 4; i++) bodies.push((await client.message()).body)
  t.same(bodies, ['/ ', '/ hello', '/ hi', '/ '])
})

t.test('a response', async t => {
  t.test('carries its date, and says whether the connection persists', async t => {
    const { client } = await listen(t, (_req, res) => reply(res, 'ok'))
    const first = await client.send(GET).message()
    t.same(valuesOf(first, 'connection'), ['keep-alive'])
    t.same(valuesOf(first, 'keep-alive'), ['timeout=65'])
    t.match(valuesOf(first, 'date')[0], /^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$/)
    const last = await client.send(GET.replace('Host', 'Connection: close\r\nHost')).message()
    t.same(valuesOf(last, 'connection'), ['close'])
    t.equal(await client.rest(), '')
  })

  t.test('keeps a Date the handler sets', async t => {
    const date = 'Thu, 01 Jan 1970 00:00:00 GMT'
    const { client } = await listen(t, (_req, res) => reply(res, 'ok', 200, ['DATE', date]))
    t.same(valuesOf(await client.send(GET).message(), 'date'), [date])
  })

  t.test('replaces characters that do not fit a byte, because one could end a line', async t => {
    const { client } = await listen(t, (_req, res) =>
      reply(res, '', 200, ['X-A', 'a\u010d\u010ab: 1', 'X-B', '\xe9']),
    )
    const answer = await client.send(GET).message()
    t.same([valuesOf(answer, 'x-a'), valuesOf(answer, 'x-b')], [['a??b: 1'], ['\xe9']])
  })

  t.test('without a length is chunked for HTTP/1.1, and ends with the connection for HTTP/1.0', async t => {
    const answer = (_req: IncomingRequest, res: OutgoingResponse): void => {
      res.writeHead(200, 'OK', [])
      res.write(Buffer.from('ab'))
      res.write(Buffer.from(BIG))
      setTimeout(() => res.end('c'), 10)
    }
    const { client, port } = await listen(t, answer)
    const chunked = await client.send(GET).message()
    t.same([valuesOf(chunked, 'transfer-encoding'), chunked.body], [['chunked'], `ab${BIG}c`])
    const old = await rawClient(port)
    old.send('GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n')
    const plain = await old.message({ tillClose: true })
    t.same([valuesOf(plain, 'transfer-encoding'), valuesOf(plain, 'connection')], [[], ['close']])
    t.equal(plain.body, `ab${BIG}c`)
  })

  t.test('carries trailers only to a client that accepts them', async t => {
    const { client } = await listen(t, (_req, res) => {
      res.writeHead(200, 'OK', [])
      res.write(Buffer.from('a'))
      res.end('b', ['X-Late', '1'])
    })
    client.send(GET.replace('Host', 'TE: trailers\r\nHost'))
    await client.head()
    await waitUntil('the end', () => client.unread.endsWith('1\r\nb\r\n0\r\nX-Late: 1\r\n\r\n'))
    client.unread = ''
    client.send(GET)
    await client.head()
    await waitUntil('the end', () => client.unread.endsWith('1\r\nb\r\n0\r\n\r\n'))
  })

  for (const [what, method, status] of [
    ['HEAD', 'HEAD', 200],
    ['204', 'GET', 204],
    ['304', 'GET', 304],
  ] as const) {
    t.test(`to ${what} has no body, whatever is written`, async t => {
      const { client } = await listen(t, (_req, res) => {
        res.writeHead(status, '', [])
        res.write(Buffer.from('abc'))
        res.end('def')
      })
      for (let i = 0; i < 2; i++) {
        const answer = await client.send(GET.replace('GET', method)).message({ bodyless: true })
        t.same(valuesOf(answer, 'transfer-encoding'), [])
      }
      t.equal(client.unread, '')
    })
  }

  t.test('longer or shorter than its Content-Length is cut', async t => {
    for (const pieces of [['abc'], ['a'], ['abc', ''], []]) {
      const { client } = await listen(t, (_req, res) => {
        res.writeHead(200, 'OK', ['Content-Length', '2'])
        for (const piece of pieces) res.write(Buffer.from(piece))
        res.end()
      })
      client.send(GET)
      await waitUntil('the cut', () => client.closed)
      t.notMatch(client.unread, /abc?$/, pieces.join('|'))
    }
  })

  t.test('is over once it is sent, and only then the next request begins', async t => {
    const events: string[] = []
    const { client } = await listen(t, (req, res) => {
      events.push(`${req.target} begins`)
      onClose(res, () => events.push(`${req.target} is over`))
      setTimeout(() => reply(res, BIG), 10)
    })
    client.send(['/1', '/2', '/3'].map(path => GET.replace('/', path)).join(''))
    for (let i = 0; i < 3; i++) t.equal((await client.message()).body, BIG)
    await sleep(10)
    t.same(
      events,
      [1, 2, 3].flatMap(n => [`/${n} begins`, `/${n} is over`]),
    )
  })
})

t.test('thousands of pipelined requests are answered in order, without recursion', async t => {
  let served = 0
  const { client } = await listen(t, (_req, res) => reply(res, String(served++)))
  const count = 5_000
  client.send(GET.repeat(count))
  for (let i = 0; i < count; i++) if ((await client.message()).body !== String(i)) t.fail(`answer ${i}`)
  t.equal(served, count)
})

t.test('at most 128 pipelined requests are served in one turn of the event loop', async t => {
  let inThisTurn = 0
  let most = 0
  const { client } = await listen(t, (_req, res) => {
    if (++inThisTurn === 1) {
      setImmediate(() => {
        inThisTurn = 0
      })
    }
    most = Math.max(most, inThisTurn)
    reply(res, 'ok')
  })
  client.send(GET.repeat(2_000))
  for (let i = 0; i < 2_000; i++) await client.message()
  t.ok(most <= 128, `${most} in one turn`)
})

t.test('a client that pipelines requests but reads no responses is held up', async t => {
  let served = 0
  const body = Buffer.alloc(100_000)
  const { client } = await listen(t, (_req, res) => {
    served += 1
    res.writeHead(200, 'OK', ['Content-Length', String(body.length)])
    res.end(body)
  })
  client.socket.pause()
  client.socket.write(GET.repeat(20_000))
  await sleep(300)
  const held = served
  t.ok(held < 200, `${held} of 20000 were begun`)
  await sleep(100)
  t.equal(served, held)
})

t.test('a reader that stops is cut when its time is over, and a slow reader is not', async t => {
  const size = 30_000_000
  let limitMs = 300
  let gone = false
  const { client, port } = await listen(t, (_req, res) => {
    onClose(res, () => {
      gone = true
    })
    res.writeHead(200, 'OK', ['Content-Length', String(size)])
    res.limitReader(limitMs)
    res.end(Buffer.alloc(size))
  })
  client.send(GET)
  await client.head()
  client.socket.pause()
  await waitUntil('the cut', () => gone, 2_000)
  // Longer than a busy machine delays a reader, and shorter than the slow reader takes.
  limitMs = 1_500
  const slow = await rawClient(port)
  slow.send(GET)
  await slow.head()
  let read = slow.unread.length
  slow.socket.removeAllListeners('data').on('data', bytes => {
    read += bytes.length
    slow.socket.pause()
    setTimeout(() => slow.socket.resume(), read < 3_000_000 ? 40 : 0)
  })
  await waitUntil('all of it', () => read === size, 20_000)
})

t.test('a reader that stops is cut in the same time although it goes on sending', async t => {
  const startedAt = performance.now()
  let goneAfter = 0
  const { client } = await listen(t, (_req, res) => {
    onClose(res, () => {
      goneAfter = performance.now() - startedAt
    })
    res.writeHead(200, 'OK', ['Content-Length', '30000000'])
    res.limitReader(300)
    res.write(Buffer.alloc(20_000_000))
  })
  client.send(GET)
  await client.head()
  client.socket.pause()
  const drip = setInterval(() => client.send('G'), 50)
  t.teardown(() => clearInterval(drip))
  await waitUntil('the cut', () => goneAfter > 0, 2_000)
  t.ok(goneAfter > 290)
})

t.test('the time for a head', async t => {
  const settings = { headTimeout: 200 }

  t.test('runs from the first byte of the head, even when the rest drips in', async t => {
    const { client } = await listen(t, (_req, res) => reply(res), {}, settings)
    const startedAt = performance.now()
    const drip = setInterval(() => client.send('x'), 20)
    client.send('GET / HTTP/1.1\r\nX: ')
    const answer = await client.message({ tillClose: true })
    clearInterval(drip)
    t.match(answer.line, / 408 /)
    t.match(JSON.parse(answer.body), { code: 'request-timeout' })
    t.ok(performance.now() - startedAt < 5_000)
  })

  t.test('runs on a new connection before its first byte', async t => {
    const codes: string[] = []
    const { client } = await listen(t, () => {}, { refused: code => codes.push(code) }, settings)
    t.match((await client.message({ tillClose: true })).line, / 408 /)
    t.same(codes, ['request-timeout'])
  })

  t.test('does not run between requests, nor while a response or a body is in progress', async t => {
    const { client } = await listen(
      t,
      (req, res) => dropBody(req, () => setTimeout(() => reply(res, 'ok'), 300)),
      {},
      settings,
    )
    client.send(POST)
    await sleep(300)
    client.send('hello')
    t.equal((await client.message()).body, 'ok')
    await sleep(300)
    t.equal((await client.send(GET).message()).body, 'ok')
    client.send('GET')
    t.match(
      (await client.message({ tillClose: true })).line,
      / 408 /,
      'the time runs for the head of the second request',
    )
  })
})

t.test('a body that nobody reads', async t => {
  t.test('is skipped when it is short, and the connection persists', async t => {
    const { client } = await listen(t, (_req, res) => reply(res, 'no', 429))
    client.send(POST)
    t.same(valuesOf(await client.message(), 'connection'), ['keep-alive'])
    client.send(`he`)
    await sleep(10)
    client.send(`llo${GET}`)
    t.equal((await client.message()).body, 'no')
  })

  t.test(
    'is skipped when it is chunked and already complete, and closes the connection otherwise',
    async t => {
      const { client } = await listen(t, (_req, res) => setTimeout(() => reply(res, 'no', 429), 20))
      const chunked = POST.replace('Content-Length: 5', 'Transfer-Encoding: chunked')
      client.send(`${chunked}2\r\nhi\r\n0\r\n\r\n${GET}`)
      t.same(valuesOf(await client.message(), 'connection'), ['keep-alive'])
      t.equal((await client.message()).body, 'no')
      client.send(`${chunked}2\r\nhi\r\n`)
      t.same(valuesOf(await client.message(), 'connection'), ['close'])
      await waitUntil('the end', () => client.ended)
    },
  )

  t.test('closes the connection after the response when it is long or waits for a 100', async t => {
    for (const fields of ['Content-Length: 100000', 'Expect: 100-continue\r\nContent-Length: 2']) {
      const { client } = await listen(t, (_req, res) => reply(res, 'no', 429))
      client.send(POST.replace('Content-Length: 5', fields))
      const answer = await client.message()
      t.same([answer.body, valuesOf(answer, 'connection')], ['no', ['close']])
      await waitUntil('the end', () => client.ended)
      t.equal(client.error, undefined)
    }
  })

  t.test('closes the connection when it never arrives', async t => {
    const { client } = await listen(t, (_req, res) => reply(res, 'no', 429), {}, { headTimeout: 200 })
    await client.send(POST).message()
    await waitUntil('the cut', () => client.closed)
  })

  t.test('closes the connection when it is invalid, and nothing behind it is served', async t => {
    const { client } = await listen(t, (_req, res) => reply(res, 'no', 429))
    const chunked = POST.replace('Content-Length: 5', 'Transfer-Encoding: chunked')
    client.send(`${chunked}zz\r\n${GET}`)
    t.same(valuesOf(await client.message(), 'connection'), ['close'])
    t.equal(await client.rest(), '')
  })
})

t.test('an upload', async t => {
  t.test('aborts its reader and closes its response when it is cut short', async t => {
    const events: string[] = []
    const { client } = await listen(t, (req, res) => {
      onClose(res, () => events.push('closed'))
      req.body?.read({ onData() {}, onEnd: () => events.push('end'), onAbort: () => events.push('abort') })
    })
    client.send(`${POST}he`)
    await sleep(20)
    client.reset()
    await waitUntil('both', () => events.length === 2)
    t.same(events.sort(), ['abort', 'closed'])
  })

  t.test('gets 400 for invalid chunks when no response has begun', async t => {
    const events: string[] = []
    const codes: string[] = []
    const { client } = await listen(
      t,
      (req, res) => {
        res.watch({ onClose: refused => events.push(`closed by ${refused}, ${res.status}`) })
        req.body?.read({ onData() {}, onEnd() {}, onAbort: () => events.push('abort') })
      },
      { refused: code => codes.push(code) },
    )
    client.send(`${POST.replace('Content-Length: 5', 'Transfer-Encoding: chunked')}2\r\nhixx`)
    t.match((await client.message({ tillClose: true })).line, / 400 /)
    t.same(
      [events.sort(), codes],
      [['abort', 'closed by bad-framing, 400'], []],
      'the fault is reported once, to its own request',
    )
  })

  t.test('waits for its reader', async t => {
    let read = 0
    let resume = (): void => {}
    const { client } = await listen(t, (req, res) => {
      req.body?.read({
        onData(chunk) {
          read += chunk.length
          req.body?.pause()
        },
        onEnd: () => reply(res, 'ok'),
        onAbort() {},
      })
      resume = () => req.body?.resume()
    })
    const size = 20_000_000
    client.send(POST.replace('5', String(size)))
    client.socket.write(Buffer.alloc(size))
    await waitUntil('a first piece', () => read > 0)
    await sleep(50)
    t.ok(read < 200_000, `${read} were given`)
    t.ok(client.socket.writableLength > 0, 'the client is held up')
    const going = setInterval(resume, 0)
    t.equal((await client.message()).body, 'ok')
    clearInterval(going)
    t.equal(read, size)
  })
})

t.test('a client that ends its side', async t => {
  t.test('has left when its response is not complete', async t => {
    let left = false
    const { port } = await listen(t, (_req, res) => {
      onClose(res, () => {
        left = true
      })
    })
    const client = halfOpenClient(t, port)
    client.send(GET)
    await sleep(50)
    t.notOk(left)
    client.end()
    await waitUntil('the client’s leaving to be noticed', () => left, 200)
  })

  t.test('has its connection closed after its response', async t => {
    const { port } = await listen(t, (_req, res) => reply(res, BIG))
    const client = halfOpenClient(t, port)
    client.send(GET)
    t.equal((await client.message()).body, BIG)
    client.end()
    await waitUntil('the end', () => client.closed)
  })

  t.test('gets 400 in the middle of a head or a body', async t => {
    const { port } = await listen(t, req => dropBody(req))
    for (const bytes of ['GET / HT', `${POST}he`]) {
      const client = halfOpenClient(t, port)
      client.send(bytes)
      client.end()
      t.match((await client.message({ tillClose: true })).line, / 400 /)
    }
  })
})

t.test('an upgrade', async t => {
  const UPGRADE =
    'GET /ws HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n\r\n'

  t.test('hands over the bytes sent early, and no later byte is read as HTTP', async t => {
    let taken: Takeover | undefined
    let over = false
    const { client } = await listen(t, () => t.fail('the upgrade was read as a request'), {
      upgrade(req, res, takeOver) {
        t.ok(req.upgrade)
        onClose(res, () => {
          over = true
        })
        setTimeout(() => {
          taken = takeOver()
          taken.socket.on('data', bytes => taken?.socket.write(`heard ${bytes}`))
        }, 20)
      },
    })
    client.send(`${UPGRADE}early`)
    await waitUntil('the hand-over', () => taken)
    t.equal(String(taken?.head), 'early')
    client.send(GET)
    await waitUntil('the echo', () => client.unread === `heard ${GET}`)
    t.notOk(over)
    taken?.socket.end()
    await waitUntil('the end', () => over)
  })

  t.test('closes the connection when it is refused, and early bytes are not read as a request', async t => {
    const { client } = await listen(t, () => t.fail('early bytes were read as a request'), {
      upgrade: (_req, res) => setTimeout(() => reply(res, 'no', 403), 10),
    })
    client.send(UPGRADE + GET)
    const answer = await client.message()
    t.same([answer.body, valuesOf(answer, 'connection')], ['no', ['close']])
    t.equal(await client.rest(), '')
  })

  t.test('is served as a plain request unless it is a body-less GET to websocket alone', async t => {
    const { client } = await listen(t, (req, res) => reply(res, `${req.upgrade}`), {
      upgrade: () => t.fail('the request was taken as an upgrade'),
    })
    for (const request of [
      UPGRADE.replace('WebSocket', 'h2c'),
      UPGRADE.replace('WebSocket', 'websocket, h2c'),
      UPGRADE.replace('GET', 'POST'),
      UPGRADE.replace('keep-alive, Upgrade', 'keep-alive'),
      UPGRADE.replace('Host', 'Content-Length: 0\r\nUpgrade: h2c\r\nHost'),
    ]) {
      t.equal((await client.send(request).message()).body, 'false', request)
    }
    client.send(`${UPGRADE.replace('Host', 'Content-Length: 2\r\nHost')}hi`)
    t.equal((await client.message()).body, 'false', 'an upgrade with a body')
  })
})

t.test('a thousand idle connections keep no request or response in memory', async t => {
  const count = 1_000
  const refs: WeakRef<object>[] = []
  const { port } = await listen(t, (req, res) => {
    refs.push(new WeakRef(req), new WeakRef(res))
    reply(res, BIG)
  })
  const clients = await Promise.all(Array.from({ length: count }, () => rawClient(port)))
  t.teardown(() => {
    for (const { socket } of clients) socket.destroy()
  })
  for (const client of clients) client.send(GET)
  for (const client of clients) await client.message()
  await waitUntil('all to be forgotten', () => {
    collectGarbage()
    return refs.every(ref => ref.deref() === undefined)
  })
  t.equal(refs.length, 2 * count)
})
