/** Which of the received bytes are a request, and the facts that are read from it. */
import t, { type Test } from 'tap'
import { GatewayError } from '../../../gateway/errors.js'
import { TrustedProxies } from '../../../gateway/listen/client.js'
import { readFacts } from '../../../gateway/listen/facts.js'
import type { Facts } from '../../../gateway/types.js'
import { credentialIn } from '../../helpers/credentials.js'
import { valuesOf } from '../../helpers/raw.js'
import { listen, reply } from './listener.js'

const settings = (cidrs: string[] = []) => ({
  trusted: new TrustedProxies(cidrs),
  fingerprintHeaders: { ja3: 'x-ja3-fingerprint', ja4: 'x-ja4-fingerprint' },
  credentialIn,
})

/** What the listen room makes of raw request bytes: facts, or the code of the refusal. */
async function heard(t: Test, bytes: string, cidrs?: string[]): Promise<Facts | string> {
  let result: Facts | string | undefined
  const { client } = await listen(t, (req, res) => {
    try {
      result = readFacts(req, settings(cidrs))
    } catch (error) {
      result = error instanceof GatewayError ? error.code : String(error)
    }
    res.closeAfter()
    reply(res)
  })
  const answer = await client.send(bytes).message({ tillClose: true })
  if (result !== undefined) return result
  t.same(valuesOf(answer, 'content-type'), ['application/problem+json'])
  t.same(valuesOf(answer, 'connection'), ['close'])
  return JSON.parse(answer.body).code
}

const request = (fields: string, body = ''): string => `POST /a HTTP/1.1\r\n${fields}\r\n${body}`

t.test('a request that two servers could read differently is refused', async t => {
  for (const [what, bytes, code] of [
    [
      'length beside chunks',
      request('Host: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n', '0\r\n\r\n'),
      /bad-(framing|request)/,
    ],
    [
      'two lengths',
      request('Host: a\r\nContent-Length: 2\r\nContent-Length: 3\r\n', 'abc'),
      /bad-(framing|request)/,
    ],
    [
      'two equal lengths',
      request('Host: a\r\nContent-Length: 2\r\nContent-Length: 2\r\n', 'ab'),
      /bad-(framing|request)/,
    ],
    ['a list of lengths', request('Host: a\r\nContent-Length: 2, 2\r\n', 'ab'), /bad-(framing|request)/],
    ['a signed length', request('Host: a\r\nContent-Length: +2\r\n', 'ab'), /bad-(framing|request)/],
    [
      'a length too large for a number',
      request('Host: a\r\nContent-Length: 18446744073709551618\r\n', 'ab'),
      /bad-(framing|request)/,
    ],
    [
      'an unknown coding',
      request('Host: a\r\nTransfer-Encoding: xchunked\r\n', '0\r\n\r\n'),
      /bad-(framing|request)/,
    ],
    [
      'a coding after chunked',
      request('Host: a\r\nTransfer-Encoding: chunked, gzip\r\n', '0\r\n\r\n'),
      /bad-(framing|request)/,
    ],
    [
      'a coding before chunked',
      request('Host: a\r\nTransfer-Encoding: gzip, chunked\r\n', '0\r\n\r\n'),
      /bad-(framing|request)/,
    ],
    [
      'chunked twice',
      request('Host: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n', '0\r\n\r\n'),
      /bad-(framing|request)/,
    ],
    [
      'chunks in HTTP/1.0',
      'POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      /bad-(framing|request)/,
    ],
    ['no Host', request('X: 1\r\n'), 'bad-host'],
    ['two Hosts', request('Host: a\r\nHost: a\r\n'), 'bad-host'],
    ['an empty Host', request('Host:\r\n'), 'bad-host'],
    ['a Host with a path', request('Host: a/b\r\n'), 'bad-host'],
    ['a Host with a user', request('Host: u@a\r\n'), 'bad-host'],
    ['a Host with two final dots', request('Host: a..\r\n'), 'bad-host'],
    ['a Host with a dot first', request('Host: .a\r\n'), 'bad-host'],
    ['a Host with two ports', request('Host: a:1:2\r\n'), 'bad-host'],
    ['an authority with a user', 'GET http://u@a/ HTTP/1.1\r\nHost: a\r\n\r\n', 'bad-host'],
    ['TRACE', 'TRACE / HTTP/1.1\r\nHost: a\r\n\r\n', 'method-not-allowed'],
    ['CONNECT', 'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n', 'method-not-allowed'],
    ['a blank before the colon', request('Host: a\r\nX : 1\r\n'), 'bad-request'],
    ['a folded line', request('Host: a\r\nX: 1\r\n 2\r\n'), 'bad-request'],
    ['NUL in a value', request('Host: a\r\nX: a\0b\r\n'), 'bad-request'],
    ['a bare CR in a value', request('Host: a\r\nX: a\rb\r\n'), 'bad-request'],
    ['a bare LF', 'GET / HTTP/1.1\nHost: a\n\n', 'bad-request'],
    ['most of the preface of HTTP/2', 'PRI * HTTP/2.0\r\nHost: a\r\n\r\nSM\r\n\r\n', 'bad-request'],
    ['an ambiguous path', 'GET /a%2fb HTTP/1.1\r\nHost: a\r\n\r\n', 'bad-target'],
    ['a head that is too long', request(`Host: a\r\nX: ${'x'.repeat(17_000)}\r\n`), 'header-too-large'],
  ] as const) {
    t.test(what, async t => {
      t.match(await heard(t, bytes), code)
    })
  }
})

t.test('fields behind many others still count', async t => {
  const many = 'a:b\r\n'.repeat(157)
  t.match(
    await heard(
      t,
      request(`Host: a\r\n${many}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n`, '0\r\n\r\n'),
    ),
    /^bad-/,
  )
  t.equal(await heard(t, request(`Host: a\r\n${many}Host: b\r\n`)), 'bad-host')
})

t.test('facts are read from the request, and from forwarded fields only behind a trusted proxy', async t => {
  t.match(await heard(t, 'GET /a/../b?x=1 HTTP/1.1\r\nHost: ACME.localhost.:8080\r\n\r\n'), {
    id: /^[0-9a-f-]{36}$/,
    method: 'GET',
    path: '/b',
    query: '?x=1',
    host: 'acme.localhost',
    client: '127.0.0.1',
    network: '127.0.0.1',
    trusted: false,
    authenticated: false,
  })
  t.match(await heard(t, 'GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n'), { host: '[::1]' })
  t.match(await heard(t, 'GET http://shop:81/ HTTP/1.1\r\nHost: other\r\n\r\n'), { host: 'shop' })
  t.match(await heard(t, 'GET / HTTP/1.0\r\n\r\n'), { host: '' })
  t.match(await heard(t, 'OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n'), { path: '*' })

  const signs =
    'Host: a\r\nX-Forwarded-For: 9.9.9.9\r\nX-JA3-Fingerprint: three\r\nX-JA4-Fingerprint: four\r\n'
  const believed = await heard(t, request(signs), ['127.0.0.1'])
  t.match(believed, { client: '9.9.9.9', trusted: true, ja3: 'three', ja4: 'four' })
  t.match(await heard(t, request(signs)), {
    client: '127.0.0.1',
    trusted: false,
    ja3: undefined,
    ja4: undefined,
  })

  for (const [fields, authenticated] of [
    ['Authorization: Bearer x\r\n', true],
    ['Cookie: a=1; ory_kratos_SESSION=x\r\n', true],
    ['Cookie: a=session; b=1\r\n', false],
    ['Cookie: session\r\n', false],
    ['Cookie: session=\r\n', false],
    ['X-Api-Key: k\r\n', true],
    ['X-Session-Token: t\r\n', true],
    ['Authorization:\r\n', false],
    ['X-Device: d\r\n', false],
  ] as const) {
    t.match(await heard(t, request(`Host: a\r\n${fields}`)), { authenticated }, fields)
  }

  const facts = (await heard(t, request('Host: a\r\nX-A: 1\r\nx-a: 2\r\nAuthorization: secret\r\n'))) as Facts
  t.equal(facts.header('x-a'), '1, 2')
  t.equal(facts.header('constructor'), undefined)
  t.notMatch(JSON.stringify(facts), /secret/, 'facts can be logged without credentials')
})

t.test('an HTTP/1.1 expectation other than 100-continue is refused', async t => {
  t.equal(await heard(t, request('Host: a\r\nExpect: foo\r\n')), 'expectation-failed')
  t.match(await heard(t, 'GET / HTTP/1.0\r\nHost: a\r\nExpect: foo\r\n\r\n'), { path: '/' })
})
