/** A look at the beginning of a body that is forwarded unchanged. */
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import type { Readable } from 'node:stream'
import t, { type Test } from 'tap'
import { peekBody, tapBody } from '../../../gateway/listen/body.js'
import { RawPeer } from '../../helpers/raw.js'
import { sleep } from '../../helpers/wait.js'

/** A server whose requests are handed over one by one, and a connection to it. */
async function requestOf(t: Test): Promise<{ req: IncomingMessage; client: RawPeer }> {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = new RawPeer(connect((server.address() as AddressInfo).port, '127.0.0.1'))
  t.teardown(() => {
    client.socket.destroy()
    server.closeAllConnections()
    server.close()
  })
  const arrived = once(server, 'request')
  client.send('POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n')
  const [req] = await arrived
  return { req, client }
}
const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`
const END = '0\r\n\r\n'
async function all(body: Readable): Promise<string> {
  let text = ''
  for await (const bytes of body) text += bytes
  return text
}

t.test('a short body is seen whole and still there', async t => {
  const { req, client } = await requestOf(t)
  client.send(chunk('ab') + chunk('cd') + END)
  const { prefix, body } = await peekBody(req, 4, 1000)
  t.equal(String(prefix), 'abcd')
  t.equal(await all(body), 'abcd')
})

t.test('of a long body the beginning is seen and everything is still there', async t => {
  const { req, client } = await requestOf(t)
  client.send(chunk('abcdef'))
  const { prefix, body } = await peekBody(req, 4, 1000)
  t.equal(String(prefix), 'abcd')
  client.send(chunk('gh') + END)
  t.equal(await all(body), 'abcdefgh')
})

t.test('a slow body is not waited for beyond the time', async t => {
  const { req, client } = await requestOf(t)
  client.send(chunk('ab'))
  const { prefix, body } = await peekBody(req, 100, 50)
  t.equal(String(prefix), 'ab')
  client.send(chunk('cd') + END)
  t.equal(await all(body), 'abcd')
})

t.test('a client that leaves is an error', async t => {
  const { req, client } = await requestOf(t)
  client.send(chunk('ab'))
  const peek = peekBody(req, 100, 5000)
  await sleep(20)
  client.reset()
  await t.rejects(peek, { message: /client left/ })
})

t.test('a tapped body streams on and is told once', async t => {
  const { req, client } = await requestOf(t)
  const told: string[] = []
  const body = tapBody(req, 4, prefix => told.push(String(prefix)))
  client.send(chunk('abc'))
  await sleep(30)
  t.same(told, [], 'nothing flows before somebody reads')
  client.send(chunk('defg') + chunk('h') + END)
  t.equal(await all(body), 'abcdefgh')
  t.same(told, ['abcd'])
})

t.test('a tapped short body is told at its end', async t => {
  const { req, client } = await requestOf(t)
  const told: string[] = []
  const body = tapBody(req, 4, prefix => told.push(String(prefix)))
  client.send(chunk('abcd') + END)
  t.equal(await all(body), 'abcd')
  t.same(told, ['abcd'])
})
