/** What a client says about itself does not reach an application behind the gateway, however the names are spelt. */
import t, { type Test } from 'tap'
import type { Http2Wire } from '../../../config/words/words.js'
import { canMakeCertificates, makeCertificate } from '../../helpers/certificates.js'
import { cgiServer } from '../../helpers/cgi.js'
import { type TestGatewayOptions, testGateway } from '../../helpers/gateway.js'
import { type RawMessage, rawClient, rawUpstream } from '../../helpers/raw.js'
import { answerOf, openSession } from '../listen/http2-scene.js'

const MARKS = [..."!#$%&'*+-.^_`|~"]
const NAMES = [
  ...['x-forwarded-for', 'x-forwarded-prefix', 'x-sluice-project', 'x-sluice-new', 'x-real-ip', 'proxy'],
  ...['x-http-method-override', 'x-ja4-fingerprint', 'x-original-url', 'x-rewrite-url', 'true-client-ip'],
  ...['cf-connecting-ip', 'front-end-https', 'x-original-host', 'x-proxyuser-ip'],
]
const FORGED = NAMES.flatMap(name => [...new Set(MARKS.map(mark => name.replaceAll('-', mark)))])

type Ask = (path: string, fields: readonly string[]) => Promise<{ body: string }>

/** A gateway in front of `upstream`, and the two ways to ask it. */
async function asking(t: Test, options: TestGatewayOptions): Promise<Record<string, Ask>> {
  const certificate = makeCertificate(t.testdir(), 'localhost')
  const plain = await testGateway(t, options)
  const overHttp2 = async (http2: Http2Wire): Promise<Ask> => {
    const secure = await testGateway(t, { ...options, tls: certificate, http2 })
    const session = await openSession(t, secure.url, certificate)
    return (path, fields) => {
      const forged = Object.fromEntries(fields.map(name => [name, 'forged']))
      const head = { ':path': path, ':authority': 'acme.localhost', 'x-own': 'kept', ...forged }
      return answerOf(session.request(head))
    }
  }
  return {
    'HTTP/2, own': await overHttp2('own'),
    'HTTP/2, node': await overHttp2('node'),
    async 'HTTP/1.1'(path, fields) {
      const client = await rawClient(Number(new URL(plain.url).port))
      t.teardown(() => client.socket.destroy())
      const lines = fields.map(name => `${name}: forged\r\n`).join('')
      client.send(`GET ${path} HTTP/1.1\r\nHost: acme.localhost\r\nX-Own: kept\r\n${lines}\r\n`)
      return client.message()
    },
  }
}

/** An upstream that answers with the fields of the request, one in a line. */
async function echo(t: Test): Promise<string> {
  const upstream = await rawUpstream(async peer => {
    for (;;) {
      const { fields }: RawMessage = await peer.message()
      const body = fields.map(([name, value]) => `${name}=${value}`).join('\n')
      peer.send(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
    }
  })
  t.teardown(() => upstream.stop())
  return upstream.url
}

if (canMakeCertificates(t)) {
  for (const server of ['php', 'lighttpd'] as const) {
    t.test(`an application behind ${server} sees no forged fact`, async t => {
      const upstream = await cgiServer(t, server)
      if (upstream === undefined) return
      for (const [protocol, send] of Object.entries(await asking(t, { upstream }))) {
        for (let at = 0; at < FORGED.length; at += 60) {
          const { body } = await send('/env.cgi', FORGED.slice(at, at + 60))
          t.match(body, /^HTTP_X_OWN=kept$/m, protocol)
          t.match(body, /^HTTP_X_FORWARDED_FOR=127\.0\.0\.1$/m, protocol)
          t.match(body, /^HTTP_X_SLUICE_PROJECT=acme$/m, protocol)
          t.notMatch(body, /forged/, protocol)
        }
      }
    })
  }

  t.test(
    'fields in which proxies describe a client pass from a trusted proxy, if a setting names them',
    async t => {
      const upstream = await echo(t)
      const names = [
        'cf-connecting-ip',
        'x-original-url',
        'x-edge-region',
        'cf.connecting.ip',
        'x-forwarded-prefix',
      ]
      const proxyHeaders = 'proxyHeaders: [cf-connecting-ip, x-edge-region, x-forwarded-prefix]'
      const trusted = 'trustedProxies: [127.0.0.0/8]'
      for (const [settings, expected] of [
        ['', ['x-edge-region']],
        [trusted, ['x-edge-region']],
        [proxyHeaders, []],
        [`${proxyHeaders}\n${trusted}`, ['cf-connecting-ip', 'x-edge-region', 'x-forwarded-prefix']],
      ] as const) {
        for (const [protocol, send] of Object.entries(await asking(t, { upstream, settings }))) {
          const { body } = await send('/', names)
          const passed = body.split('\n').filter(line => line.endsWith('=forged'))
          t.same(
            passed.map(line => line.replace('=forged', '')),
            expected,
            `${protocol} with ${settings || 'no settings'}`,
          )
        }
      }
    },
  )

  t.test('a caller is served by the fields it is counted by, and by no other spelling of them', async t => {
    const upstream = await cgiServer(t, 'php')
    if (upstream === undefined) return
    const rule = 'id: device, match: [/**], key: ["header:x-device"], missing: skip, reads: true'
    const limits = 'quota: { requests: 500, per: 1m }, mode: enforce, onStoreError: open'
    const options = {
      upstream,
      settings:
        'identify: [{ plugin: api-key, header: x-shop-key }, { plugin: header, header: x-shop }, host]',
      policies: { 'devices.yaml': `version: 1\nkind: volumetric\nrules: [{ ${rule}, ${limits} }]\n` },
    }
    for (const [protocol, send] of Object.entries(await asking(t, options))) {
      for (const name of ['x-device', 'x-shop-key']) {
        const variable = `HTTP_${name.toUpperCase().replaceAll('-', '_')}`
        t.match((await send('/', [name])).body, `${variable}=forged`, protocol)
        const others = MARKS.filter(mark => mark !== '-').map(mark => name.replaceAll('-', mark))
        t.notMatch((await send('/', others)).body, 'forged', `${protocol} ${name}`)
      }
      t.notMatch(
        (await send('/', ['x-shop', 'x.shop'])).body,
        'forged',
        'only a trusted proxy names a project',
      )
    }
  })

  t.test('an upstream’s internal fields never reach a client', async t => {
    const upstream = await rawUpstream(async peer => {
      for (;;) {
        await peer.message()
        peer.send('HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nx-sluice-plan: told\r\n\r\n')
        peer.send('HTTP/1.1 200 OK\r\nX-Sluice-Project: told\r\nTransfer-Encoding: chunked\r\n\r\n')
        peer.send('2\r\nok\r\n0\r\nx_sluice-new: told\r\nX-Late: 1\r\n\r\n')
      }
    })
    t.teardown(() => upstream.stop())
    const certificate = makeCertificate(t.testdir(), 'localhost')
    const { url } = await testGateway(t, { upstream: upstream.url })
    const client = await rawClient(Number(new URL(url).port))
    t.teardown(() => client.socket.destroy())
    client.send('GET / HTTP/1.1\r\nHost: acme.localhost\r\nTE: trailers\r\nConnection: close\r\n\r\n')
    const text = await client.rest()
    t.match(text, /103.*Link: <\/a>.*ok.*X-Late: 1/s)
    t.notMatch(text, /told/)

    const secure = await testGateway(t, { upstream: upstream.url, tls: certificate })
    const session = await openSession(t, secure.url, certificate)
    const stream = session.request({ ':path': '/', ':authority': 'acme.localhost', te: 'trailers' })
    const seen: unknown[] = []
    for (const event of ['headers', 'response', 'trailers'])
      stream.on(event, fields => seen.push({ ...fields }))
    for await (const _ of stream) seen.length
    t.match(JSON.stringify(seen), /103.+x-late/)
    t.notMatch(JSON.stringify(seen), /told/)
  })
}
