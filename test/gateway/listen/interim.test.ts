/** Interim responses, and final responses that come early, on both sides of a whole gateway. */
import t from 'tap'
import { GET, OK, valuesOf } from '../../helpers/raw.js'
import { sleep } from '../../helpers/wait.js'
import { createWire } from './wire.js'

const wire = await createWire(t)

t.test('interim responses', async t => {
  const HINTS = 'HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\nConnection: x-hop\r\nX-Hop: 1\r\n\r\n'

  t.test('a 103 reaches an HTTP/1.1 client before the response, without hop-by-hop fields', async t => {
    const client = await wire.answered(t, HINTS + HINTS + OK)
    client.send(GET)
    for (let i = 0; i < 2; i++) {
      const hints = { ...(await client.head()), body: '' }
      t.equal(hints.line, 'HTTP/1.1 103 Early Hints')
      t.same([valuesOf(hints, 'link'), valuesOf(hints, 'x-hop')], [['</a>; rel=preload'], []])
    }
    t.equal((await client.message()).body, 'ok')
  })

  t.test('a 103 does not reach an HTTP/1.0 client', async t => {
    const client = await wire.answered(t, HINTS + OK)
    client.send('GET / HTTP/1.0\r\nHost: a\r\n\r\n')
    t.match((await client.message()).line, / 200 /)
  })

  t.test('a 103 arrives after the response to the request before its own', async t => {
    const client = await wire.answered(t)
    wire.play(async peer => {
      for (;;) {
        const { line } = await peer.message()
        if (line.includes('/slow')) await sleep(60)
        peer.send(line.includes('/slow') ? OK : HINTS + OK)
      }
    })
    client.send('GET /slow HTTP/1.1\r\nHost: a\r\n\r\nGET /hinted HTTP/1.1\r\nHost: a\r\n\r\n')
    t.match((await client.message()).line, / 200 /)
    t.match((await client.head()).line, / 103 /)
    t.match((await client.message()).line, / 200 /)
    t.equal(client.unread, '')
  })

  t.test('a 100 never arrives inside the previous response', async t => {
    const client = await wire.answered(t)
    wire.play(async peer => {
      for (;;) {
        const { line } = await peer.message()
        if (line.includes('/slow')) await sleep(60)
        peer.send(OK)
      }
    })
    client.send('GET /slow HTTP/1.1\r\nHost: a\r\n\r\n')
    client.send(`POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nhi${GET}`)
    t.equal((await client.message()).body, 'ok')
    t.equal((await client.head()).line, 'HTTP/1.1 100 Continue')
    t.equal((await client.message()).body, 'ok')
    t.equal((await client.message()).body, 'ok', 'the connection persists')
  })

  t.test('a GET that expects 100-continue gets it, and the connection persists', async t => {
    const client = await wire.answered(t)
    client.send(`GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n${GET}`)
    t.match((await client.head()).line, / 100 /)
    for (let i = 0; i < 2; i++) t.equal((await client.message()).body, 'ok')
  })
})

t.test('a response that comes before the upload ends arrives whole', async t => {
  const client = await wire.answered(t)
  wire.play(async peer => {
    await peer.head()
    peer.send('HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno')
  })
  client.send(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${32 * 1024 * 1024}\r\n\r\n`)
  let sent = 0
  const pour = (): void => {
    while (!client.ended && !client.closed && sent < 32) {
      sent += 1
      if (!client.socket.write(Buffer.alloc(1024 * 1024))) return
    }
  }
  client.socket.on('drain', pour)
  pour()
  const answer = await client.message()
  t.same([answer.line, answer.body], ['HTTP/1.1 413 Content Too Large', 'no'])
  t.same(valuesOf(answer, 'connection'), ['close'])
  t.equal(client.error, undefined)
})
