/** Bodies: exactly their bytes, however these are cut, with bounds on everything that is not content. */
import t from 'tap'
import { BodyDecoder } from '../../../gateway/http1/body-decoder.js'
import type { Framing } from '../../../gateway/http1/message.js'
import { allRefused, codeOf } from './wire-error.js'

const CHUNKED: Framing = { kind: 'chunked', bytes: 0 }
const TILL_CLOSE: Framing = { kind: 'close', bytes: 0 }
const length = (bytes: number): Framing => ({ kind: 'length', bytes })

interface Heard {
  body: string
  /** Undefined until the body has ended. */
  trailers: readonly string[] | undefined
  rest: string
  ends: number
}

function hear(framing: Framing): { decoder: BodyDecoder; heard: Heard; push(text: string): void } {
  const heard: Heard = { body: '', trailers: undefined, rest: '', ends: 0 }
  const decoder = new BodyDecoder(framing, {
    onData: chunk => {
      if (chunk.length === 0) throw new Error('an empty piece of content')
      heard.body += chunk.toString('latin1')
    },
    onEnd: trailers => {
      heard.trailers = trailers
      heard.ends++
    },
  })
  return {
    decoder,
    heard,
    push: text => {
      heard.rest += decoder.push(Buffer.from(text, 'latin1')).toString('latin1')
    },
  }
}

function decode(framing: Framing, pieces: readonly string[]): Heard {
  const { heard, push } = hear(framing)
  for (const piece of pieces) push(piece)
  return heard
}

const chunked = (text: string): Heard => decode(CHUNKED, [text])

t.test(
  'a body decodes to the same bytes wherever it is cut, and the bytes behind it are handed back',
  async t => {
    for (const [framing, text, body, trailers] of [
      [length(5), 'helloGET', 'hello', []],
      [CHUNKED, '5\r\nhello\r\n0\r\n\r\nGET', 'hello', []],
      [
        CHUNKED,
        '2;a=b;c="\\"d;"\r\nhe\r\n03;x\r\nllo\r\n000;y\r\nX-T: \xe9\r\nU:\r\n\r\nGET',
        'hello',
        ['X-T', '\xe9', 'U', ''],
      ],
      [CHUNKED, 'A\r\n0\r\n\r\nGET /\r\n0\r\n\r\nGET', '0\r\n\r\nGET /', []],
      [CHUNKED, '0\r\n\r\nGET', '', []],
    ] as const) {
      const expected = { body, trailers, rest: 'GET', ends: 1 }
      t.same(decode(framing, [text]), expected, text)
      t.same(decode(framing, [...text]), expected, 'byte by byte')
      for (let at = 1; at < text.length; at++)
        t.same(decode(framing, [text.slice(0, at), text.slice(at)]), expected)
    }
  },
)

t.test('content is passed on without being copied', async t => {
  const chunk = Buffer.from('5\r\nhello\r\n0\r\n\r\n')
  const whole = Buffer.from('hello')
  const pieces: Buffer[] = []
  const sink = { onData: (piece: Buffer) => pieces.push(piece), onEnd: () => undefined }
  new BodyDecoder(CHUNKED, sink).push(chunk)
  new BodyDecoder(length(5), sink).push(whole)
  t.equal(pieces[0]?.buffer, chunk.buffer)
  t.equal(pieces[1], whole, 'a chunk that is nothing but content is passed on as it is')
})

t.test('a message without a body produces no body events', async t => {
  const { decoder, heard, push } = hear({ kind: 'none', bytes: 0 })
  t.equal(decoder.done, true)
  push('GET')
  t.same(heard, { body: '', trailers: undefined, rest: 'GET', ends: 0 })
})

t.test('the end of a connection completes only a body delimited by it', async t => {
  const open = hear(TILL_CLOSE)
  open.push('hel')
  open.push('lo')
  t.equal(open.decoder.done, false)
  t.equal(open.decoder.end(), true)
  t.same(open.heard, { body: 'hello', trailers: [], rest: '', ends: 1 })
  t.equal(open.decoder.done, true)

  for (const [framing, text] of [
    [length(5), 'hell'],
    [CHUNKED, ''],
    [CHUNKED, '5'],
    [CHUNKED, '5\r\nhello'],
    [CHUNKED, '5\r\nhello\r\n'],
    [CHUNKED, '0\r\n'],
    [CHUNKED, '0\r\nX: y\r\n'],
  ] as const) {
    const { decoder, heard, push } = hear(framing)
    push(text)
    t.equal(decoder.end(), false, text)
    t.equal(heard.ends, 0)
  }
  const over = hear(length(5))
  over.push('hello')
  t.equal(over.decoder.end(), true, 'a connection that ends after a complete body is no fault')
  t.equal(over.heard.ends, 1)
})

t.test('an invalid chunk is refused, whole and byte by byte', async t => {
  const broken: Record<string, string> = {
    'no size': '\r\nhello',
    'a size that is not hex': 'g\r\n',
    'a sign': '+5\r\n',
    'a prefix': '0x5\r\n',
    'a blank before the size': ' 5\r\n',
    'a blank behind the size': '5 \r\n',
    'a size too large for a number': '10000000000000005\r\n',
    'endless leading zeros': `${'0'.repeat(14)}5\r\n`,
    'LF alone behind the size': '5\nhello\r\n',
    'CR alone behind the size': '5\rhello',
    'an extension without a name': '5;\r\n',
    'an extension with a blank': '5; a\r\n',
    'a blank before an extension': '5 ;a\r\n',
    'an extension without its value': '5;a=\r\n',
    'an extension with LF': '5;a\n',
    'a quoted value with LF': '5;a="\n"\r\n',
    'a quoted value with CRLF': '5;a="\r\n"\r\n',
    'an escaped CR': '5;a="\\\r"\r\n',
    'an open quote': '5;a="b\r\n',
    'text behind a quote': '5;a="b"c\r\n',
    'an extension beyond ASCII': '5;\xff\r\n',
    NUL: '5;a\0\r\n',
    'more content than the size': '5\r\nhello!\r\n',
    'LF alone behind the content': '5\r\nhello\n',
    'CR alone behind the content': '5\r\nhello\r0',
    'LF alone behind the last chunk': '0\n\r\n',
    'LF alone at the end': '0\r\n\n',
    'CR alone at the end': '0\r\n\rG',
  }
  allRefused(t, chunked, broken, 'bad-framing')
  allRefused(t, text => decode(CHUNKED, [...text]), broken, 'bad-framing')
})

t.test('trailers are kept apart from the head, and invalid ones are refused', async t => {
  t.same(chunked('0\r\nHost: evil\r\nX:  y \r\n\r\n').trailers, ['Host', 'evil', 'X', 'y'])
  allRefused(
    t,
    chunked,
    {
      'a fold': '0\r\n a\r\n\r\n',
      'a fold behind a field': '0\r\nX: y\r\n z\r\n\r\n',
      'no colon': '0\r\nx\r\n\r\n',
      'a blank before the colon': '0\r\nX : y\r\n\r\n',
      'LF alone': '0\r\nX: y\n',
      NUL: '0\r\nX: \0\r\n\r\n',
      'a length': '0\r\nContent-Length: 10\r\n\r\n',
      'a coding': '0\r\ntransfer-encoding: chunked\r\n\r\n',
    },
    'bad-framing',
  )
})

t.test('extensions and trailers are bounded', async t => {
  t.equal(chunked(`5;${'e'.repeat(1000)}\r\nhello\r\n0\r\n\r\n`).body, 'hello')
  t.equal(
    codeOf(() => chunked(`5;${'e'.repeat(1100)}`)),
    'bad-framing',
  )
  t.equal(
    codeOf(() => chunked(`5${';e'.repeat(600)}`)),
    'bad-framing',
  )
  t.equal(chunked(`0\r\nX: ${'y'.repeat(10_000)}\r\n\r\n`).trailers?.[1]?.length, 10_000)
  t.equal(
    codeOf(() => chunked(`0\r\nX: ${'y'.repeat(17_000)}`)),
    'bad-framing',
  )
  t.equal(
    codeOf(() => chunked(`0\r\n${'X: y\r\n'.repeat(3000)}`)),
    'bad-framing',
  )
  t.equal(chunked(`0\r\n${'X: y\r\n'.repeat(64)}\r\n`).trailers?.length, 128)
  t.equal(
    codeOf(() => chunked(`0\r\n${'X: y\r\n'.repeat(65)}\r\n`)),
    'bad-framing',
    'each field takes far more memory than its bytes',
  )
})

t.test('a chunk may be as large as a number can hold', async t => {
  const { heard, push } = hear(CHUNKED)
  push('fffffffffffff\r\nhello')
  t.equal(heard.body, 'hello')
  t.equal(heard.trailers, undefined)
})
