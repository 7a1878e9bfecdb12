/** Heads: most well formed, some odd, some hostile. */
import {
  CODINGS,
  HEAD_ENDS,
  LINE_ENDS,
  lengthSpellings,
  METHODS,
  nameSpellings,
  ODD_LINES,
  requestLines,
} from '../../listen/smuggling/spellings.js'
import { always, joined, madeOf, mostly, oneOf, repeated, type Text, weighed } from './texts.js'

export const CRLF = mostly(always('\r\n'), LINE_ENDS, 300)
export const token = madeOf("abcXYZ019!#$%&'*+-.^_`|~", 1, 12)
export const value = madeOf('aZ0 \t,;:="\\/()<>@[]{}?\xe9\xff\x80', 0, 20)

const path = madeOf('ab0-._~%', 0, 12).map(text => `/${text.replaceAll('%', '%20')}`)
const target = weighed(
  [1, always('/')],
  [2, joined(path, oneOf('', '?', '?a=b&c', '?"{}|[]^\\'))],
  [1, oneOf('http://a/', 'http://a:80/b?c', 'https://a', 'HTTP://[::1]/', '/?\xc3\xa9')],
)
const version = oneOf('HTTP/1.1', 'HTTP/1.1', 'HTTP/1.1', 'HTTP/1.0')

export const requestLine = weighed(
  [8, joined(oneOf(...METHODS), always(' '), target, always(' '), version)],
  [1, oneOf(...METHODS.flatMap(method => requestLines(method, '/x?y=1')))],
)

const STATUS = ['200', '200', '200', '404', '503', '204', '304', '206', '999']
const ODD_STATUS_LINES = `HTTP/1.1  200 OK|HTTP/1.1 20 OK|HTTP/1.1 2000 OK|HTTP/1.1 099 OK|HTTP/1.1 000 OK
|HTTP/1.1 2x0 OK|HTTP/1.1\t200 OK|HTTP/2.0 200 OK|HTTP/1.2 200 OK|HTTP/0.9 200 OK|http/1.1 200 OK|HTTP/1.1 200 O\0K
|HTTP/1.1 200 O\rK|HTTP/1.1 200\tOK|HTTP/1.1 200OK|HTTP/1.1 200 OK | HTTP/1.1 200 OK|\r\n\r\nHTTP/1.1 200 OK
|HTTP/1.1 101 Switching|HTTP/1.1 199 X|HTTP/1.0 100 X|ICY 200 OK|HTTP/1.1 +200 OK|HTTP/1.1 -1 OK|HTTP/1.1|`

export const statusLine = mostly(
  joined(version, always(' '), oneOf(...STATUS), oneOf(' OK', ' ', '', ' caf\xe9 \t!')),
  ODD_STATUS_LINES.replace(/(?<!\r)\n/g, '').split('|'),
)

/** A field line that does not affect where its message ends. */
const field = weighed(
  [6, joined(token, always(':'), oneOf(' ', ' ', ' ', '', '  ', '\t '), value, CRLF)],
  [2, joined(oneOf('Host: a', 'Accept: */*', 'Cookie: a=b; c', 'Via: 1.1 x', 'Server: x'), CRLF)],
  [1, joined(oneOf('Connection: close', 'connection: x,  Close', 'Connection: close, foo'), CRLF)],
  [2, joined(oneOf('Connection: keep-alive', 'connection: Keep-Alive, foo', 'Connection:'), CRLF)],
  [1, joined(oneOf(...ODD_LINES), CRLF)],
)

/** A framing field: plain, or with its name or its value disguised. */
const framing = (name: string, plain: string, spellings: readonly string[]): Text =>
  joined(
    mostly(always(name), nameSpellings(name)),
    always(': '),
    mostly(always(plain), spellings, 8),
    always('\r\n'),
  )

export const lengthOf = (count: number): Text =>
  framing('Content-Length', String(count), lengthSpellings(count))
export const coding = framing('Transfer-Encoding', 'chunked', CODINGS)

/** A complete head: its first line, other fields, and the fields that frame its body. */
export const head = (first: Text, frame: Text): Text =>
  joined(first, CRLF, repeated(field, 4), frame, repeated(field, 1), mostly(always('\r\n'), HEAD_ENDS, 60))
