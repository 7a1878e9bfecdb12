/** Trailer fields, as they appear on the wire on both sides. */
import t, { type Test } from 'tap'
import { RequestFields } from '../../../gateway/forward/request-fields.js'
import { announcedTrailers } from '../../../gateway/forward/trailers.js'
import { fieldsOf } from '../../../gateway/http1/fields.js'
import { cpuMs } from '../../helpers/cpu-time.js'
import { GET, OK } from '../../helpers/raw.js'
import { sleep, waitUntil } from '../../helpers/wait.js'
import { answering, scene } from './gateway.js'

const TRAILERS = 'X-Late: 1\r\nx-sluice-plan: evil\r\nx_sluice_plan: evil\r\nHost: evil\r\nX-Other: 2\r\n'

/** What the upstream gets after the head of a request with these fields; the trailers are always the same. */
async function sentOn(t: Test, fields: string): Promise<string> {
  const { client, upstream } = await scene(t)
  client.send(
    `POST / HTTP/1.1\r\nHost: a\r\n${fields}Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n${TRAILERS}\r\n`,
  )
  const peer = await upstream.connection(0)
  await peer.head()
  await waitUntil('the end of the body', () => /\r\n0\r\n(?:.+\r\n)*\r\n$/.test(peer.unread))
  const { unread } = peer
  peer.unread = ''
  peer.send(OK)
  t.equal((await client.message()).body, 'ok')
  client.send(GET)
  t.match((await peer.head()).line, /^GET/, 'the next request is read correctly')
  return unread
}

t.test('request trailers', async t => {
  t.test('are forwarded when announced, except those for framing, routing or the gateway', async t => {
    t.equal(
      await sentOn(t, 'Trailer: x-late, Host\r\nTrailer: x-sluice-plan, x_sluice_plan\r\n'),
      '2\r\nhi\r\n0\r\nX-Late: 1\r\n\r\n',
    )
  })

  t.test('cost little CPU time, however many are sent and announced', async t => {
    const names = Array.from({ length: 4_000 }, (_, i) => `x${i}`)
    const head = fieldsOf(['Trailer', names.join(',')])
    const heads = new RequestFields({
      fingerprintHeaders: { ja3: 'a', ja4: 'b' },
      proxyHeaders: [],
      methodOverride: undefined,
    })
    const trailers = names.flatMap(name => [name, ''])
    const took = await cpuMs(() => t.equal(announcedTrailers(trailers, head, heads).length, 8_000))
    t.ok(took < 100, `${took} ms`)
  })

  t.test('are not forwarded unannounced', async t => {
    t.equal(await sentOn(t, ''), '2\r\nhi\r\n0\r\n\r\n')
  })
})

t.test('response trailers', async t => {
  const chunks = '2\r\nhi\r\n0\r\nX-Late: 1\r\nSet-Cookie: a=b\r\nRateLimit: "a";r=9\r\n\r\n'
  const answer = `HTTP/1.1 200 OK\r\nTrailer: X-Late\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}`
  for (const [what, fields, end] of [
    [
      'reach a client that accepts them, except fields that belong in a head',
      'TE: trailers\r\n',
      'X-Late: 1\r\n\r\n',
    ],
    ['do not reach another client', '', ''],
  ] as const) {
    t.test(what, async t => {
      const { client } = await scene(t, answering(answer))
      client.send(`GET / HTTP/1.1\r\nHost: a\r\n${fields}\r\n`)
      await client.head()
      await waitUntil('the body', () => client.unread.includes('hi'))
      await sleep(30)
      t.equal(client.unread, end === '' ? 'hi' : `2\r\nhi\r\n0\r\n${end}`)
    })
  }
})
