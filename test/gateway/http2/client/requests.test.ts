/** Requests to upstreams that speak HTTP/2, through a whole gateway. */
import t from 'tap'
import { canMakeCertificates } from '../../../helpers/certificates.js'
import { send } from '../../../helpers/http.js'
import { h2cScene, tlsScene } from './upstream.js'

const host = { host: 'acme.localhost' }

t.test('a request arrives as the client sent it, and so does the response', async t => {
  const { gateway } = await h2cScene(t, (stream, headers) => {
    stream.respond({ ':status': 201, 'x-seen': JSON.stringify(headers) })
    stream.end('hello')
  })
  const answer = await send(`${gateway.url}/a%20b?x=1&y=%20`, { headers: { ...host, 'x-a': '1' } })
  t.equal(answer.status, 201)
  t.equal(answer.body, 'hello')
  const seen = JSON.parse(answer.headers['x-seen'] as string)
  t.match(seen, {
    ':method': 'GET',
    ':scheme': 'http',
    ':authority': 'acme.localhost',
    ':path': '/a%20b?x=1&y=%20',
    'x-a': '1',
    'x-sluice-project': 'acme',
  })
  t.equal(seen.host, undefined)
  t.equal(seen.connection, undefined)
})

if (canMakeCertificates(t)) {
  t.test('within TLS, HTTP/2 is negotiated', async t => {
    const { gateway, upstream } = await tlsScene(t, (stream, headers) => {
      stream.respond({ ':status': 200 })
      stream.end(headers[':scheme'])
    })
    for (let i = 0; i < 3; i++) t.equal((await send(`${gateway.url}/`, { headers: host })).body, 'https')
    t.equal(upstream.sessions.length, 1, 'over one connection')
  })
}
