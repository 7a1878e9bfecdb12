/** Messages as they appear on the wire on both sides of a whole gateway, one behaviour per test. */
import t from 'tap'
import { GET, valuesOf } from '../../helpers/raw.js'
import { sleep, waitUntil } from '../../helpers/wait.js'
import { createWire } from './wire.js'

const wire = await createWire(t)

t.test('fields', async t => {
  t.test('Via is appended to earlier entries, with the version received', async t => {
    const client = await wire.answered(t)
    await client.send('GET / HTTP/1.0\r\nHost: a\r\nVia: 1.1 first\r\nVia: 1.0 second\r\n\r\n').message()
    t.same(valuesOf(wire.first(), 'via'), ['1.1 first', '1.0 second', '1.0 sluice'])
  })

  t.test('an HTTP/1.0 request without Host is forwarded with its upstream’s host', async t => {
    const client = await wire.answered(t)
    await client.send('GET / HTTP/1.0\r\n\r\n').message()
    t.matchOnly(valuesOf(wire.first(), 'host'), [/^127\.0\.0\.1:\d+$/])
    t.same(valuesOf(wire.first(), 'x-forwarded-host'), [''])
  })

  t.test('the fields Connection names are removed both ways, except those the next hop must see', async t => {
    const answer =
      'HTTP/1.1 200 OK\r\nConnection: x-mine, Content-Length\r\nX-Mine: 1\r\nX-Yours: 1\r\nContent-Length: 2\r\n\r\nok'
    const client = await wire.answered(t, answer)
    client.send(
      'GET / HTTP/1.1\r\nHost: a\r\nConnection: x-mine, Host, Via, X-Forwarded-For\r\nX-Mine: 1\r\nX-Yours: 1\r\n\r\n',
    )
    const received = await client.message()
    for (const message of [wire.first(), received]) {
      t.same([valuesOf(message, 'x-mine'), valuesOf(message, 'x-yours')], [[], ['1']])
    }
    t.same(
      [valuesOf(wire.first(), 'host'), valuesOf(wire.first(), 'x-forwarded-for')],
      [['a'], ['127.0.0.1']],
    )
    t.equal(received.body, 'ok')
  })

  t.test('repeated fields keep their order, and bytes beyond ASCII their value, both ways', async t => {
    const lines = 'X-A: caf\xe9\r\nX-B: 2\r\nX-A: \xff\xfe\r\n'
    const client = await wire.answered(
      t,
      `HTTP/1.1 200 OK\r\n${lines}Set-Cookie: a=1\r\nSet-Cookie: b=2\r\nContent-Length: 2\r\n\r\nok`,
    )
    const received = await client.send(`GET / HTTP/1.1\r\nHost: a\r\n${lines}\r\n`).message()
    for (const message of [wire.first(), received]) t.same(valuesOf(message, 'x-a'), ['caf\xe9', '\xff\xfe'])
    t.same(valuesOf(received, 'set-cookie'), ['a=1', 'b=2'])
  })

  t.test('trailers never become fields, and reach only a client that accepts them', async t => {
    const chunks = '2\r\nhi\r\n0\r\nX-Late: 1\r\nHost: evil\r\n\r\n'
    const client = await wire.answered(
      t,
      `HTTP/1.1 200 OK\r\nTrailer: X-Late\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}`,
    )
    // Without the trailers, which the helper's reader would take for the next message.
    client.send(
      'POST / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nTrailer: X-Late\r\nTransfer-Encoding: chunked\r\n\r\n',
    )
    client.send(chunks)
    const received = await client.message()
    for (const message of [wire.first(), received]) {
      t.equal(message.body, 'hi')
      t.same(
        [...valuesOf(message, 'x-late'), ...valuesOf(message, 'trailer'), ...valuesOf(message, 'te')],
        [],
      )
    }
    t.same(valuesOf(wire.first(), 'host'), ['a'])
    // The helper's reader has taken two bytes of the trailers for the end of the last chunk.
    await waitUntil('the trailers', () => client.unread === 'Late: 1\r\n\r\n')
    const other = await wire.answered(
      t,
      `HTTP/1.1 200 OK\r\nTrailer: X-Late\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}`,
    )
    await other.send(GET).message()
    await sleep(20)
    t.equal(other.unread, '', 'trailers reach no other client')
  })

  for (const [what, value] of [
    ['NUL', 'a\0b'],
    ['a bare CR', 'a\rb'],
  ] as const) {
    t.test(`${what} in an upstream’s field gets 502`, async t => {
      const client = await wire.answered(t, `HTTP/1.1 200 OK\r\nX-A: ${value}\r\nContent-Length: 2\r\n\r\nok`)
      t.match((await client.send(GET).message()).line, / 502 /)
    })
  }
})

t.test('framing', async t => {
  t.test('nothing behind refused framing reaches the upstream', async t => {
    for (const fields of [
      'Transfer-Encoding: gzip, chunked',
      'Transfer-Encoding: ,chunked',
      'Expect: x\r\nTransfer-Encoding: chunked',
    ]) {
      const client = await wire.answered(t)
      // This opens a connection to the upstream, on which anything forwarded would arrive at once.
      await client.send(GET).message()
      client.send(`POST / HTTP/1.1\r\nHost: a\r\n${fields}\r\n\r\n0\r\n\r\n${GET}`)
      const refusal = await client.message()
      t.match(refusal.line, / 4(?:00|17) /, fields)
      t.same(valuesOf(refusal, 'connection'), ['close'])
      t.equal(await client.rest(), '')
      await sleep(40)
      t.equal(wire.seen.length, 1)
    }
  })

  t.test('ambiguous framing closes the connection although the whole request has arrived', async t => {
    const client = await wire.answered(t)
    client.send('POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked, chunked\r\n\r\n0\r\n\r\n')
    t.same(valuesOf(await client.message(), 'connection'), ['close'])
    await waitUntil('the end', () => client.ended)
  })

  t.test(
    'a chunked body arrives with its bytes, whatever the sizes and extensions of its chunks',
    async t => {
      const client = await wire.answered(t)
      client.send('PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n')
      for (const piece of ['1;a=b\r\nx\r\n', '000A\r\n0123456789\r', '\n3\r\nyz', '!\r\n0\r\n', '\r\n']) {
        client.send(piece)
        await sleep(2)
      }
      await client.message()
      t.equal(wire.first().body, 'x0123456789yz!')
    },
  )

  t.test('a chunked response reaches an HTTP/1.0 client unchunked and closes the connection', async t => {
    const client = await wire.answered(t)
    wire.play(async peer => {
      await peer.message()
      peer.send('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n')
      await sleep(20)
      peer.send('0\r\n\r\n')
    })
    client.send('GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n')
    const received = await client.message({ tillClose: true })
    t.same([received.body, valuesOf(received, 'transfer-encoding')], ['ok', []])
  })

  t.test('a response to HEAD has no body, even when the upstream announces chunks', async t => {
    const client = await wire.answered(t, 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n')
    await client.send('HEAD / HTTP/1.1\r\nHost: a\r\n\r\n').message({ bodyless: true })
    await client.send('HEAD / HTTP/1.1\r\nHost: a\r\n\r\n').message({ bodyless: true })
    t.equal(client.unread, '')
  })

  for (const [status, line] of [
    [204, '204 No Content'],
    [304, '304 Not Modified'],
  ] as const) {
    t.test(`bytes behind a ${status} never become the next response`, async t => {
      const client = await wire.answered(
        t,
        `HTTP/1.1 ${line}\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil`,
      )
      for (let i = 0; i < 2; i++) {
        t.match((await client.send(GET).message({ bodyless: true })).line, new RegExp(` ${status} `))
        await sleep(20)
      }
      t.notMatch(client.unread, /evil/)
    })
  }
})

t.test('methods and targets', async t => {
  t.test('OPTIONS * is answered by the gateway', async t => {
    const client = await wire.answered(t)
    const answer = await client.send('OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n').message()
    t.match(answer.line, / 204 /)
    t.match(valuesOf(answer, 'allow')[0], /GET, HEAD, POST/)
    t.equal(wire.seen.length, 0)
  })

  t.test('Max-Forwards is decremented for OPTIONS, and at 0 the gateway responds', async t => {
    const client = await wire.answered(t)
    const asked = (hops: string, method = 'OPTIONS') =>
      client.send(`${method} /a HTTP/1.1\r\nHost: a\r\nMax-Forwards: ${hops}\r\n\r\n`).message()
    t.match((await asked('0')).line, / 204 /)
    t.equal(wire.seen.length, 0)
    await asked('7')
    await asked('7', 'GET')
    t.same(
      wire.seen.map(message => valuesOf(message, 'max-forwards')),
      [['6'], ['7']],
    )
  })

  t.test('TRACE and CONNECT get 405 with the allowed methods', async t => {
    for (const line of ['TRACE / HTTP/1.1', 'CONNECT a:443 HTTP/1.1']) {
      const client = await wire.answered(t)
      const answer = await client.send(`${line}\r\nHost: a\r\nAuthorization: secret\r\n\r\n`).message()
      t.match(answer.line, / 405 /)
      t.match(valuesOf(answer, 'allow')[0], /^GET, HEAD, POST/)
      t.notMatch(answer.body, /secret/)
      t.equal(wire.seen.length, 0)
    }
  })

  t.test('an unknown method gets 501, and the connection persists', async t => {
    const client = await wire.answered(t)
    const answer = await client.send(GET.replace('GET', 'BREW')).message()
    t.match([answer.line, JSON.parse(answer.body)], [/ 501 /, { code: 'method-not-implemented' }])
    t.match((await client.send(GET).message()).line, / 200 /)
    t.equal(wire.seen.length, 1)
  })

  t.test(
    'an absolute-form target is forwarded in origin-form to the configured upstream, its authority as Host',
    async t => {
      const client = await wire.answered(t)
      await client.send('GET http://shop.example:81/a/./b?c HTTP/1.1\r\nHost: other\r\n\r\n').message()
      t.equal(wire.first().line, 'GET /a/b?c HTTP/1.1')
      t.same(valuesOf(wire.first(), 'host'), ['shop.example:81'])
    },
  )

  t.test('an upgrade to anything but websocket, such as h2c, is served without it', async t => {
    const client = await wire.answered(t)
    client.send(
      'GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n',
    )
    t.match((await client.message()).line, / 200 /)
    t.equal(wire.seen.length, 1)
    t.same(
      wire.seen.flatMap(message => [...valuesOf(message, 'upgrade'), ...valuesOf(message, 'http2-settings')]),
      [],
    )
  })
})
