/** Peeking at the beginning of a body that is forwarded unchanged. */
import t, { type Test } from 'tap'
import { peekBody, tapBody } from '../../../gateway/listen/peek-body.js'
import type { IncomingBody } from '../../../gateway/message.js'
import type { RawPeer } from '../../helpers/raw.js'
import { sleep, waitUntil } from '../../helpers/wait.js'
import { listen } from './listener.js'

/** A body being received, and the client that sends it. */
async function upload(t: Test): Promise<{ source: IncomingBody; client: RawPeer }> {
  let source: IncomingBody | undefined
  const { client } = await listen(t, req => {
    source = req.body
  })
  client.send('POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n')
  return { source: await waitUntil('the request', () => source), client }
}

const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`
const END = '0\r\n\r\n'

function all(body: IncomingBody): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = ''
    body.read({
      onData(bytes) {
        text += bytes
      },
      onEnd: () => resolve(text),
      onAbort: () => reject(new Error('aborted')),
    })
  })
}

const ENOUGH = { take: () => true, giveBack: () => undefined }

t.test('peeking at a short body sees all of it and leaves it readable', async t => {
  const { source, client } = await upload(t)
  client.send(chunk('ab') + chunk('cd') + END)
  const { prefix, isLate, body } = await peekBody(source, 4, 1000, ENOUGH)
  t.equal(String(prefix), 'abcd')
  t.notOk(isLate)
  t.equal(await all(body), 'abcd')
})

t.test('peeking at a long body sees its beginning and leaves all of it readable', async t => {
  const { source, client } = await upload(t)
  client.send(chunk('abcdef'))
  const { prefix, body } = await peekBody(source, 4, 1000, ENOUGH)
  t.equal(String(prefix), 'abcd')
  client.send(chunk('gh') + END)
  t.equal(await all(body), 'abcdefgh')
})

t.test('peeking at a slow body stops at the time limit', async t => {
  const { source, client } = await upload(t)
  client.send(chunk('ab'))
  const { prefix, isLate, body } = await peekBody(source, 100, 50, ENOUGH)
  t.equal(String(prefix), 'ab')
  t.ok(isLate, 'and says so')
  client.send(chunk('cd') + END)
  t.equal(await all(body), 'abcd')
})

t.test('a reader that pauses gets the peeked bytes, and the rest once it resumes', async t => {
  const { source, client } = await upload(t)
  client.send(chunk('abcdef') + chunk('gh') + END)
  const { body } = await peekBody(source, 4, 1000, ENOUGH)
  const seen: string[] = []
  body.read({
    onData(bytes) {
      seen.push(String(bytes))
      body.pause()
    },
    onEnd: () => seen.push('end'),
    onAbort() {},
  })
  await sleep(20)
  const before = seen.length
  t.match(seen.join(''), /^abcdef/)
  t.notOk(seen.includes('end'))
  await waitUntil('the end', () => {
    body.resume()
    return seen.includes('end')
  })
  t.ok(seen.length > before)
  t.equal(seen.join(''), 'abcdefghend')
  t.ok(body.complete)
})

t.test('a client that leaves after the peek aborts the reader', async t => {
  const { source, client } = await upload(t)
  client.send(chunk('abcdef'))
  const { body } = await peekBody(source, 4, 1000, ENOUGH)
  client.reset()
  await t.rejects(all(body), { message: 'aborted' })
})

t.test('peeking stops when there is no more memory for its client, and gives back what it took', async t => {
  const { source, client } = await upload(t)
  let taken = 0
  const memory = {
    take(bytes: number) {
      if (taken + bytes > 5) return false
      taken += bytes
      return true
    },
    giveBack(bytes: number) {
      taken -= bytes
    },
  }
  client.send(chunk('abc'))
  const peek = peekBody(source, 100, 5000, memory)
  await waitUntil('the first piece', () => taken === 3)
  client.send(chunk('def'))
  const { prefix, isLate, body } = await peek
  t.equal(String(prefix), 'abcdef')
  t.ok(isLate)
  t.equal(taken, 0)
  client.send(END)
  t.equal(await all(body), 'abcdef')
})

t.test('a client that leaves during the peek rejects it', async t => {
  const { source, client } = await upload(t)
  client.send(chunk('ab'))
  const peek = peekBody(source, 100, 5000, ENOUGH)
  await sleep(20)
  client.reset()
  await t.rejects(peek, { message: /client left/ })
})

t.test('a tapped body streams on, and its prefix is reported once', async t => {
  const { source, client } = await upload(t)
  const told: string[] = []
  const body = tapBody(source, 4, prefix => told.push(String(prefix)))
  client.send(chunk('abc'))
  await sleep(30)
  t.same(told, [], 'nothing flows before the body is read')
  client.send(chunk('defg') + chunk('h') + END)
  t.equal(await all(body), 'abcdefgh')
  t.same(told, ['abcd'])
})

t.test('a tapped short body is reported when it ends', async t => {
  const { source, client } = await upload(t)
  const told: string[] = []
  const body = tapBody(source, 4, prefix => told.push(String(prefix)))
  client.send(chunk('abcd') + END)
  t.equal(await all(body), 'abcd')
  t.same(told, ['abcd'])
})
