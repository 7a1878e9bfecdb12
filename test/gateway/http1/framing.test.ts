/** Where a message ends (RFC 9112 section 6.3), and whether another may follow it (section 9.3). */
import t from 'tap'
import { isPersistent, requestFraming, responseFraming } from '../../../gateway/http1/framing.js'
import { parseRequestHead } from '../../../gateway/http1/request-head.js'
import { parseResponseHead } from '../../../gateway/http1/response-reader.js'
import { codeOf } from './wire-error.js'

const NONE = { kind: 'none', bytes: 0 }
const CHUNKED = { kind: 'chunked', bytes: 0 }
const TILL_CLOSE = { kind: 'close', bytes: 0 }

const lines = (fields: readonly string[]): string => fields.map(field => `${field}\r\n`).join('')
const request = (fields: readonly string[], version = '1.1') =>
  parseRequestHead(`POST / HTTP/${version}\r\n${lines(fields)}`)
const answer = (status: number, fields: readonly string[], version = '1.1') =>
  parseResponseHead(`HTTP/${version} ${status} X\r\n${lines(fields)}`)

t.test('a message is framed by its length, by chunks, or by neither', async t => {
  t.same(requestFraming(request([])), NONE)
  t.same(requestFraming(request(['Content-Length: 0'])), NONE, 'a zero length frames no body')
  t.same(requestFraming(request(['content-LENGTH: 17'])), { kind: 'length', bytes: 17 })
  t.same(requestFraming(request(['Content-Length: 017'])), { kind: 'length', bytes: 17 })
  t.same(requestFraming(request(['Content-Length: 999999999999999'])), {
    kind: 'length',
    bytes: 999999999999999,
  })
  t.same(requestFraming(request(['Content-Length:\t17 \t'])), { kind: 'length', bytes: 17 })
  t.same(requestFraming(request(['Transfer-Encoding: Chunked'])), CHUNKED)
  t.same(requestFraming(request(['Transfer-Encoding: chunked\t'])), CHUNKED)
  t.same(requestFraming(request(['Content-Length: 5'], '1.0')), { kind: 'length', bytes: 5 })

  t.same(responseFraming(answer(200, []), 'GET'), TILL_CLOSE)
  t.same(responseFraming(answer(200, ['Content-Length: 0']), 'GET'), NONE)
  t.same(responseFraming(answer(200, ['Content-Length: 17']), 'POST'), { kind: 'length', bytes: 17 })
  t.same(responseFraming(answer(404, ['Transfer-Encoding: chunked']), 'GET'), CHUNKED)
  t.same(responseFraming(answer(200, [], '1.0'), 'GET'), TILL_CLOSE)
})

t.test('a response to HEAD, and 1xx, 204 and 304, have no body, whatever their fields say', async t => {
  for (const fields of [[], ['Content-Length: 5'], ['Transfer-Encoding: chunked']]) {
    t.same(responseFraming(answer(200, fields), 'HEAD'), NONE)
    for (const status of [100, 101, 103, 204, 304])
      t.same(responseFraming(answer(status, fields), 'GET'), NONE)
  }
  t.equal(
    codeOf(() => responseFraming(answer(100, [], '1.0'), 'GET')),
    'bad-framing',
    'HTTP/1.0 has no 1xx',
  )
  t.same(responseFraming(answer(205, ['Content-Length: 5']), 'GET'), { kind: 'length', bytes: 5 })
})

t.test('ambiguous framing is refused in requests and responses, with a body or without', async t => {
  const ambiguous: Record<string, readonly string[]> = {
    'length beside chunks': ['Content-Length: 3', 'Transfer-Encoding: chunked'],
    'chunks beside length': ['Transfer-Encoding: chunked', 'Content-Length: 3'],
    'two lengths': ['Content-Length: 2', 'Content-Length: 3'],
    'two equal lengths': ['Content-Length: 2', 'content-length: 2'],
    'three lengths': ['Content-Length: 2', 'X: y', 'content-length: 2', 'Content-Length: 2'],
    'chunked twice': ['Transfer-Encoding: chunked', 'Transfer-Encoding: chunked'],
  }
  const lengths = [
    '2, 2',
    '2,',
    '+2',
    '-2',
    '2.0',
    '2e0',
    '0x2',
    '"2"',
    '2 0',
    '1_0',
    '\xb2',
    '\xa02',
    '',
    '1'.repeat(16),
  ]
  for (const length of lengths) ambiguous[`length ${length}`] = [`Content-Length: ${length}`]
  const codings = [
    'gzip',
    'identity',
    'xchunked',
    'chunked;a',
    'gzip, chunked',
    'chunked, gzip',
    'chunked, chunked',
    ', chunked',
    '"chunked"',
    '',
  ]
  for (const coding of codings) ambiguous[`coding ${coding}`] = [`Transfer-Encoding: ${coding}`]

  for (const [what, fields] of Object.entries(ambiguous)) {
    t.equal(
      codeOf(() => requestFraming(request(fields))),
      'bad-framing',
      what,
    )
    t.equal(
      codeOf(() => responseFraming(answer(200, fields), 'GET')),
      'bad-framing',
      what,
    )
    t.equal(
      codeOf(() => responseFraming(answer(304, fields), 'HEAD')),
      'bad-framing',
      what,
    )
  }
  const old = ['Transfer-Encoding: chunked']
  t.equal(
    codeOf(() => requestFraming(request(old, '1.0'))),
    'bad-framing',
    'chunks in HTTP/1.0',
  )
  t.equal(
    codeOf(() => responseFraming(answer(200, old, '1.0'), 'GET')),
    'bad-framing',
    'chunks in HTTP/1.0',
  )
})

t.test(
  'an HTTP/1.1 connection persists unless told to close, an HTTP/1.0 one only with keep-alive',
  async t => {
    for (const [version, fields, stays] of [
      ['1.1', [], true],
      ['1.1', ['Connection: keep-alive'], true],
      ['1.1', ['Connection: x, y'], true],
      ['1.1', ['Connection: close'], false],
      ['1.1', ['connection: x,  Close'], false],
      ['1.1', ['Connection: keep-alive', 'Connection: close'], false],
      ['1.0', [], false],
      ['1.0', ['Connection: Keep-Alive'], true],
      ['1.0', ['Connection: x', 'Connection: keep-alive'], true],
      ['1.0', ['Connection: keep-alive, close'], false],
      ['1.0', ['Keep-Alive: 300'], false],
    ] as const) {
      const what = `${version} ${fields}`
      t.equal(isPersistent(request(fields, version)), stays, `request ${what}`)
      t.equal(isPersistent(answer(200, fields, version)), stays, `response ${what}`)
    }
  },
)
