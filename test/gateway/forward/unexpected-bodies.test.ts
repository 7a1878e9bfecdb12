/** Upstreams that send a body where none belongs: it never becomes the response to another request. */
import t, { type Test } from 'tap'
import type { Http2Wire } from '../../../config/words/words.js'
import { canMakeCertificates, makeCertificate } from '../../helpers/certificates.js'
import { testGateway } from '../../helpers/gateway.js'
import { type RawUpstream, rawClient, rawUpstream } from '../../helpers/raw.js'
import { sleep } from '../../helpers/wait.js'
import { answerOf, openSession } from '../listen/http2-scene.js'

const POISON = 'HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison'

/** Answers HEAD, /204 and /304 with a head, and sends a body behind it, after a while, if it `isFaulty`. */
async function upstreamOf(
  t: Test,
  isFaulty: boolean | 'first at once',
  framing: string,
): Promise<RawUpstream> {
  let bodyless = 0
  const upstream = await rawUpstream(async peer => {
    for (;;) {
      const { line } = await peer.head()
      const status = /\/(204|304) /.exec(line)?.[1] ?? '200'
      if (line.startsWith('GET / ')) {
        await sleep(40)
        peer.send('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nright')
      } else {
        const isAtOnce = isFaulty === 'first at once' && bodyless === 0
        bodyless += 1
        peer.send(`HTTP/1.1 ${status} X\r\n${framing}\r\n${isAtOnce ? POISON : ''}`)
        if (isFaulty && !isAtOnce) setTimeout(() => peer.send(POISON), 20)
      }
    }
  })
  t.teardown(() => upstream.stop())
  return upstream
}

type Ask = (method: string, path: string) => Promise<string>

async function http1(t: Test, upstream: string): Promise<Ask> {
  const { url } = await testGateway(t, { upstream })
  return async (method, path) => {
    const client = await rawClient(Number(new URL(url).port))
    t.teardown(() => client.socket.destroy())
    client.send(`${method} ${path} HTTP/1.1\r\nHost: acme.localhost\r\n\r\n`)
    const { line, body } = await client.message({ bodyless: path !== '/' || method === 'HEAD' })
    return `${line.split(' ')[1]} ${body}`.trim()
  }
}

const http2 =
  (wire: Http2Wire) =>
  async (t: Test, upstream: string): Promise<Ask> => {
    const certificate = makeCertificate(t.testdir(), 'localhost')
    const session = await openSession(
      t,
      (await testGateway(t, { upstream, tls: certificate, http2: wire })).url,
      certificate,
    )
    return async (method, path) => {
      const head = { ':method': method, ':path': path, ':authority': 'acme.localhost' }
      const { status, body } = await answerOf(session.request(head))
      return `${status} ${body}`.trim()
    }
  }

if (canMakeCertificates(t)) {
  for (const [protocol, asking] of Object.entries({
    'HTTP/1.1': http1,
    'HTTP/2, own': http2('own'),
    'HTTP/2, node': http2('node'),
  })) {
    for (const [what, framing] of [
      ['a length', `Content-Length: ${POISON.length}\r\n`],
      ['chunks', 'Transfer-Encoding: chunked\r\n'],
    ] as const) {
      t.test(`${protocol}: a late body behind a head that announces ${what} reaches nobody`, async t => {
        const ask = await asking(t, (await upstreamOf(t, true, framing)).url)
        for (const [method, path, expected] of [
          ['HEAD', '/', '200'],
          ['GET', '/204', '204'],
          ['GET', '/304', '304'],
        ] as const) {
          t.equal(await ask(method, path), expected)
          // The first is sent before the wrong body comes, and its response would come after that.
          for (let i = 0; i < 2; i++) {
            t.equal(await ask('GET', '/'), '200 right', `GET after ${method} ${path}`)
          }
        }
      })
    }
  }

  t.test('a late body behind a HEAD whose response announces nothing reaches nobody', async t => {
    const ask = await http1(t, (await upstreamOf(t, true, '')).url)
    t.equal(await ask('HEAD', '/'), '200')
    t.equal(await ask('GET', '/'), '200 right')
  })

  for (const [what, isFaulty] of [
    ['with its head', 'first at once'],
    ['while no request was in progress', true],
  ] as const) {
    t.test(`an upstream caught sending a body ${what} poisons no response after a 204 or 304`, async t => {
      const upstream = await upstreamOf(t, isFaulty, '')
      const ask = await http1(t, upstream.url)
      t.equal(await ask('GET', '/204'), '204')
      await sleep(100)
      for (const [path, expected] of [
        ['/204', '204'],
        ['/304', '304'],
      ] as const) {
        t.equal(await ask('GET', path), expected)
        t.equal(await ask('GET', '/'), '200 right')
      }
    })
  }

  t.test('a connection that stays silent after a response to HEAD is used again', async t => {
    const upstream = await upstreamOf(t, false, 'Content-Length: 1000\r\n')
    const ask = await http1(t, upstream.url)
    await ask('HEAD', '/')
    await ask('GET', '/')
    t.equal(upstream.connections.length, 2)
    await sleep(700)
    await Promise.all([ask('GET', '/'), ask('GET', '/')])
    t.equal(upstream.connections.length, 2, 'both are free again')
  })

  t.test('a connection is used again at once after a 204 or 304 that announces no body', async t => {
    const upstream = await upstreamOf(t, false, '')
    const ask = await http1(t, upstream.url)
    for (const path of ['/204', '/304', '/', '/204']) await ask('GET', path)
    t.equal(upstream.connections.length, 1)
  })

  t.test('a flood of HEAD does not open a connection for each', async t => {
    const upstream = await upstreamOf(t, false, 'Content-Length: 1000\r\n')
    const ask = await http1(t, upstream.url)
    for (let round = 0; round < 7; round += 1) {
      await Promise.all(Array.from({ length: 100 }, () => ask('HEAD', '/')))
    }
    t.ok(upstream.connections.length <= 612, `${upstream.connections.length} connections`)
  })
}
