/** Upstreams that fail, are silent or are full: what their clients get, and what is retried. */
import t from 'tap'
import type { Exchange } from '../../../gateway/forward/transport.js'
import { GET, OK, type RawPeer, rawUpstream, valuesOf } from '../../helpers/raw.js'
import { sleep, waitUntil } from '../../helpers/wait.js'
import { answering, clientOf, scene } from './gateway.js'

t.test('a failing upstream', async t => {
  t.test('a response cut within its length is cut for the client too', async t => {
    const { client } = await scene(t, async peer => {
      await peer.message()
      peer.send('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf').end()
    })
    const answer = await client.send(GET).message({ tillClose: true })
    t.same(valuesOf(answer, 'content-length'), ['10'])
    t.equal(answer.body, 'half')
  })

  t.test('a response cut within its chunks reaches the client without a last chunk', async t => {
    const { client } = await scene(t, async peer => {
      await peer.message()
      peer.send('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n').end()
    })
    const answer = await client.send(GET).message({ tillClose: true })
    t.match(answer.body, /half/)
    t.notMatch(answer.body, /0\r\n\r\n/)
  })

  t.test(
    'a cut response resets an HTTP/1.0 connection, because an orderly end would mean success',
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

  t.test(
    'a client gets 502 upstream-invalid when an invalid chunk arrives together with the head',
    async t => {
      const { client, gateway } = await scene(t, async peer => {
        await peer.message()
        peer.send('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\nzz\r\n')
      })
      const { line, body } = await client.send(GET).message()
      t.match(line, / 502 /)
      t.equal(JSON.parse(body).code, 'upstream-invalid')
      t.same(gateway.failures, ['upstream-invalid'])
      await waitUntil('the end of the request', () => gateway.ended === 1)
    },
  )

  t.test('a client gets 502 upstream-unreachable when its upstream does not listen', async t => {
    const { client, upstream, gateway } = await scene(t)
    await upstream.stop()
    t.match((await client.send(GET).message()).line, / 502 /)
    t.same(gateway.failures, ['upstream-unreachable'])
    t.equal(gateway.ended, 1)
  })

  t.test('a client gets 502 upstream-unreachable when its upstream closes without a byte', async t => {
    const { client, gateway } = await scene(t, async peer => {
      await peer.message()
      peer.end()
    })
    t.match((await client.send(GET).message()).line, / 502 /)
    t.same(gateway.failures, ['upstream-unreachable'])
  })

  for (const [what, bytes] of [
    ['bytes that are not HTTP', 'hello there\r\n\r\n'],
    ['two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok!'],
    [
      'length and chunks',
      'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    ],
    ['a list of lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nok'],
    ['a signed length', 'HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nok'],
    ['a length too large for a number', 'HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551618\r\n\r\nok'],
    ['an unknown coding', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n'],
    [
      'a coding after chunked',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\n2\r\nok\r\n0\r\n\r\n',
    ],
    ['a blank before a colon', 'HTTP/1.1 200 OK\r\nX-A : 1\r\nContent-Length: 2\r\n\r\nok'],
    ['a folded line', 'HTTP/1.1 200 OK\r\nX-A: 1\r\n 2\r\nContent-Length: 2\r\n\r\nok'],
    ['lines that end in LF alone', 'HTTP/1.1 200 OK\nContent-Length: 2\n\nok'],
    ['a status below 100', 'HTTP/1.1 099 Odd\r\nContent-Length: 2\r\n\r\nok'],
    ['an unsolicited 101', 'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n'],
    ['an interim response in HTTP/1.0', `HTTP/1.0 103 Early Hints\r\nLink: </a>\r\n\r\n${OK}`],
    ['a 101 in HTTP/1.0', 'HTTP/1.0 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n'],
    ['an endless head', `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(20_000)}`],
  ] as const) {
    t.test(`a client gets 502 upstream-invalid when its upstream sends ${what}`, async t => {
      const { client, gateway } = await scene(t, async peer => {
        await peer.message()
        peer.send(bytes)
      })
      t.match((await client.send(GET).message()).line, / 502 /)
      t.same(gateway.failures, ['upstream-invalid'])
      t.equal(gateway.ended, 1)
    })
  }

  t.test('a fault of the gateway at the end of a response cuts it, and nothing else', async t => {
    const between = async (exchange: Exchange): Promise<Exchange> => ({
      ...exchange,
      onUpstreamEnd() {
        throw new Error('a fault of ours')
      },
    })
    const { client, upstream } = await scene(t, undefined, { between })
    client.send(GET)
    const peer = await upstream.connection(0)
    await peer.message()
    peer.send('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nha')
    await client.head()
    peer.send('lf')
    t.equal(await client.rest(), 'ha')
  })

  t.test('a response that stalls is cut on both sides', async t => {
    const { client, upstream, gateway } = await scene(t, undefined, { idleMs: 200 })
    client.send(GET)
    const peer = await upstream.connection(0)
    await peer.message()
    peer.send('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf')
    t.equal((await client.message({ tillClose: true })).body, 'half')
    await waitUntil('the upstream to be cut', () => peer.ended || peer.closed)
    await waitUntil('the end of the request', () => gateway.ended === 1)
    t.same(gateway.failures, [])
  })

  t.test('a client gets 502 upstream-unreachable when its upstream completes no TLS handshake', async t => {
    // It accepts connections and never completes a TLS handshake.
    const silent = await rawUpstream()
    t.teardown(() => silent.stop())
    const url = silent.url.replace('http:', 'https:')
    const { client, gateway } = await scene(t, undefined, { url, connectMs: 100 })
    t.match((await client.send(GET).message()).line, / 502 /)
    t.same(gateway.failures, ['upstream-unreachable'])
  })

  t.test(
    'a client gets 504 upstream-timeout when its upstream is silent, and the request is cancelled',
    async t => {
      const { client, upstream, gateway } = await scene(t, undefined, { headMs: 200 })
      t.match((await client.send(GET).message()).line, / 504 /)
      t.same(gateway.failures, ['upstream-timeout'])
      const peer = await upstream.connection(0)
      await waitUntil('the upstream to be cut', () => peer.ended || peer.closed)
    },
  )

  t.test('bytes behind a response never become the next response', async t => {
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
    t.test(`is made for a ${method} on a new connection when an idle one has died`, async t => {
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
    t.test(`is never made for ${what}`, async t => {
      const { client, upstream } = await scene(t, dying(OK))
      await client.send('GET /first HTTP/1.1\r\nHost: a\r\n\r\n').message()
      t.match((await client.send(request).message()).line, / 502 /)
      t.equal(upstream.connections.length, 1)
    })
  }

  t.test('is not made for a GET that failed on a new connection', async t => {
    const { client, upstream } = await scene(t, async peer => {
      await peer.message()
      peer.reset()
    })
    t.match((await client.send(GET).message()).line, / 502 /)
    t.equal(upstream.connections.length, 1)
  })

  t.test('is not made for a GET once its response has begun', async t => {
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

t.test('more requests than connections', async t => {
  const POST = 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nx'
  const { upstream, gateway, client } = await scene(t, undefined, { connections: 4, connectMs: 300 })
  const holders = await Promise.all(Array.from({ length: 3 }, () => clientOf(t, gateway)))
  for (const holder of holders) holder.send(POST)
  // Three are the most of one client.
  await waitUntil('all connections to be taken', () => upstream.connections.length === 3)

  t.test('a request that waits too long for a connection gets 503', async t => {
    t.match((await client.send(GET).message()).line, / 503 /)
    t.same(gateway.failures, ['overloaded'])
    t.equal(gateway.ended, 1)
  })

  t.test('a request that waits too long with Expect: 100-continue gets 503 without a 100', async t => {
    const late = await clientOf(t, gateway)
    late.send('POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n')
    t.match((await late.message()).line, / 503 /)
  })

  t.test(
    'a waiting request is sent as soon as a connection is free, and one whose client left never is',
    async t => {
      const leaver = await clientOf(t, gateway)
      leaver.send(GET.replace('/', '/left'))
      client.send(GET.replace('/', '/next'))
      await sleep(50)
      leaver.reset()
      await waitUntil('the end of its request', () => gateway.ended === 3)
      holders[0]?.send('123456789')
      const freed = await waitUntil('the upload', () =>
        upstream.connections.find(({ unread }) => unread.endsWith('123456789')),
      )
      await freed.message()
      freed.send(OK)
      t.match((await freed.message()).line, /^GET \/next /)
      freed.send(OK)
      t.equal((await client.message()).body, 'ok')
    },
  )
})
