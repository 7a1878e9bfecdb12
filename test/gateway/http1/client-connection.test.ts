/** One connection to an upstream that sends exactly the bytes the test gives it. */
import t from 'tap'
import { GET, OK, type RawPeer } from '../../helpers/raw.js'
import { sleep, waitUntil } from '../../helpers/wait.js'
import { inPieces, Listener, scene } from './upstream.js'

const CHUNKED = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'
const POST = 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n'
const TEN = { kind: 'length', bytes: 10 } as const

/** Treats everything on the connection as one request, and responds once. */
function once(bytes: string, then?: (peer: RawPeer) => void): (peer: RawPeer) => void {
  return peer => {
    peer.socket.once('data', () => {
      peer.send(bytes)
      then?.(peer)
    })
  }
}

const ends = (peer: RawPeer): void => peer.end()

t.test('a response', async t => {
  t.test('is read in full however its bytes are split', async t => {
    const bytes = `HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n${CHUNKED}3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nX-Late: 1\r\n\r\n`
    for (const size of [1, 2, 7, 40]) {
      const pieces = bytes.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? []
      const { asked } = await scene(t, peer => {
        peer.socket.once('data', () => {
          for (const piece of pieces) peer.socket.write(piece)
        })
      })
      const { heard, body, trailers } = await asked()
      t.same(
        [heard, body, trailers],
        [['interim 103', 'head 200', 'end'], 'abcde', ['X-Late', '1']],
        `${size} at a time`,
      )
    }
  })

  t.test('ends with its head where the method or the status rules out a body', async t => {
    for (const [text, bytes, connections] of [
      ['HEAD / HTTP/1.1\r\nHost: a\r\n\r\n', 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n', 3],
      ['HEAD / HTTP/1.1\r\nHost: a\r\n\r\n', 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n', 1],
      ['HEAD / HTTP/1.1\r\nHost: a\r\n\r\n', CHUNKED, 3],
      [GET, 'HTTP/1.1 204 No Content\r\n\r\n', 1],
      [GET, 'HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n', 3],
      [GET, 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n', 1],
    ] as const) {
      const { asked, upstream } = await scene(t, inPieces(bytes))
      for (let i = 0; i < 3; i++) t.equal((await asked(text)).heard.at(-1), 'end')
      t.equal(
        upstream.connections.length,
        connections,
        'the connection is reused if no body can be on its way',
      )
    }
  })

  t.test('without a length ends when its connection ends', async t => {
    const { asked } = await scene(t, once('HTTP/1.1 200 OK\r\n\r\ntill the end', ends))
    const { heard, body } = await asked()
    t.same([heard, body], [['head 200', 'end'], 'till the end'])
  })

  for (const [what, bytes] of [
    ['a length', 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc'],
    ['chunks', `${CHUNKED}5\r\nabc`],
    ['the last chunk', `${CHUNKED}3\r\nabc\r\n`],
    ['the trailers', `${CHUNKED}3\r\nabc\r\n0\r\nX-Late: 1\r\n`],
  ] as const) {
    t.test(`is reported as lost when it is cut within ${what}`, async t => {
      const { asked } = await scene(t, once(bytes, ends))
      t.same((await asked()).heard, ['head 200', 'gone, heard'])
    })
  }

  t.test('arrives whole when the connection is reset right after its last byte', async t => {
    const { asked } = await scene(
      t,
      once(OK, peer => setTimeout(() => peer.reset(), 20)),
    )
    t.same((await asked()).heard, ['head 200', 'end'])
    await sleep(50)
    t.equal((await asked()).body, 'ok', 'the next response arrives too')
  })

  t.test('is delivered before the request’s body is complete, and its connection closes', async t => {
    const { pool, upstream, asked } = await scene(t, once(OK))
    const listener = new Listener(POST, TEN)
    pool.take(listener)
    await upstream.connection(0)
    listener.connection?.send(Buffer.from('half'))
    listener.connection?.flush()
    t.same((await listener.end()).heard, ['head 200', 'end'])
    await asked()
    t.equal(upstream.connections.length, 2)
    const peer = await upstream.connection(0)
    await waitUntil('the end of the first', () => peer.ended || peer.closed)
  })

  t.test('is delivered although a write failed before it was read', async t => {
    const { pool } = await scene(t, peer => {
      peer.socket.once('data', () => {
        // With unread bytes, the connection is reset right after the last byte sent.
        peer.socket.pause()
        setTimeout(() => peer.socket.end(OK, 'latin1', () => peer.socket.destroy()), 50)
      })
    })
    const listener = new Listener(POST, { kind: 'length', bytes: 8 })
    pool.take(listener)
    const connection = await waitUntil('the connection', () => listener.connection)
    for (const part of ['ab', 'cd', 'ef']) {
      connection.send(Buffer.from(part))
      connection.flush()
      connection.pause()
      await sleep(40)
    }
    await sleep(100)
    connection.send(Buffer.from('gh'))
    await sleep(20)
    t.same(listener.heard, [])
    connection.resume()
    t.same((await listener.end()).heard, ['head 200', 'end'])
    t.equal(listener.body, 'ok')
  })
})

t.test('bytes behind a response never become the next response', async t => {
  const evil = 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil'
  t.test('bytes that arrive with the response close the connection', async t => {
    const { asked, upstream } = await scene(t, inPieces(OK + evil))
    for (let i = 0; i < 2; i++) t.equal((await asked()).body, 'ok')
    t.equal(upstream.connections.length, 2)
  })

  t.test('bytes that arrive later close the connection', async t => {
    const { asked, upstream } = await scene(t, inPieces(OK, evil))
    t.equal((await asked()).body, 'ok')
    await sleep(60)
    t.equal((await asked()).body, 'ok')
    t.equal(upstream.connections.length, 2)
  })

  t.test('bytes in a read of their own, behind a full one, are discarded', async t => {
    const head = 'HTTP/1.1 200 OK\r\nContent-Length: '
    const size = 64 * 1024 - head.length - '65000\r\n\r\n'.length
    const answer = `${head}${size}\r\n\r\n${'x'.repeat(size)}`
    t.equal(answer.length, 64 * 1024)
    const { pool } = await scene(t, peer => {
      peer.socket.on('data', () => peer.send(answer + evil))
    })
    const first = new Listener()
    const second = new Listener()
    first.onEnd = () => {
      first.over = true
      pool.take(second)
    }
    pool.take(first)
    await first.end()
    await second.end()
    t.notMatch(second.body, 'evil')
  })
})

t.test('an invalid response is reported as such, and its connection closes', async t => {
  for (const [what, bytes] of [
    ['an endless head', `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(20_000)}`],
    ['endless trailers', `${CHUNKED}0\r\n${'X: y\r\n'.repeat(5_000)}`],
    ['an endless chunk size', `${CHUNKED}${'0'.repeat(20_000)}`],
    ['a thousand interim responses', 'HTTP/1.1 102 Processing\r\n\r\n'.repeat(1_000)],
    ['a thousand unsolicited 100 responses', 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(1_000)],
    ['chunks in HTTP/1.0', 'HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'],
    ['an unsolicited 101', 'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n'],
    ['two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok'],
    ['a bare LF', 'HTTP/1.1 200 OK\nContent-Length: 2\n\nok'],
    ['HTTP/2', 'HTTP/2 200\r\n\r\n'],
    ['another protocol', 'SSH-2.0-OpenSSH_9.2'],
  ] as const) {
    t.test(what, async t => {
      const { asked, upstream } = await scene(t, once(bytes))
      t.equal((await asked()).heard.at(-1), 'invalid, heard')
      const [peer] = upstream.connections
      await waitUntil('the cut', () => peer?.ended || peer?.closed)
    })
  }
})

t.test('timeouts', async t => {
  t.test('a silent upstream is given up when the time for a head has passed', async t => {
    const { asked } = await scene(t, () => {}, { headMs: 100 })
    t.same((await asked()).heard, ['silent'])
  })

  t.test('interim responses do not extend the time for a head', async t => {
    const beats: NodeJS.Timeout[] = []
    t.teardown(() => beats.forEach(clearInterval))
    const { asked } = await scene(
      t,
      peer => {
        beats.push(setInterval(() => peer.send('HTTP/1.1 102 Processing\r\n\r\n'), 40))
      },
      { headMs: 200 },
    )
    t.equal((await asked()).heard.at(-1), 'silent, heard')
  })

  t.test('the time for a head starts when the request’s body has been sent', async t => {
    const { pool, upstream } = await scene(t, undefined, { headMs: 150 })
    const listener = new Listener(POST, TEN)
    pool.take(listener)
    await upstream.connection(0)
    for (const part of ['half ', 'of it']) {
      await sleep(250)
      t.equal(listener.heard.length, 0)
      listener.connection?.send(Buffer.from(part))
      listener.connection?.flush()
    }
    listener.connection?.finish([])
    t.same((await listener.end()).heard, ['silent'])
  })

  t.test('the time for a head runs while the upstream accepts no more of the request’s body', async t => {
    const { pool } = await scene(t, peer => peer.socket.pause(), { headMs: 150 })
    const size = 64 * 1024 * 1024
    const listener = new Listener(POST, { kind: 'length', bytes: size })
    pool.take(listener)
    await waitUntil('the connection', () => listener.connection)
    listener.connection?.flush()
    t.notOk(listener.connection?.send(Buffer.alloc(size / 2)))
    t.same((await listener.end()).heard, ['silent'])
  })

  t.test('a pause within a response is limited, except while its reader has paused it', async t => {
    const { pool } = await scene(t, once('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhalf'.slice(0, -1)), {
      idleMs: 100,
    })
    const listener = new Listener()
    pool.take(listener)
    await waitUntil('the beginning', () => listener.body === 'hal')
    listener.connection?.pause()
    await sleep(300)
    t.same(listener.heard, ['head 200'])
    listener.connection?.resume()
    t.same((await listener.end()).heard, ['head 200', 'silent, heard'])
  })
})

t.test('flow control', async t => {
  t.test('a paused response stops its upstream, and resumes', async t => {
    const size = 32 * 1024 * 1024
    let sent = 0
    const { pool } = await scene(t, peer => {
      peer.socket.once('data', () => {
        peer.send(`HTTP/1.1 200 OK\r\nContent-Length: ${size}\r\n\r\n`)
        const block = Buffer.alloc(64 * 1024, 'x')
        const fill = (): void => {
          while (sent < size) {
            sent += block.length
            if (!peer.socket.write(block)) return
          }
        }
        peer.socket.on('drain', fill)
        fill()
      })
    })
    const listener = new Listener()
    listener.onHead = () => listener.connection?.pause()
    pool.take(listener)
    await sleep(300)
    const before = sent
    await sleep(100)
    t.equal(sent, before)
    t.ok(sent < size / 2, `${sent} bytes under way`)
    listener.connection?.resume()
    await listener.end()
    t.equal(listener.body.length, size)
    t.notMatch(listener.body, /[^x]/, 'no byte is overwritten by a later one')
  })

  t.test('a small request leaves in one write, chunks and trailers included', async t => {
    const packets: string[] = []
    const { pool } = await scene(t, ({ socket }) => socket.on('data', bytes => packets.push(`${bytes}`)))
    const listener = new Listener('PUT / HTTP/1.1\r\n\r\n', { kind: 'chunked', bytes: 0 })
    pool.take(listener)
    await waitUntil('the connection', () => listener.connection)
    listener.connection?.send(Buffer.from('hello'))
    listener.connection?.finish(['X-Late', '1'])
    await waitUntil('the request', () => packets.length > 0)
    t.same(packets, ['PUT / HTTP/1.1\r\n\r\n5\r\nhello\r\n0\r\nX-Late: 1\r\n\r\n'])
  })

  t.test('a body longer or shorter than its Content-Length closes the connection', async t => {
    for (const body of ['hello', 'hello, world']) {
      const { pool, upstream } = await scene(t)
      const listener = new Listener(POST, TEN)
      pool.take(listener)
      await waitUntil('the connection', () => listener.connection)
      listener.connection?.send(Buffer.from(body))
      listener.connection?.finish([])
      t.same((await listener.end()).heard, ['gone'])
      const peer = await upstream.connection(0)
      await waitUntil('the end', () => peer.ended || peer.closed)
      t.notMatch(peer.unread, 'world')
    }
  })
})
