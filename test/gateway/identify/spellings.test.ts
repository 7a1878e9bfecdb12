/** A path under `auth: required` is reached by no other spelling of it. */
import { connect } from 'node:net'
import fc from 'fast-check'
import t from 'tap'
import { testGateway } from '../../helpers/gateway.js'
import { send, startApp } from '../../helpers/http.js'

const CHANGES: readonly ((text: string) => string)[] = [
  text => text.replace('a', '%61'),
  text => text.replace('a', '%41'),
  text => text.toUpperCase(),
  text => text.replaceAll('/', '//'),
  text => `/.${text}`,
  text => `/x/..${text}`,
  text => `/open/%2e%2e${text}`,
  text => text.replace(/\/(?=[^/]*$)/, '/;x=1/'),
  text => text.replace(/\/(?=[^/]*$)/, ';x=1/'),
  text => `${text}/`,
  text => `${text}/..${text}`,
  text => `${text}%00`,
  text => text.replace('/', '/%2f'),
  text => text.replaceAll('/', '\\'),
  text => `${text}?auth=optional`,
  text => `http://other.test${text}`,
  text => `/open/../${text}`,
  text => text.replace('d', '%64').replace('m', '%6D'),
]

t.test('whatever a client writes, the upstream never sees the path without a credential', async t => {
  const seen: string[] = []
  const upstream = await startApp(t, (req, res) => {
    seen.push(req.url as string)
    res.end()
  })
  for (const upstreamSettings of ['', 'pathParameters: refuse', 'caseInsensitivePaths: true']) {
    const gateway = await testGateway(t, {
      upstream,
      ...(upstreamSettings && { upstreamSettings }),
      routes: ['{ path: /admin/**, upstream: app, auth: required }', '{ path: /**, upstream: app }'],
      settings: 'identify: [api-key, host]\nunknownProject: enterprise\n',
    })
    const port = Number(new URL(gateway.url).port)
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom(...CHANGES), { maxLength: 3 }),
        fc.constantFrom('GET', 'POST', 'HEAD', 'OPTIONS'),
        async (changes, method) => {
          const target = changes.reduce((text, change) => change(text), '/admin/users')
          seen.length = 0
          await new Promise<void>(resolve => {
            const socket = connect(port, '127.0.0.1', () =>
              socket.write(
                `${method} ${target} HTTP/1.1\r\nHost: a.test\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`,
              ),
            )
            socket
              .resume()
              .on('error', () => {})
              .on('close', () => resolve())
          })
          return seen.every(url => !readsAsAdmin(url, upstreamSettings))
        },
      ),
      { numRuns: 150 },
    )
  }
})

/** Whether an upstream of this kind would serve what lies under /admin. */
function readsAsAdmin(url: string, kind: string): boolean {
  let path = url.split('?', 1)[0] as string
  if (kind.startsWith('pathParameters')) path = path.replaceAll(/;[^/]*/g, '')
  if (kind.startsWith('caseInsensitive')) path = path.toLowerCase()
  const read = new URL(
    decodeURIComponent(path).replaceAll('\\', '/').replaceAll(/\/+/g, '/'),
    'http://a.test',
  ).pathname
  return /^\/admin(\/|$)/.test(read)
}

t.test('a POST that its upstream serves as another method needs the credential of both routes', async t => {
  const seen: string[] = []
  const upstream = await startApp(t, (req, res) => {
    seen.push(`${req.method} ${req.headers['x-http-method-override']}`)
    res.end()
  })
  const gateway = await testGateway(t, {
    upstream,
    upstreamSettings: 'methodOverride: x-http-method-override',
    routes: [
      '{ path: DELETE /things/**, upstream: app, auth: required }',
      '{ path: GET /things/**, upstream: app }',
      '{ path: POST /things/**, upstream: app }',
    ],
    settings: 'identify: [api-key, host]\nunknownProject: enterprise\n',
  })
  const post = async (method?: string) =>
    (
      await send(`${gateway.url}/things/1`, {
        method: 'POST',
        ...(method && { headers: { 'x-http-method-override': method } }),
      })
    ).status
  t.equal(await post(), 200)
  t.equal(await post('get'), 200)
  t.equal(await post('DELETE'), 401)
  t.equal(await post('delete'), 401)
  t.equal(await post('PATCH'), 404, 'no route has it')
  t.equal(await post('what ever'), 400)
  t.same(seen, ['POST undefined', 'POST get'])
})
