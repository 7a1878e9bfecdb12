/** Makes messages: most well formed, some odd, some hostile. All text is Latin-1: one character is one byte. */
import fc, { type Arbitrary } from 'fast-check'
import {
  CODINGS,
  DATA_ENDS,
  HEAD_ENDS,
  LAST_SIZES,
  LINE_ENDS,
  lengthSpellings,
  METHODS,
  nameSpellings,
  ODD_LINES,
  requestLines,
  sizeSpellings,
  TRAILERS,
} from '../../listen/smuggling/spellings.js'

/** One connection's bytes, and where they are cut. */
export interface Played {
  readonly text: string
  readonly cuts: readonly number[]
  /** Of the request, where an answer is read. */
  readonly method: string
}

/** Mostly `plain`, sometimes one of `odd`. */
const mostly = (plain: Arbitrary<string>, odd: readonly string[], weight = 12): Arbitrary<string> =>
  fc.oneof({ weight, arbitrary: plain }, { weight: 1, arbitrary: fc.constantFrom(...odd) })
const always = (text: string): Arbitrary<string> => fc.constant(text)
const joined = (...parts: Arbitrary<string>[]): Arbitrary<string> =>
  fc.tuple(...parts).map(texts => texts.join(''))
const list = (item: Arbitrary<string>, maxLength: number): Arbitrary<string> =>
  fc.array(item, { maxLength }).map(texts => texts.join(''))
const from = (characters: string, minLength: number, maxLength: number): Arbitrary<string> =>
  fc.string({ unit: fc.constantFrom(...characters), minLength, maxLength })

const TOKEN = "abcXYZ019!#$%&'*+-.^_`|~"
const VALUE = 'aZ0 \t,;:="\\/()<>@[]{}?\xe9\xff\x80'
const BINARY = fc.string({
  unit: fc.integer({ min: 0, max: 255 }).map(code => String.fromCharCode(code)),
  maxLength: 40,
})

const CRLF = mostly(always('\r\n'), LINE_ENDS, 300)
const token = from(TOKEN, 1, 12)
const value = from(VALUE, 0, 20)
const blanks = fc.constantFrom(' ', ' ', ' ', '', '  ', '\t ')
const target = fc.oneof(
  always('/'),
  joined(
    always('/'),
    from('ab0-._~%', 0, 12).map(text => text.replaceAll('%', '%20')),
    fc.constantFrom('', '?', '?a=b&c', '?\xc3\xa9"{}|[]^'),
  ),
  fc.constantFrom('http://a/', 'http://a:80/b?c', 'https://a', 'HTTP://[::1]/'),
)
const line = fc
  .tuple(fc.constantFrom(...METHODS), target, fc.constantFrom('HTTP/1.1', 'HTTP/1.1', 'HTTP/1.1', 'HTTP/1.0'))
  .map(parts => parts.join(' '))
const requestLine = fc.oneof(
  { weight: 8, arbitrary: line },
  {
    weight: 1,
    arbitrary: fc
      .constantFrom(...METHODS)
      .chain(method => fc.constantFrom(...requestLines(method, '/x?y=1'))),
  },
)

const STATUS = [200, 200, 200, 404, 503, 204, 304, 206, 999]
const statusLine = mostly(
  joined(
    fc.constantFrom('HTTP/1.1 ', 'HTTP/1.1 ', 'HTTP/1.0 '),
    fc.constantFrom(...STATUS).map(String),
    fc.constantFrom(' OK', ' ', '', ' caf\xe9 \t!'),
  ),
  [
    ...[
      'HTTP/1.1  200 OK',
      'HTTP/1.1 20 OK',
      'HTTP/1.1 2000 OK',
      'HTTP/1.1 099 OK',
      'HTTP/1.1 000 OK',
      'HTTP/1.1 2x0 OK',
    ],
    ...[
      'HTTP/1.1\t200 OK',
      'HTTP/2.0 200 OK',
      'HTTP/1.2 200 OK',
      'HTTP/0.9 200 OK',
      'http/1.1 200 OK',
      'HTTP/1.1 200 O\0K',
    ],
    ...[
      'HTTP/1.1 200 O\rK',
      'HTTP/1.1 200\tOK',
      'HTTP/1.1 200OK',
      'HTTP/1.1 200 OK ',
      ' HTTP/1.1 200 OK',
      '\r\nHTTP/1.1 200 OK',
    ],
    ...[
      'HTTP/1.1 101 Switching',
      'HTTP/1.1 199 X',
      'ICY 200 OK',
      'HTTP/1.1 +200 OK',
      'HTTP/1.1 -1 OK',
      'HTTP/1.1',
      '',
    ],
  ],
)

/** Lines that say nothing of a message's end. */
const field = fc.oneof(
  { weight: 6, arbitrary: joined(token, always(':'), blanks, value, CRLF) },
  {
    weight: 2,
    arbitrary: joined(
      fc.constantFrom('Host: a', 'Accept: */*', 'Cookie: a=b; c', 'Via: 1.1 x', 'Server: x'),
      CRLF,
    ),
  },
  {
    weight: 2,
    arbitrary: joined(
      fc.constantFrom(
        'Connection: close',
        'Connection: keep-alive',
        'connection: x,  Close',
        'Connection: keep-alive, foo',
      ),
      CRLF,
    ),
  },
  { weight: 1, arbitrary: joined(fc.constantFrom(...ODD_LINES), CRLF) },
)
const head = (first: Arbitrary<string>, framing: Arbitrary<string>): Arbitrary<string> =>
  joined(first, CRLF, list(field, 4), framing, list(field, 1), mostly(always('\r\n'), HEAD_ENDS, 60))

const POISON = 'GET /poison HTTP/1.1\r\nHost: evil\r\n\r\n'
const content = mostly(BINARY, [POISON, '0\r\n\r\n', `0\r\n\r\n${POISON}`, ''], 6)

/** Plain, or with a name, a length or a coding in disguise. */
const lengthOf = (bytes: number): Arbitrary<string> =>
  joined(
    mostly(always('Content-Length'), nameSpellings('Content-Length')),
    always(': '),
    mostly(always(String(bytes)), lengthSpellings(bytes), 8),
    always('\r\n'),
  )
const coding = joined(
  mostly(always('Transfer-Encoding'), nameSpellings('Transfer-Encoding')),
  always(': '),
  mostly(always('chunked'), CODINGS, 8),
  always('\r\n'),
)

const extension = fc.oneof(
  { weight: 12, arbitrary: always('') },
  { weight: 1, arbitrary: joined(always(';'), token, always('='), token) },
  { weight: 1, arbitrary: joined(always(';'), token, always('="'), from('a ;\t\xe9', 0, 8), always('"')) },
  {
    weight: 1,
    arbitrary: joined(fc.constantFrom(';', ' ;', '; ', ';;', '=', ';='), from('ab;=" \t\\', 0, 6)),
  },
)
const chunk = BINARY.filter(data => data !== '').chain(data =>
  joined(
    mostly(always(data.length.toString(16)), sizeSpellings(data.length), 30),
    extension,
    CRLF,
    always(data),
    mostly(always('\r\n'), DATA_ENDS, 40),
  ),
)
const trailers = mostly(list(joined(token, always(': '), value, always('\r\n')), 2), TRAILERS, 4)
const chunks = joined(list(chunk, 4), mostly(always('0'), LAST_SIZES, 20), extension, CRLF, trailers, CRLF)

const behind = fc.constantFrom(
  '',
  '',
  '',
  POISON,
  'GET / HTTP/1.1\r\n\r\n',
  '\r\n',
  '\r\n\r\nGET /b HTTP/1.0\r\n\r\n',
)

const message = (first: Arbitrary<string>): Arbitrary<string> =>
  fc.oneof(
    { weight: 4, arbitrary: joined(head(first, always('')), behind) },
    {
      weight: 5,
      arbitrary: content.chain(body => joined(head(first, lengthOf(body.length)), always(body), behind)),
    },
    { weight: 6, arbitrary: joined(head(first, coding), chunks, behind) },
    { weight: 1, arbitrary: joined(head(first, joined(lengthOf(5), coding)), chunks, behind) },
    { weight: 1, arbitrary: joined(head(first, joined(lengthOf(5), lengthOf(5))), content, behind) },
  )

const STRAY = [
  '\0',
  '\r',
  '\n',
  ' ',
  '\t',
  ':',
  ';',
  ',',
  '0',
  '\x0b',
  '\xff',
  '\x7f',
  '-',
  '\r\n',
  '"',
  '\r\n\r\n',
  '',
]
const stain = fc.record({ at: fc.nat(), text: fc.constantFrom(...STRAY), over: fc.nat(1) })
const stains = fc.oneof(
  { weight: 3, arbitrary: fc.constant([]) },
  { weight: 1, arbitrary: fc.array(stain, { minLength: 1, maxLength: 3 }) },
)

function stained(text: string, list: readonly { at: number; text: string; over: number }[]): string {
  let result = text
  for (const { at, text: stray, over } of list) {
    const place = at % (result.length + 1)
    result = result.slice(0, place) + stray + result.slice(place + over)
  }
  return result
}

const played = (text: Arbitrary<string>): Arbitrary<Played> =>
  fc
    .tuple(text, stains, fc.array(fc.nat(), { maxLength: 4 }), fc.constantFrom('GET', 'GET', 'POST', 'HEAD'))
    .map(([plain, marks, places, method]) => {
      const stainedText = stained(plain, marks)
      const cuts = places.map(place => place % (stainedText.length + 1)).sort((a, b) => a - b)
      return { text: stainedText, cuts, method }
    })

export const requests: Arbitrary<Played> = played(list(message(requestLine), 3))

const interim = mostly(
  always(''),
  ['HTTP/1.1 100 Continue\r\n\r\n', 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n', 'HTTP/1.1 102\r\n\r\n'],
  5,
)
export const answers: Arbitrary<Played> = played(joined(interim, message(statusLine)))
