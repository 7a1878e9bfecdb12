import t from 'tap'
import type { Exchange } from '../../../gateway/forward/transport.js'
import { peekBody, tapBody } from '../../../gateway/listen/body.js'
import { type RawPeer, valuesOf } from '../../helpers/raw.js'
import { sleep, waitUntil } from '../../helpers/wait.js'
import { answering, clientOf, scene } from './gateway.js'

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'

t.test('content', async t => {
  t.test('a body of unknown length arrives whole, by chunks', async t => {
    const { client } = await scene(
      t,
      answering('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n'),
    )
    const answer = await client.send(GET).message()
    t.equal(answer.body, 'abc')
    t.same(valuesOf(answer, 'transfer-encoding'), ['chunked'])
  })

  t.test('an answer that ends with the connection arrives whole', async t => {
    const { client } = await scene(t, async peer => {
      await peer.message()
      peer.send('HTTP/1.0 200 OK\r\n\r\nuntil the end').end()
    })
    t.equal((await client.send(GET).message()).body, 'until the end')
  })

  t.test('a chunked DELETE arrives as one request with its body', async t => {
    const { client, upstream } = await scene(t, answering(OK))
    client.send('DELETE /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n')
    client.send('1d\r\nGET /hidden HTTP/1.1\r\nHost: a\r\n0\r\n\r\n')
    t.equal((await client.message()).body, 'ok')
    t.equal(upstream.connections[0]?.unread, '')
  })

  t.test('bytes of a body are not changed', async t => {
    const all = String.fromCharCode(...Array.from({ length: 256 }, (_, byte) => byte))
    const { client, upstream } = await scene(t)
    client.send(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 256\r\n\r\n${all}`)
    const peer = await upstream.connection(0)
    t.equal((await peer.message()).body, all)
    peer.send(`HTTP/1.1 200 OK\r\nContent-Length: 256\r\n\r\n${all}`)
    t.equal((await client.message()).body, all)
  })

  t.test('HEAD keeps the length and has no body', async t => {
    const { client } = await scene(t, answering('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n'))
    const answer = await client.send('HEAD / HTTP/1.1\r\nHost: a\r\n\r\n').message({ bodyless: true })
    t.same(valuesOf(answer, 'content-length'), ['9'])
    client.send(GET)
    t.match((await client.head()).line, / 200 /, 'the connection is still in step')
  })

  t.test('204 has neither body nor length', async t => {
    const { client } = await scene(t, answering('HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n'))
    const answer = await client.send(GET).message()
    t.match(answer.line, / 204 /)
    t.same(valuesOf(answer, 'content-length'), [])
    t.same(valuesOf(answer, 'transfer-encoding'), [])
  })

  t.test('304 keeps the length it describes and has no body', async t => {
    const { client, gateway } = await scene(
      t,
      answering('HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\nETag: "x"\r\n\r\n'),
    )
    const answer = await client.send(GET).message({ bodyless: true })
    t.match(answer.line, / 304 /)
    t.same(valuesOf(answer, 'etag'), ['"x"'])
    client.send(GET)
    t.match((await client.head()).line, / 304 /)
    t.same(gateway.failures, [])
  })

  t.test('the head does not wait for the body', async t => {
    const { client } = await scene(t, async peer => {
      await peer.message()
      peer.send(
        'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nX-Name: caf\xe9\r\nTransfer-Encoding: chunked\r\n\r\n',
      )
    })
    const head = await client.send(GET).head()
    t.match(head.line, / 200 /)
    t.same(valuesOf({ ...head, body: '' }, 'x-name'), ['caf\xe9'])
  })

  t.test('an HTTP/1.0 client never gets chunks', async t => {
    const { client } = await scene(
      t,
      answering('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n'),
    )
    const answer = await client.send('GET / HTTP/1.0\r\nHost: a\r\n\r\n').message({ tillClose: true })
    t.equal(answer.body, 'abc')
    t.same(valuesOf(answer, 'transfer-encoding'), [])
  })
})

t.test('interim answers', async t => {
  t.test('an unasked 100 does not break the answer, even in pieces', async t => {
    const { client } = await scene(t, async peer => {
      await peer.message()
      peer.send('HTTP/1.1 100 Con')
      await sleep(20)
      peer.send(
        `tinue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n${OK}`,
      )
    })
    t.equal((await client.send(GET).head()).line, 'HTTP/1.1 103 Early Hints')
    const answer = await client.message()
    t.same([answer.line, answer.body], ['HTTP/1.1 200 OK', 'ok'])
  })

  t.test('a body that looks like a 100 is passed on', async t => {
    const body = 'HTTP/1.1 100 Continue\r\n\r\n'
    const { client } = await scene(t, async peer => {
      await peer.message()
      peer.send(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n`)
      await sleep(20)
      peer.send(body)
    })
    t.equal((await client.send(GET).message()).body, body)
  })

  t.test('Expect is answered here and not passed on', async t => {
    const { client, upstream } = await scene(t)
    client.send('POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n')
    t.match((await client.head()).line, / 100 /)
    client.send('hi')
    const peer = await upstream.connection(0)
    const request = await peer.message()
    t.same(valuesOf(request, 'expect'), [])
    t.equal(request.body, 'hi')
  })
})

t.test('a client that leaves', async t => {
  t.test('before the answer: the upstream request is cancelled', async t => {
    const { client, upstream, gateway } = await scene(t)
    client.send(GET)
    const peer = await upstream.connection(0)
    await peer.message()
    client.reset()
    await waitUntil('the upstream to be cut', () => peer.ended || peer.closed)
    await waitUntil('the end to be told', () => gateway.ended === 1)
    t.same(gateway.failures, [])
  })

  t.test('during the answer: the upstream request is cancelled', async t => {
    const { client, upstream, gateway } = await scene(t)
    client.send(GET)
    const peer = await upstream.connection(0)
    await peer.message()
    peer.send('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart')
    await client.head()
    client.reset()
    await waitUntil('the upstream to be cut', () => peer.ended || peer.closed)
    await waitUntil('the end to be told', () => gateway.ended === 1)
  })

  t.test('with its slot held: the answer is read to its end', async t => {
    const { client, upstream, gateway } = await scene(t, undefined, { keepUpstream: true })
    client.send('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi')
    const peer = await upstream.connection(0)
    await peer.message()
    client.reset()
    await sleep(50)
    t.notOk(peer.ended, 'the upstream goes on')
    t.equal(gateway.ended, 0)
    peer.send('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npa')
    await sleep(50)
    t.equal(gateway.ended, 0)
    peer.send('rt')
    await waitUntil('the end to be told', () => gateway.ended === 1)
  })

  t.test('with its slot held, but half of the body sent: the upstream request is cancelled', async t => {
    const { client, upstream, gateway } = await scene(t, undefined, { keepUpstream: true })
    client.send('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nhi')
    const peer = await upstream.connection(0)
    await peer.head()
    client.reset()
    await waitUntil('the upstream to be cut', () => peer.ended || peer.closed)
    await waitUntil('the end to be told', () => gateway.ended === 1)
  })

  t.test('with its slot held and a silent upstream: given up at the idle limit', async t => {
    const { client, upstream, gateway } = await scene(t, undefined, { keepUpstream: true, idleMs: 200 })
    client.send(GET)
    const peer = await upstream.connection(0)
    await peer.message()
    peer.send('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npa')
    await client.head()
    client.reset()
    await waitUntil('the end to be told', () => gateway.ended === 1)
    t.ok(await waitUntil('the upstream to be cut', () => peer.ended || peer.closed))
  })
})

t.test('an upstream that fails', async t => {
  t.test('cut within a length: the client sees a cut', async t => {
    const { client } = await scene(t, async peer => {
      await peer.message()
      peer.send('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf').end()
    })
    const answer = await client.send(GET).message({ tillClose: true })
    t.same(valuesOf(answer, 'content-length'), ['10'])
    t.equal(answer.body, 'half')
  })

  t.test('cut within chunks: the last chunk is never sent', async t => {
    const { client } = await scene(t, async peer => {
      await peer.message()
      peer.send('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n').end()
    })
    const answer = await client.send(GET).message({ tillClose: true })
    t.match(answer.body, /half/)
    t.notMatch(answer.body, /0\r\n\r\n/)
  })

  t.test(
    'cut before an HTTP/1.0 client: the connection is reset, because its end would mean success',
    async t => {
      const { client } = await scene(t, async peer => {
        await peer.message()
        peer.send('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n')
        await sleep(50)
        peer.reset()
      })
      client.send('GET / HTTP/1.0\r\nHost: a\r\n\r\n')
      await waitUntil('the close', () => client.closed)
      t.equal(client.error, 'ECONNRESET')
    },
  )

  t.test('a broken chunk together with the head: no complete answer, and the gateway lives', async t => {
    const { client, gateway } = await scene(t, async peer => {
      await peer.message()
      peer.send('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n')
    })
    t.notMatch(await client.send(GET).rest(), /0\r\n\r\n$/)
    await waitUntil('the end to be told', () => gateway.ended === 1)
  })

  t.test('nobody listens: upstream-unreachable', async t => {
    const { client, upstream, gateway } = await scene(t)
    await upstream.stop()
    t.match((await client.send(GET).message()).line, / 502 /)
    t.same(gateway.failures, ['upstream-unreachable'])
    t.equal(gateway.ended, 1)
  })

  t.test('closed without a byte: upstream-unreachable', async t => {
    const { client, gateway } = await scene(t, async peer => {
      await peer.message()
      peer.end()
    })
    t.match((await client.send(GET).message()).line, / 502 /)
    t.same(gateway.failures, ['upstream-unreachable'])
  })

  for (const [what, bytes] of [
    ['not HTTP', 'hello there\r\n\r\n'],
    ['two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok!'],
    [
      'length and chunks',
      'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    ],
    ['an unknown coding', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n'],
    [
      'an unasked switch of protocols',
      'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n',
    ],
    ['a head without end', `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(20_000)}`],
  ] as const) {
    t.test(`an answer that is ${what}: upstream-invalid`, async t => {
      const { client, gateway } = await scene(t, async peer => {
        await peer.message()
        peer.send(bytes)
      })
      t.match((await client.send(GET).message()).line, / 502 /)
      t.same(gateway.failures, ['upstream-invalid'])
      t.equal(gateway.ended, 1)
    })
  }

  t.test('silent: upstream-timeout, and the request is cancelled', async t => {
    const { client, upstream, gateway } = await scene(t, undefined, { headMs: 200 })
    t.match((await client.send(GET).message()).line, / 504 /)
    t.same(gateway.failures, ['upstream-timeout'])
    const peer = await upstream.connection(0)
    await waitUntil('the upstream to be cut', () => peer.ended || peer.closed)
  })

  t.test('extra bytes after an answer never become the next one', async t => {
    const { client } = await scene(t, answering(`${OK}HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil`))
    t.equal((await client.send(GET).message()).body, 'ok')
    await sleep(30)
    t.equal((await client.send(GET).message()).body, 'ok')
  })
})

t.test('a second attempt', async t => {
  const dying =
    (first: string) =>
    async (peer: RawPeer): Promise<void> => {
      const request = await peer.message()
      peer.send(request.line.includes('/first') ? first : OK)
      await peer.head()
      peer.reset()
    }

  for (const method of ['GET', 'HEAD']) {
    t.test(`${method} on a connection that died idle is sent again on a new one`, async t => {
      const { client, upstream } = await scene(t, dying(OK))
      await client.send('GET /first HTTP/1.1\r\nHost: a\r\n\r\n').message()
      client.send(`${method} / HTTP/1.1\r\nHost: a\r\n\r\n`)
      t.match((await client.message({ bodyless: method === 'HEAD' })).line, / 200 /)
      t.equal(upstream.connections.length, 2)
    })
  }

  for (const [what, request] of [
    ['a POST', 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n'],
    ['a GET with a body', 'GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx'],
    ['a DELETE', 'DELETE / HTTP/1.1\r\nHost: a\r\n\r\n'],
  ] as const) {
    t.test(`${what} is never sent twice`, async t => {
      const { client, upstream } = await scene(t, dying(OK))
      await client.send('GET /first HTTP/1.1\r\nHost: a\r\n\r\n').message()
      t.match((await client.send(request).message()).line, / 502 /)
      t.equal(upstream.connections.length, 1)
    })
  }

  t.test('a GET is not sent again on a connection that was new', async t => {
    const { client, upstream } = await scene(t, async peer => {
      await peer.message()
      peer.reset()
    })
    t.match((await client.send(GET).message()).line, / 502 /)
    t.equal(upstream.connections.length, 1)
  })

  t.test('a GET is not sent again once an answer has begun', async t => {
    const { client, upstream } = await scene(t, async peer => {
      await peer.message()
      peer.send(OK)
      await peer.message()
      peer.send('HTTP/1.1 2')
      await sleep(30)
      peer.reset()
    })
    await client.send(GET).message()
    t.match((await client.send(GET).message()).line, / 502 /)
    t.equal(upstream.connections.length, 1)
  })
})

t.test('uploads', async t => {
  t.test('an upstream that dies during the upload: the client still hears of it', async t => {
    const { client, gateway } = await scene(t, async peer => {
      await peer.head()
      peer.reset()
    })
    client.send('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\npart')
    t.match((await client.message()).line, / 502 /)
    t.same(gateway.failures, ['upstream-unreachable'])
    t.equal(gateway.ended, 1)
  })

  const look = {
    'a body that was looked at': async (exchange: Exchange) => {
      const { body } = await peekBody(exchange.req, 4, 1000)
      return { ...exchange, body }
    },
    'a body that is watched': async (exchange: Exchange) => {
      return { ...exchange, body: tapBody(exchange.req, 4, () => {}) }
    },
    'a body that had to wait': async (exchange: Exchange) => {
      await sleep(30)
      return exchange
    },
  }
  for (const [what, between] of Object.entries(look)) {
    for (const text of ['', 'hi', 'longer than the look', 'x'.repeat(300_000)]) {
      t.test(`${what} arrives unchanged (${text.length} bytes)`, async t => {
        const { client, upstream } = await scene(t, undefined, { between })
        client.send(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${text.length}\r\n\r\n${text}`)
        const peer = await upstream.connection(0)
        const request = await peer.message()
        t.equal(request.body, text)
        t.same(valuesOf(request, 'content-length'), [String(text.length)])
        peer.send(OK)
        t.equal((await client.message()).body, 'ok')
        client.send(GET)
        t.match((await peer.message()).line, /^GET/, 'the connections are still in step')
      })
    }
  }

  t.test('a client that leaves during its upload cancels it', async t => {
    const { client, upstream, gateway } = await scene(t)
    client.send('POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n')
    const peer = await upstream.connection(0)
    await peer.head()
    client.reset()
    await waitUntil('the upstream to be cut', () => peer.ended || peer.closed)
    t.notMatch(peer.unread, /0\r\n\r\n/, 'the body does not look complete')
    await waitUntil('the end to be told', () => gateway.ended === 1)
    t.same(gateway.failures, [])
  })
})

t.test('a client that stops sending', async t => {
  const POST = 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nx'

  t.test('before an answer: 408, the upstream is cut and the connection ends', async t => {
    const { client, upstream, gateway } = await scene(t, undefined, { idleMs: 200 })
    client.send(POST)
    const peer = await upstream.connection(0)
    const answer = await client.message({ tillClose: true })
    t.match(answer.line, / 408 /)
    t.same(valuesOf(answer, 'connection'), ['close'])
    t.same(gateway.failures, ['request-timeout'])
    await waitUntil('the upstream to be cut', () => peer.ended || peer.closed)
    t.equal(gateway.ended, 1)
  })

  t.test('within an answer: both sides are cut', async t => {
    const { client, upstream, gateway } = await scene(t, undefined, { idleMs: 200 })
    client.send(POST)
    const peer = await upstream.connection(0)
    peer.send('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\npart')
    t.equal(await client.rest().then(text => text.slice(-4)), 'part')
    await waitUntil('the upstream to be cut', () => peer.ended || peer.closed)
    await waitUntil('the end to be told', () => gateway.ended === 1)
    t.same(gateway.failures, [])
  })

  t.test('for a while only, or because the upstream does: nothing happens', async t => {
    const { client, upstream } = await scene(t, undefined, { idleMs: 200 })
    const size = 8 * 1024 * 1024
    client.send(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${size}\r\n\r\nx`)
    const peer = await upstream.connection(0)
    await peer.head()
    peer.socket.pause()
    client.send('x'.repeat(size - 3))
    await sleep(400)
    peer.socket.resume()
    for (let i = 0; i < 2; i++) {
      await sleep(120)
      client.send('x')
    }
    await peer.bytes(size)
    peer.send(OK)
    t.equal((await client.message()).body, 'ok')
  })
})

t.test('a client that stops reading', async t => {
  const size = 64 * 1024 * 1024
  const flood = async (peer: RawPeer): Promise<void> => {
    await peer.message()
    peer.send(`HTTP/1.1 200 OK\r\nContent-Length: ${size}\r\n\r\n`)
    peer.socket.write(Buffer.alloc(size))
  }

  t.test('is cut, and so is the upstream', async t => {
    const { client, upstream, gateway } = await scene(t, flood, { idleMs: 300 })
    client.send(GET)
    await client.head()
    client.socket.pause()
    await waitUntil('the end to be told', () => gateway.ended === 1, 2_000)
    const peer = await upstream.connection(0)
    await waitUntil('the upstream to be cut', () => peer.ended || peer.closed)
    client.socket.resume()
    await waitUntil('the cut', () => client.ended || client.closed)
    t.ok(client.unread.length < size)
    t.same(gateway.failures, [])
  })

  t.test('with its slot held: the rest is read and discarded', async t => {
    const { client, upstream, gateway } = await scene(t, flood, { idleMs: 300, keepUpstream: true })
    client.send(GET)
    await client.head()
    client.socket.pause()
    await waitUntil('the end to be told', () => gateway.ended === 1)
    const peer = await upstream.connection(0)
    t.equal(peer.socket.writableLength, 0)
    t.notOk(peer.ended, 'the upstream keeps its connection')
  })

  t.test('when its answers have ended: is cut all the same', async t => {
    const body = 'x'.repeat(10_000)
    const { client } = await scene(t, answering(`HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n${body}`), {
      idleMs: 300,
    })
    client.socket.pause()
    client.send(GET.repeat(2_000))
    await sleep(1_500)
    client.socket.resume()
    await waitUntil('the cut', () => client.ended || client.closed)
    t.ok(client.unread.length < 2_000 * body.length)
  })

  t.test('slowly: gets everything', async t => {
    const { client } = await scene(t, flood, { idleMs: 300 })
    client.send(GET)
    await client.head()
    let received = client.unread.length
    client.socket.removeAllListeners('data').on('data', bytes => {
      received += bytes.length
      if (received % 7 > 0 && received < size / 4) {
        client.socket.pause()
        setTimeout(() => client.socket.resume(), 5)
      }
    })
    await waitUntil('the rest', () => received === size)
  })
})

t.test('more requests than connections', async t => {
  const POST = 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nx'
  const { upstream, gateway, client } = await scene(t, undefined, { connections: 3, connectMs: 300 })
  const holders = await Promise.all(Array.from({ length: 3 }, () => clientOf(t, gateway)))
  for (const holder of holders) holder.send(POST)
  await waitUntil('all connections to be taken', () => upstream.connections.length === 3)

  t.test('a request that waits too long for one gets 503', async t => {
    t.match((await client.send(GET).message()).line, / 503 /)
    t.same(gateway.failures, ['overloaded'])
    t.equal(gateway.ended, 1)
  })

  t.test('and no 100 before it', async t => {
    const late = await clientOf(t, gateway)
    late.send('POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n')
    t.match((await late.message()).line, / 503 /)
  })

  t.test('a request that waits is sent as soon as one is free, one that gave up never is', async t => {
    const leaver = await clientOf(t, gateway)
    leaver.send(GET.replace('/', '/left'))
    client.send(GET.replace('/', '/next'))
    await sleep(50)
    leaver.reset()
    await waitUntil('its end to be told', () => gateway.ended === 3)
    holders[0]?.send('123456789')
    const freed = await waitUntil('the upload', () =>
      upstream.connections.find(({ unread }) => unread.endsWith('123456789')),
    )
    await freed.message()
    freed.send(OK)
    t.match((await freed.message()).line, /^GET \/next /)
    freed.send(OK)
    t.equal((await client.message()).body, 'ok')
  })
})

t.test('flow', async t => {
  t.test('pipelined requests are answered in order', async t => {
    const { client } = await scene(t, async peer => {
      for (;;) {
        const { line } = await peer.message()
        if (line.includes('/1')) await sleep(30)
        peer.send(`HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n${line.slice(4, 6)}`)
      }
    })
    client.send('GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n')
    t.equal((await client.message()).body, '/1')
    t.equal((await client.message()).body, '/2')
  })

  t.test('an answer that comes before the upload ends is delivered, and the connection closed', async t => {
    const { client } = await scene(t, async peer => {
      await peer.head()
      peer.send('HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno')
    })
    client.send('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\npart')
    const answer = await client.message()
    t.same([answer.line, answer.body], ['HTTP/1.1 413 Content Too Large', 'no'])
    t.same(valuesOf(answer, 'connection'), ['close'])
  })

  t.test('a slow client holds the upstream back instead of filling memory', async t => {
    let sent = 0
    const { client } = await scene(t, async peer => {
      await peer.message()
      peer.send(`HTTP/1.1 200 OK\r\nContent-Length: ${64 * 1024 * 1024}\r\n\r\n`)
      const block = Buffer.alloc(64 * 1024)
      const fill = (): void => {
        while (sent < 64 * 1024 * 1024) {
          sent += block.length
          if (!peer.socket.write(block)) break
        }
      }
      peer.socket.on('drain', fill)
      fill()
    })
    client.send(GET)
    await client.head()
    client.socket.pause()
    await sleep(300)
    const before = sent
    await sleep(100)
    t.equal(sent, before, 'the upstream has stopped')
    t.ok(sent < 32 * 1024 * 1024, `${sent} bytes under way`)
    let received = client.unread.length
    client.socket.removeAllListeners('data').on('data', bytes => {
      received += bytes.length
    })
    client.socket.resume()
    await waitUntil('the rest', () => received === 64 * 1024 * 1024)
  })

  t.test('parallel requests do not wait for one another', async t => {
    const { upstream, gateway } = await scene(t)
    const clients = await Promise.all(Array.from({ length: 40 }, () => clientOf(t, gateway)))
    for (const client of clients) client.send(GET)
    await waitUntil('40 connections', () => upstream.connections.length === 40)
    for (const peer of upstream.connections) peer.send(OK)
    const answers = await Promise.all(clients.map(client => client.message()))
    t.ok(answers.every(({ body }) => body === 'ok'))
  })
})
