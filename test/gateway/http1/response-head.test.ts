/** The head of a response: what is kept as received, and what is rejected as not HTTP/1.1. */
import t from 'tap'
import { parseResponseHead } from '../../../gateway/http1/response-reader.js'
import { allRefused } from './wire-error.js'

t.test('version, status, reason and fields are kept as received', async t => {
  const { version, status, reason, fields } = parseResponseHead(
    'HTTP/1.1 404 Nicht da: caf\xe9\r\nSet-Cookie: a=1\r\nset-cookie: b=2\r\n',
  )
  t.same([version, status, reason], ['1.1', 404, 'Nicht da: caf\xe9'])
  t.same(fields.raw, ['Set-Cookie', 'a=1', 'set-cookie', 'b=2'])
  t.same(fields.names, ['set-cookie', 'set-cookie'])
})

t.test('an empty reason is accepted, with or without the blank before it', async t => {
  t.match(parseResponseHead('HTTP/1.1 200 \r\n'), { status: 200, reason: '' })
  t.match(parseResponseHead('HTTP/1.0 200\r\nA: b\r\n'), { status: 200, reason: '', version: '1.0' })
})

t.test('any three-digit status from 100 is accepted', async t => {
  for (const status of [100, 101, 200, 599, 999]) {
    t.equal(parseResponseHead(`HTTP/1.1 ${status} X\r\n`).status, status)
  }
})

t.test('an invalid status line is refused', async t => {
  allRefused(t, parseResponseHead, {
    'nothing at all': '',
    'a greeting of another protocol': 'SSH-2.0-OpenSSH_9.2\r\n',
    'HTTP/0.9': '<html></html>\r\n',
    'another version': 'HTTP/1.2 200 OK\r\n',
    'HTTP/2': 'HTTP/2 200\r\n',
    'lower case': 'http/1.1 200 OK\r\n',
    'a blank in front': ' HTTP/1.1 200 OK\r\n',
    'no status': 'HTTP/1.1\r\n',
    'two blanks before the status': 'HTTP/1.1  200 OK\r\n',
    'a tab before the status': 'HTTP/1.1\t200 OK\r\n',
    'a status below 100': 'HTTP/1.1 099 OK\r\n',
    'a status of two digits': 'HTTP/1.1 20 OK\r\n',
    'a status of four digits': 'HTTP/1.1 2000 OK\r\n',
    'a signed status': 'HTTP/1.1 +20 OK\r\n',
    'letters in a status': 'HTTP/1.1 2x0 OK\r\n',
    'a tab behind the status': 'HTTP/1.1 200\tOK\r\n',
    'NUL in the reason': 'HTTP/1.1 200 O\0K\r\n',
    'CR in the reason': 'HTTP/1.1 200 O\rK\r\n',
    'LF alone': 'HTTP/1.1 200 OK\n',
    'an invalid field': 'HTTP/1.1 200 OK\r\nA : b\r\n',
  })
})
