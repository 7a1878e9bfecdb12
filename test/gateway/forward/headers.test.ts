import t from 'tap'
import { OK, type RawMessage, valuesOf } from '../../helpers/raw.js'
import { answering, type Options, scene } from './gateway.js'

/** The request as the upstream received it. */
async function passed(
  t: Parameters<typeof scene>[0],
  fields: string,
  options: Partial<Options> = {},
): Promise<RawMessage> {
  const { client, upstream } = await scene(t, undefined, options)
  client.send(`GET /x HTTP/1.1\r\nHost: acme.localhost:8080\r\n${fields}\r\n`)
  const peer = await upstream.connection(0)
  return peer.message()
}

/** The response as the client received it. */
async function answered(
  t: Parameters<typeof scene>[0],
  fields: string,
  options: Partial<Options> = {},
): Promise<RawMessage> {
  const { client } = await scene(
    t,
    answering(`HTTP/1.1 200 OK\r\nContent-Length: 2\r\n${fields}\r\nok`),
    options,
  )
  return client.send('GET / HTTP/1.1\r\nHost: a\r\n\r\n').message()
}

t.test('requests', async t => {
  t.test('hop-by-hop fields and those Connection names are not forwarded', async t => {
    const request = await passed(
      t,
      'Connection: keep-alive, X-One\r\nX-One: 1\r\nKeep-Alive: timeout=9\r\nProxy-Connection: keep-alive\r\nTE: trailers\r\nTrailer: x\r\nUpgrade: h2c\r\nX-Two: 2\r\n',
    )
    for (const name of [
      'x-one',
      'keep-alive',
      'proxy-connection',
      'te',
      'trailer',
      'upgrade',
      'http2-settings',
    ]) {
      t.same(valuesOf(request, name), [], name)
    }
    t.same(valuesOf(request, 'x-two'), ['2'])
  })

  t.test('Connection cannot remove what the upstream must see', async t => {
    const { client, upstream } = await scene(t)
    client.send(
      'POST / HTTP/1.1\r\nHost: a\r\nConnection: host, content-length, via, x-forwarded-for, x-sluice-project, forwarded\r\nContent-Length: 2\r\nVia: 1.1 before\r\n\r\nhi',
    )
    const request = await (await upstream.connection(0)).message()
    t.equal(request.body, 'hi')
    t.same(valuesOf(request, 'host'), ['a'])
    t.same(valuesOf(request, 'via'), ['1.1 before', '1.1 sluice'])
    t.same(valuesOf(request, 'x-forwarded-for'), ['127.0.0.1'])
    t.same(valuesOf(request, 'x-sluice-project'), ['acme'])
    t.same(valuesOf(request, 'forwarded'), ['for=127.0.0.1;host="a";proto=http'])
  })

  t.test('order, repeats, letter case and bytes of other fields are kept', async t => {
    const { fields } = await passed(t, 'x-B: 2\r\nX-a: caf\xe9\r\nx-B: 1\r\nCookie: a=1\r\ncookie: b=2\r\n')
    const own = ['x-b', 'x-a', 'cookie']
    t.same(
      fields.filter(([name]) => own.includes(name.toLowerCase())),
      [
        ['x-B', '2'],
        ['X-a', 'caf\xe9'],
        ['x-B', '1'],
        ['Cookie', 'a=1'],
        ['cookie', 'b=2'],
      ],
    )
  })

  t.test('a client cannot set X-Sluice fields, in any spelling', async t => {
    const request = await passed(
      t,
      'X-Sluice-Project: evil\r\nx_sluice_plan: evil\r\nX-Sluice_Environment: evil\r\nx-sluice-request-id: evil\r\nx-sluice-new: evil\r\n',
    )
    t.notMatch(JSON.stringify(request.fields), /evil/)
    t.same(valuesOf(request, 'x-sluice-project'), ['acme'])
    t.same(valuesOf(request, 'x-sluice-plan'), ['growth'])
    t.same(valuesOf(request, 'x-sluice-environment'), ['production'])
    t.matchOnly(valuesOf(request, 'x-sluice-request-id'), [/^[0-9a-f-]{36}$/])
  })

  t.test('forwarded fields of an untrusted peer are replaced', async t => {
    const request = await passed(
      t,
      'X-Forwarded-For: 9.9.9.9\r\nX_Forwarded_For: 9.9.9.9\r\nX-Forwarded-Proto: 9\r\nX-Forwarded-User: 9\r\nForwarded: for=9.9.9.9\r\nX-Real-IP: 9.9.9.9\r\nX-JA3-Fingerprint: 9\r\nx_ja4_fingerprint: 9\r\n',
    )
    t.same(valuesOf(request, 'x-forwarded-for'), ['127.0.0.1'])
    t.same(valuesOf(request, 'x-forwarded-proto'), ['http'])
    t.same(valuesOf(request, 'x-forwarded-host'), ['acme.localhost:8080'])
    t.same(valuesOf(request, 'x-forwarded-port'), ['8080'])
    t.same(valuesOf(request, 'forwarded'), ['for=127.0.0.1;host="acme.localhost:8080";proto=http'])
    for (const name of [
      'x_forwarded_for',
      'x-forwarded-user',
      'x-real-ip',
      'x-ja3-fingerprint',
      'x_ja4_fingerprint',
    ]) {
      t.same(valuesOf(request, name), [], name)
    }
  })

  t.test('forwarded fields of a trusted peer are kept and continued', async t => {
    const request = await passed(
      t,
      'X-Forwarded-For: 9.9.9.9\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: shop.example\r\nX-Forwarded-Port: 443\r\nForwarded: for=9.9.9.9\r\nX-JA3-Fingerprint: abc\r\n',
      { trusted: ['127.0.0.0/8'] },
    )
    t.same(valuesOf(request, 'x-forwarded-for'), ['9.9.9.9, 127.0.0.1'])
    t.same(valuesOf(request, 'x-forwarded-proto'), ['https'])
    t.same(valuesOf(request, 'x-forwarded-host'), ['shop.example'])
    t.same(valuesOf(request, 'x-forwarded-port'), ['443'])
    t.same(valuesOf(request, 'forwarded'), [
      'for=9.9.9.9, for=127.0.0.1;host="acme.localhost:8080";proto=https',
    ])
    t.same(valuesOf(request, 'x-ja3-fingerprint'), ['abc'])
  })

  t.test('an absolute-form target sets Host and never chooses the upstream', async t => {
    const { client, upstream } = await scene(t)
    client.send('GET http://shop.example:81/a?b HTTP/1.1\r\nHost: other\r\n\r\n')
    const request = await (await upstream.connection(0)).message()
    t.equal(request.line, 'GET /a?b HTTP/1.1')
    t.same(valuesOf(request, 'host'), ['shop.example:81'])
  })

  t.test(
    'the path is forwarded without dot segments, its escapes of sub-delimiters and the query as received',
    async t => {
      const { client, upstream } = await scene(t)
      client.send('GET //a/./b/../%63%2c?x=%2f&y=//.. HTTP/1.1\r\nHost: a\r\n\r\n')
      t.equal((await (await upstream.connection(0)).message()).line, 'GET /a/c%2c?x=%2f&y=//.. HTTP/1.1')
    },
  )
})

t.test('responses', async t => {
  t.test('hop-by-hop fields and those Connection names are not forwarded', async t => {
    const answer = await answered(
      t,
      'Connection: X-One\r\nConnection: x-three\r\nX-One: 1\r\nX-Three: 3\r\nKeep-Alive: timeout=9\r\nUpgrade: h2\r\nX-Two: 2\r\n',
    )
    t.same(valuesOf(answer, 'x-one'), [])
    t.same(valuesOf(answer, 'x-three'), [])
    t.same(valuesOf(answer, 'upgrade'), [])
    t.not(valuesOf(answer, 'keep-alive')[0], 'timeout=9')
    t.same(valuesOf(answer, 'x-two'), ['2'])
  })

  t.test('Connection cannot remove the length', async t => {
    t.equal((await answered(t, 'Connection: content-length\r\n')).body, 'ok')
  })

  t.test('repeated fields stay apart and in order', async t => {
    const answer = await answered(
      t,
      'Set-Cookie: a=1\r\nX-A: \xe9\r\nset-cookie: b=2; Expires=Thu, 01 Jan 2026 00:00:00 GMT\r\nVia: 1.1 x\r\n',
    )
    t.same(valuesOf(answer, 'set-cookie'), ['a=1', 'b=2; Expires=Thu, 01 Jan 2026 00:00:00 GMT'])
    t.same(valuesOf(answer, 'x-a'), ['\xe9'])
    t.same(valuesOf(answer, 'via'), ['1.1 x'])
  })

  t.test('the gateway’s fields replace the upstream’s fields of the same name', async t => {
    const answer = await answered(t, 'ratelimit: "theirs";r=1000\r\nRATELIMIT: "more"\r\n', {
      answerFields: ['RateLimit', '"ours";r=1'],
    })
    t.same(valuesOf(answer, 'ratelimit'), ['"ours";r=1'])
  })

  t.test('exposed fields are added to those the upstream exposes', async t => {
    const answer = await answered(t, 'Access-Control-Expose-Headers: X-Total\r\n', {
      answerFields: ['Access-Control-Expose-Headers', 'RateLimit'],
    })
    t.same(valuesOf(answer, 'access-control-expose-headers'), ['X-Total', 'RateLimit'])
  })

  t.test('the upstream’s reason phrase passes', async t => {
    const { client } = await scene(t, answering(OK.replace('200 OK', '299 Quite Fine')))
    t.equal(
      (await client.send('GET / HTTP/1.1\r\nHost: a\r\n\r\n').message()).line,
      'HTTP/1.1 299 Quite Fine',
    )
  })
})
