/** Request bodies on their way to an upstream. */
import t, { type Test } from 'tap'
import type { Exchange } from '../../../gateway/forward/transport.js'
import { peekBody, tapBody } from '../../../gateway/listen/peek-body.js'
import { GET, OK, valuesOf } from '../../helpers/raw.js'
import { sleep, waitUntil } from '../../helpers/wait.js'
import { scene } from './gateway.js'

const ENOUGH = { take: () => true, giveBack: () => undefined }

t.test('uploads', async t => {
  t.test('a client gets 502 when its upstream dies during the upload', async t => {
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
    'a body that was peeked at': async (exchange: Exchange) => {
      const { body: sent } = exchange.req
      if (sent === undefined) return exchange
      const { body } = await peekBody(sent, 4, 1000, ENOUGH)
      return { ...exchange, body }
    },
    'a body that is tapped': async (exchange: Exchange) => {
      const { body } = exchange.req
      return body === undefined ? exchange : { ...exchange, body: tapBody(body, 4, () => {}) }
    },
    'a body that had to wait': async (exchange: Exchange) => {
      await sleep(30)
      return exchange
    },
  }
  for (const [what, between] of Object.entries(look)) {
    for (const text of ['', 'hi', 'longer than the peek', 'x'.repeat(300_000)]) {
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
        t.match((await peer.message()).line, /^GET/, 'the next request is read correctly')
      })
    }
  }

  t.test('a body announced as too large gets 413, and nothing reaches the upstream', async t => {
    const { client, upstream, gateway } = await scene(t, undefined, { maxBody: 10 })
    client.send('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n')
    t.match((await client.message()).line, / 413 /)
    t.same(gateway.failures, ['body-too-large'])
    t.equal(upstream.connections.length, 0)
    await waitUntil('the end of the request', () => gateway.ended === 1)
  })

  t.test('a body that proves too large gets 413, and its upstream sees no complete one', async t => {
    const { client, upstream, gateway } = await scene(t, undefined, { maxBody: 10 })
    client.send('POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\na\r\n0123456789\r\n')
    const peer = await upstream.connection(0)
    await waitUntil('all that is allowed', () => peer.unread.includes('0123456789'))
    client.send('1\r\nx\r\n0\r\n\r\n')
    t.match((await client.message()).line, / 413 /)
    t.same(gateway.failures, ['body-too-large'])
    await waitUntil('the upstream to be cut', () => peer.ended || peer.closed)
    t.notMatch(peer.unread, /\r\n0\r\n\r\n/, 'the body does not look complete')
    await waitUntil('the end of the request', () => gateway.ended === 1)
  })

  t.test('a body of exactly the allowed size passes', async t => {
    const { client, upstream } = await scene(t, undefined, { maxBody: 10 })
    client.send('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n0123456789')
    const peer = await upstream.connection(0)
    t.equal((await peer.message()).body, '0123456789')
    peer.send(OK)
    t.equal((await client.message()).body, 'ok')
  })

  t.test('a client that leaves during its upload cancels it', async t => {
    const { client, upstream, gateway } = await scene(t)
    client.send('POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n')
    const peer = await upstream.connection(0)
    await peer.head()
    client.reset()
    await waitUntil('the upstream to be cut', () => peer.ended || peer.closed)
    t.notMatch(peer.unread, /0\r\n\r\n/, 'the body does not look complete')
    await waitUntil('the end of the request', () => gateway.ended === 1)
    t.same(gateway.failures, [])
  })
})

t.test('an upstream that closes while the upload still runs', async t => {
  /** What a client gets that uploads 64 MB to an upstream which answers the head with `lastWords`. */
  async function heard(t: Test, lastWords: string) {
    const { client, gateway } = await scene(t, async peer => {
      await peer.head()
      // With unread bytes of the upload, the connection is reset right after its last byte.
      peer.socket.pause().end(lastWords, 'latin1', () => peer.socket.destroy())
    })
    const block = Buffer.alloc(1024 * 1024)
    client.send(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${64 * block.length}\r\n\r\n`)
    for (let i = 0; i < 64; i++) client.socket.write(block)
    const answer = await client.message()
    await waitUntil('the end of the request', () => gateway.ended === 1)
    return { answer, failures: gateway.failures }
  }

  for (const [what, lastWords] of [
    ['with a length', 'HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno'],
    ['in chunks', 'HTTP/1.1 413 Content Too Large\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n'],
    ['that ends with the connection', 'HTTP/1.0 413 Content Too Large\r\n\r\nno'],
  ] as const) {
    t.test(`has its response ${what} delivered, and the client’s connection closes`, async t => {
      const { answer, failures } = await heard(t, lastWords)
      t.same([answer.line, answer.body], ['HTTP/1.1 413 Content Too Large', 'no'])
      t.same(valuesOf(answer, 'connection'), ['close'])
      t.same(failures, [])
    })
  }

  t.test('gets its client 502 when it sends no response', async t => {
    const { answer, failures } = await heard(t, '')
    t.match(answer.line, / 502 /)
    t.same(failures, ['upstream-unreachable'])
  })
})
