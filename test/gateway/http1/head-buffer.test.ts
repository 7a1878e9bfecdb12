/** Collecting a head: from pieces of any size, in linear time, within its limit, and only while it can be a head. */
import t from 'tap'
import { HeadBuffer } from '../../../gateway/http1/head-buffer.js'
import { allRefused, codeOf } from './wire-error.js'

const HEAD = 'GET /a HTTP/1.1\r\nHost: caf\xe9\r\nX:\r\n'
const NOTHING = Buffer.alloc(0)
const bytes = (text: string): Buffer => Buffer.from(text, 'latin1')

/** The heads found in `pieces`. */
function gather(pieces: readonly string[], max = 1024): string[] {
  const buffer = new HeadBuffer(max)
  const heads: string[] = []
  for (const piece of pieces) {
    for (let rest = bytes(piece); rest.length > 0; ) {
      const gathered = buffer.add(rest)
      if (gathered !== undefined) heads.push(gathered.head)
      rest = gathered?.rest ?? NOTHING
    }
  }
  return heads
}

t.test('a head is the same wherever it is cut', async t => {
  const text = `${HEAD}\r\n${HEAD}\r\n`
  const expected = [HEAD, HEAD]
  for (let first = 0; first < text.length; first++) {
    const unlike = []
    for (let second = first; second < text.length; second++) {
      const heads = gather([text.slice(0, first), text.slice(first, second), text.slice(second)])
      if (heads.length !== 2 || heads[0] !== HEAD || heads[1] !== HEAD) unlike.push(second)
    }
    t.same(unlike, [], `cut at ${first} and anywhere behind it`)
  }
  t.same(gather([...text]), expected, 'byte by byte')
})

t.test('heads that arrive back to back are read one after the other', async t => {
  const buffer = new HeadBuffer(1024)
  let rest = bytes(`${HEAD}\r\n`.repeat(3) + HEAD)
  for (let i = 0; i < 3; i++) {
    const gathered = buffer.add(rest)
    t.equal(gathered?.head, HEAD)
    rest = gathered?.rest ?? rest
  }
  t.equal(buffer.begun, false)
  t.equal(buffer.add(rest), undefined)
  t.equal(buffer.begun, true)
  t.equal(buffer.add(bytes('\r\n'))?.head, HEAD)
  t.equal(buffer.begun, false, 'no new head has begun after a complete one')
})

t.test('bytes behind a head are not copied', async t => {
  const chunk = bytes(`${HEAD}\r\nbody`)
  const rest = new HeadBuffer(1024).add(chunk)?.rest
  t.equal(rest?.buffer, chunk.buffer)
  t.equal(rest?.toString(), 'body')
})

t.test('a few empty lines before a head are skipped, wherever they are cut', async t => {
  const text = `\r\n\r\n${HEAD}\r\n`
  t.same(gather([text]), [HEAD])
  t.same(gather([...text]), [HEAD])
  t.same(gather(['\r', '\n\r', `\n${HEAD}\r\n\r`, '\n', `${HEAD}\r\n`]), [HEAD, HEAD])
  const waiting = new HeadBuffer(100)
  waiting.add(bytes('\r\n'))
  t.equal(waiting.begun, false, 'empty lines do not begin a head')
  const refused = (text: string): string | undefined => codeOf(() => gather([...text]))
  t.equal(refused('\r\n'.repeat(4)), undefined)
  t.equal(refused('\r\n'.repeat(5)), 'bad-request', 'five empty lines are too many')
  t.equal(refused('\n'), 'bad-request', 'LF alone')
  t.equal(refused('\rG'), 'bad-request', 'CR alone')
})

t.test('bytes that cannot begin a head are refused before it ends', async t => {
  allRefused(t, text => gather([text]), {
    'LF alone': 'GET / HTTP/1.1\n',
    'LF alone behind a field': 'GET / HTTP/1.1\r\nA: b\n',
    'CR alone': 'GET / HTTP/1.1\rA',
    'CR twice': 'GET / HTTP/1.1\r\r\n',
    NUL: 'GET /\0',
    'a TLS ClientHello': '\x16\x03\x01',
  })
  allRefused(t, text => gather([...text]), {
    'LF alone, in its own piece': 'GET / HTTP/1.1\n',
    'CR alone, in its own piece': 'GET / HTTP/1.1\rA',
  })
})

t.test('a head over the limit is refused for the line that passes it', async t => {
  const target = `GET /${'a'.repeat(100)} HTTP/1.1\r\n\r\n`
  const field = `GET / HTTP/1.1\r\nX: ${'a'.repeat(100)}\r\n\r\n`
  for (const cut of [
    (text: string) => [text],
    (text: string) => [...text],
    (text: string) => text.match(/.{1,7}/gs) ?? [],
  ]) {
    t.equal(
      codeOf(() => gather(cut(target), 100)),
      'target-too-long',
    )
    t.equal(
      codeOf(() => gather(cut(field), 100)),
      'header-too-large',
    )
    t.equal(
      codeOf(() => gather(cut(field), field.length - 1)),
      'header-too-large',
      'one byte over the limit',
    )
    t.same(gather(cut(field), field.length), [field.slice(0, -2)], 'exactly the limit')
    t.same(gather(cut(target), target.length), [target.slice(0, -2)])
  }
  t.equal(
    codeOf(() => gather(['x'.repeat(101)], 100)),
    'target-too-long',
    'a line that never ends',
  )
})

t.test('a head without the expected prefix is refused at once', async t => {
  const add = (text: string): unknown => new HeadBuffer(100, 'HTTP/1.').add(bytes(text))
  t.equal(
    codeOf(() => add('SSH-2.0-')),
    'bad-request',
  )
  t.equal(
    codeOf(() => add('HTTP/2')),
    'bad-request',
  )
  t.equal(
    codeOf(() => add('HTTP/1.0')),
    undefined,
  )
  t.match(add('\r\nHTTP/1.1 200\r\n\r\n'), { head: 'HTTP/1.1 200\r\n' })
})

t.test('reading a head byte by byte costs little CPU time', async t => {
  const long = `GET / HTTP/1.1\r\n${`X: ${'a'.repeat(90)}\r\n`.repeat(300)}`
  const started = process.cpuUsage()
  t.same(gather([...`${long}\r\n`], 32 * 1024), [long])
  const { user, system } = process.cpuUsage(started)
  t.ok(user + system < 500_000, `${(user + system) / 1000} ms`)
})
