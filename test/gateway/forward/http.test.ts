/** Messages through the forward room, to and from a well-behaved upstream. */
import t from 'tap'
import { GET, OK, valuesOf } from '../../helpers/raw.js'
import { sleep, waitUntil } from '../../helpers/wait.js'
import { answering, clientOf, scene } from './gateway.js'

t.test('bodies', async t => {
  t.test('a body of unknown length arrives whole, in chunks', async t => {
    const { client } = await scene(t, async peer => {
      await peer.message()
      peer.send('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n')
      await sleep(20)
      peer.send('0\r\n\r\n')
    })
    const answer = await client.send(GET).message()
    t.equal(answer.body, 'abc')
    t.same(valuesOf(answer, 'transfer-encoding'), ['chunked'])
  })

  t.test('a chunked body that is complete when its head is sent gets a length instead', async t => {
    const { client } = await scene(
      t,
      answering('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n'),
    )
    const answer = await client.send(GET).message()
    t.equal(answer.body, 'abc')
    t.same(valuesOf(answer, 'content-length'), ['3'])
    t.same(valuesOf(answer, 'transfer-encoding'), [])
  })

  t.test('a response that ends with the connection arrives whole', async t => {
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

  t.test('the bytes of a body are not changed', async t => {
    const all = String.fromCharCode(...Array.from({ length: 256 }, (_, byte) => byte))
    const { client, upstream } = await scene(t)
    client.send(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 256\r\n\r\n${all}`)
    const peer = await upstream.connection(0)
    t.equal((await peer.message()).body, all)
    peer.send(`HTTP/1.1 200 OK\r\nContent-Length: 256\r\n\r\n${all}`)
    t.equal((await client.message()).body, all)
  })

  t.test('a response to HEAD keeps its length and has no body', async t => {
    const { client } = await scene(t, answering('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n'))
    const answer = await client.send('HEAD / HTTP/1.1\r\nHost: a\r\n\r\n').message({ bodyless: true })
    t.same(valuesOf(answer, 'content-length'), ['9'])
    client.send(GET)
    t.match((await client.head()).line, / 200 /, 'the next response is read correctly')
  })

  t.test('a 204 has neither body nor length', async t => {
    for (const framing of ['Content-Length: 0\r\n\r\n', 'Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n']) {
      const { client } = await scene(t, answering(`HTTP/1.1 204 No Content\r\n${framing}`))
      const answer = await client.send(GET).message()
      t.match(answer.line, / 204 /)
      t.same(valuesOf(answer, 'content-length'), [])
      t.same(valuesOf(answer, 'transfer-encoding'), [])
    }
  })

  t.test('a 304 keeps its ETag and has no body', async t => {
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

  t.test('the head of a response does not wait for its body', async t => {
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

t.test('interim responses', async t => {
  t.test('an unsolicited 100 does not break the response, even in pieces', async t => {
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

  t.test('the length of an interim response is not forwarded', async t => {
    const { client } = await scene(
      t,
      answering(`HTTP/1.1 103 Early Hints\r\nContent-Length: 5\r\nLink: </a>\r\n\r\n${OK}`),
    )
    const hints = { ...(await client.send(GET).head()), body: '' }
    t.same([valuesOf(hints, 'link'), valuesOf(hints, 'content-length')], [['</a>'], []])
    t.equal((await client.message()).body, 'ok')
  })

  t.test('a body that looks like a 100 is forwarded', async t => {
    const body = 'HTTP/1.1 100 Continue\r\n\r\n'
    const { client } = await scene(t, async peer => {
      await peer.message()
      peer.send(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n`)
      await sleep(20)
      peer.send(body)
    })
    t.equal((await client.send(GET).message()).body, body)
  })

  t.test('the gateway answers Expect itself and does not forward it', async t => {
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

  t.test('a response that comes before the upload ends is delivered, and the connection closes', async t => {
    const { client } = await scene(t, async peer => {
      await peer.head()
      peer.send('HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno')
    })
    client.send('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\npart')
    const answer = await client.message()
    t.same([answer.line, answer.body], ['HTTP/1.1 413 Content Too Large', 'no'])
    t.same(valuesOf(answer, 'connection'), ['close'])
  })

  t.test('a slow client holds the upstream back', async t => {
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
