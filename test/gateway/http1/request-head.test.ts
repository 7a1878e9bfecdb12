/** The head of a request: what is kept as received, and what is rejected as not HTTP/1.1. */
import t from 'tap'
import { parseRequestHead } from '../../../gateway/http1/request-head.js'
import { allRefused, codeOf } from './wire-error.js'

t.test('method, target, version and fields are kept as received', async t => {
  const { method, target, version, fields } = parseRequestHead(
    'POST /a%2Fb?c=[d]&e="f" HTTP/1.1\r\nHost: a\r\nX-B:  1, 2 \t\r\nx-b:\r\nX-Latin: caf\xe9 \x80\xff\r\n',
  )
  t.same([method, target, version], ['POST', '/a%2Fb?c=[d]&e="f"', '1.1'])
  t.same(fields.raw, ['Host', 'a', 'X-B', '1, 2', 'x-b', '', 'X-Latin', 'caf\xe9 \x80\xff'])
  t.same(fields.names, ['host', 'x-b', 'x-b', 'x-latin'])
  t.equal(fields.get('x-b'), '1, 2, ')
  t.same(parseRequestHead('GET / HTTP/1.0\r\n').fields.raw, [], 'fields are optional')
  t.equal(parseRequestHead('GET / HTTP/1.0\r\n').version, '1.0')
})

t.test('any token is a method, and any run of visible ASCII a target', async t => {
  for (const method of ['get', 'PROPFIND', 'M-SEARCH', '!', "#$%&'*+-.^_`|~"]) {
    t.equal(parseRequestHead(`${method} / HTTP/1.1\r\n`).method, method)
  }
  for (const target of ['*', 'http://a:80/b?c', 'a:80', '//a', '/#', '/\\', `/${'a'.repeat(20_000)}`]) {
    t.equal(parseRequestHead(`GET ${target} HTTP/1.1\r\n`).target, target)
  }
})

t.test('a request line that is not three words with single spaces and a CRLF is refused', async t => {
  allRefused(t, parseRequestHead, {
    'nothing at all': '',
    'an empty line': '\r\n',
    'no target': 'GET HTTP/1.1\r\n',
    'an empty target': 'GET  HTTP/1.1\r\n',
    'no version (HTTP/0.9)': 'GET /\r\n',
    'a space before the method': ' GET / HTTP/1.1\r\n',
    'two spaces before the target': 'GET  / HTTP/1.1\r\n',
    'two spaces behind the target': 'GET /  HTTP/1.1\r\n',
    'a space behind the version': 'GET / HTTP/1.1 \r\n',
    tabs: 'GET\t/\tHTTP/1.1\r\n',
    'a space within the target': 'GET /a b HTTP/1.1\r\n',
    'a fourth word': 'GET / HTTP/1.1 HTTP/1.1\r\n',
    'a method that is no token': 'G(T / HTTP/1.1\r\n',
    'a method in quotes': '"GET" / HTTP/1.1\r\n',
    'a method beyond ASCII': 'G\xcbT / HTTP/1.1\r\n',
    'a target beyond ASCII': 'GET /caf\xe9 HTTP/1.1\r\n',
    'DEL in a target': 'GET /\x7f HTTP/1.1\r\n',
    'NUL in a target': 'GET /\0 HTTP/1.1\r\n',
    'CR in a target': 'GET /\r HTTP/1.1\r\n',
    'LF alone': 'GET / HTTP/1.1\n',
    'CR alone': 'GET / HTTP/1.1\rHost: a\r\n',
    'no line end': 'GET / HTTP/1.1',
    'half a line end': 'GET / HTTP/1.1\r',
  })
})

t.test('only HTTP/1.0 and HTTP/1.1 are accepted', async t => {
  for (const version of ['0.9', '1.2', '1.10', '2.0', '3', '01.1', '1,1', '1.', '']) {
    t.equal(
      codeOf(() => parseRequestHead(`GET / HTTP/${version}\r\n`)),
      'bad-request',
      version,
    )
  }
  allRefused(t, parseRequestHead, {
    'in lower case': 'GET / http/1.1\r\n',
    'the preface of HTTP/2': 'PRI * HTTP/2.0\r\n',
    'another protocol': 'GET / RTSP/1.1\r\n',
  })
})
