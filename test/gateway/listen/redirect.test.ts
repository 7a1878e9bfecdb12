/** The port beside TLS: where clients of plain HTTP are sent, and what is refused instead. */
import t, { type Test } from 'tap'
import { GatewayError } from '../../../gateway/errors.js'
import { redirectHandlers } from '../../../gateway/listen/redirect.js'
import { createListener } from '../../../gateway/listen/server.js'
import { canMakeCertificates, makeCertificate } from '../../helpers/certificates.js'
import { freePort } from '../../helpers/child-server.js'
import { testGateway } from '../../helpers/gateway.js'
import { send } from '../../helpers/http.js'
import { rawClient, valuesOf } from '../../helpers/raw.js'
import { wideDoor } from './connection-cap.js'
import { reply } from './listener.js'

const TOKEN = 'evaGxfADs6pSRb2LAv9IZf17Dt3juxGJ-PCt92wr-oA'

/** `ask` sends the bytes of a request: its status, and where it leads or what it says. */
async function start(t: Test, tlsPort = 443) {
  const asked: string[] = []
  const listener = createListener(
    redirectHandlers({
      port: () => tlsPort,
      async challenge(token) {
        asked.push(token)
        return token === TOKEN ? `${TOKEN}.thumbprint` : undefined
      },
      reject: (_req, res, code) => reply(res, code, new GatewayError(code).code === 'internal' ? 500 : 400),
      refused() {},
      failed() {},
    }),
    wideDoor(),
  )
  const { port } = await listener.start('127.0.0.1', 0)
  t.teardown(() => listener.drain(0))
  const ask = async (request: string) => {
    const client = await rawClient(port)
    const answer = await client.send(request).message()
    client.socket.destroy()
    const [, status = ''] = answer.line.split(' ')
    const [location = answer.body] = valuesOf(answer, 'location')
    return `${status} ${location}`
  }
  return { ask, asked }
}

const get = (target: string, ...fields: string[]) =>
  `${[`GET ${target} HTTP/1.1`, ...fields].join('\r\n')}\r\n\r\n`

t.test('host, path and query are kept as they are spelt', async t => {
  const { ask } = await start(t)
  for (const [target, host, location] of [
    ['/', 'api.acme.test', 'https://api.acme.test/'],
    ['/v1/a%2Cb/?q=%20&x', 'API.acme.test', 'https://api.acme.test/v1/a%2Cb/?q=%20&x'],
    ['/a', 'api.acme.test:80', 'https://api.acme.test/a'],
    ['/a', '[::1]:8080', 'https://[::1]/a'],
    ['//evil.example/..', 'api.acme.test', 'https://api.acme.test//evil.example/..'],
    ['http://shop.test?q', 'api.acme.test', 'https://shop.test/?q'],
    ['http://shop.test/a', 'api.acme.test', 'https://shop.test/a'],
  ] as const) {
    t.equal(await ask(get(target, `Host: ${host}`)), `308 ${location}`, `${target} at ${host}`)
  }
  const post = 'POST /a HTTP/1.1\r\nHost: a.test\r\nContent-Length: 2\r\n\r\nhi'
  t.equal(await ask(post), '308 https://a.test/a', 'a request with a body')
  const upgrade = get('/ws', 'Host: a.test', 'Connection: upgrade', 'Upgrade: websocket')
  t.match(await ask(upgrade), /^308 https:\/\/a\.test\/ws/, 'a WebSocket')
})

t.test('a port in the host becomes that of the TLS port', async t => {
  const { ask } = await start(t, 8443)
  t.equal(await ask(get('/a', 'Host: a.test:8080')), '308 https://a.test:8443/a')
  t.equal(await ask(get('/a', 'Host: a.test')), '308 https://a.test/a')
})

t.test('a request that does not say its host leads nowhere', async t => {
  const { ask } = await start(t)
  for (const fields of [
    [],
    ['Host: '],
    ['Host: a.test', 'Host: b.test'],
    ['Host: a.test/evil'],
    ['Host: user@evil.example'],
    ['Host: a.test\\evil'],
  ]) {
    t.match(await ask(get('/', ...fields)), /^400 /, fields.join())
  }
  t.match(await ask('GET / HTTP/1.0\r\n\r\n'), /^400 /, 'HTTP/1.0')
  t.match(await ask(get('/\xff%0d%0aSet-Cookie:a=b', 'Host: a.test')), /^400 /, 'a field in the path')
  t.match(await ask(get('/?a\xe2\x80\xa8', 'Host: a.test')), /^400 /, 'bytes in the query')
  t.match(await ask(get('http://user@evil.example/', 'Host: a.test')), /^400 /, 'user information')
})

t.test('only the address of a challenge that is under way has an answer', async t => {
  const { ask, asked } = await start(t)
  const at = (token: string) => ask(get(`/.well-known/acme-challenge/${token}`, 'Host: a.test'))
  t.equal(await at(TOKEN), `200 ${TOKEN}.thumbprint`)
  t.match(await at('other'), /^308 /)
  t.same(asked.splice(0), [TOKEN, 'other'])
  for (const token of ['', '..', '../../etc/passwd', 'a/b', '%2e%2e', `${TOKEN}.`, 'x'.repeat(129)]) {
    t.match(await at(token), /^(308|400) /, token)
  }
  t.same(asked, [], 'which is no token is not looked for')
})

if (canMakeCertificates(t)) {
  t.test('a gateway redirects from its second port to its first, and stops with it', async t => {
    const plain = await freePort()
    const gateway = await testGateway(t, {
      upstream: 'http://127.0.0.1:9',
      tls: makeCertificate(t.testdir(), 'one'),
      limits: `redirectHttp: ${plain}`,
    })
    const url = `http://127.0.0.1:${plain}/a?b`
    const { status, headers } = await send(url, { agent: false })
    t.equal(status, 308)
    t.equal(headers.location, `${gateway.url}/a?b`)
    const refused = await send(url, { headers: { host: 'a/b' }, agent: false })
    t.match(refused.json(), { status: 400, code: 'bad-host' })
    await gateway.drain()
    await t.rejects(send(url), { code: 'ECONNREFUSED' })
  })
}
