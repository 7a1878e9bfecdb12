/** Escaped control characters in a path: servers cut paths off there, or trim them away, so no such path is served. */
import type { ClientHttp2Session } from 'node:http2'
import t from 'tap'
import { HTTP2_WIRES } from '../../../config/words/words.js'
import { canMakeCertificates, makeCertificate } from '../../helpers/certificates.js'
import { testGateway } from '../../helpers/gateway.js'
import { send, startApp } from '../../helpers/http.js'
import { ask, openSession } from './http2-scene.js'

const CODES = [...Array.from({ length: 0x20 }, (_, code) => code), 0x7f, 0x80, 0x85, 0x9f]
const ESCAPED = CODES.map(code => encodeURIComponent(String.fromCharCode(code)))
const CASES = ESCAPED.flatMap(escaped => [escaped, escaped.toLowerCase()])

if (canMakeCertificates(t)) {
  t.test('a path with an escaped control character is refused, and `explain` says the same', async t => {
    const upstream = await startApp(t, (_req, res) => res.end())
    const certificate = makeCertificate(t.testdir(), 'localhost')
    const plain = await testGateway(t, { upstream })
    const sessions: ClientHttp2Session[] = []
    for (const http2 of HTTP2_WIRES) {
      const secure = await testGateway(t, { upstream, tls: certificate, http2 })
      sessions.push(await openSession(t, secure.url, certificate))
    }
    const statusOf = async (target: string): Promise<(number | undefined)[]> => {
      const explained = await fetch(`${plain.adminUrl}/explain`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ method: 'GET', target, host: 'acme.localhost' }),
      })
      const { answer } = (await explained.json()) as { answer: { status: number | null } }
      return [
        (await send(plain.url + target, { headers: { host: 'acme.localhost' } })).status,
        ...(await Promise.all(sessions.map(session => ask(session, { ':path': target })))).map(
          ({ status }) => status,
        ),
        answer.status ?? 200,
      ]
    }
    for (const escaped of CASES) t.same(await statusOf(`/a${escaped}`), [400, 400, 400, 400], escaped)
    t.same(await statusOf('/a%20%C2%A0?x=%00%0A'), [200, 200, 200, 200], 'blanks, and escapes in a query')
  })
}
