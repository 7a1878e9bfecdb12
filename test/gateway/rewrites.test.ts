/** The upstream gets the path that its route rewrites; limits, and clients, know only the one asked for. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { testGateway } from '../helpers/gateway.js'
import { send, startApp } from '../helpers/http.js'
import { rawClient } from '../helpers/raw.js'

const POLICY = `version: 1
kind: project-limits
buckets: { items: ["/v1/items/**"], others: ["*"] }
limits: [{ for: [{}], quotas: { items: { sustained: 100000 }, others: { sustained: 100000 } } }]
`
const ROUTES = [
  '{ path: /v1/**, upstream: app, stripPrefix: /v1, addPrefix: /internal }',
  '{ path: "/a@b/**", upstream: app, stripPrefix: "/a@b" }',
  '{ path: /**, upstream: app }',
]
const HOST = 'acme.localhost'

async function echoing(t: Test, fields: Record<string, string | string[]> = {}) {
  const upstream = await startApp(t, (req, res) => {
    for (const [name, value] of Object.entries(fields)) res.setHeader(name, value)
    res.end(req.url)
  })
  const gateway = await testGateway(t, { upstream, routes: ROUTES, policies: { 'limits.yaml': POLICY } })
  const ask = (path: string, host = HOST) => send(gateway.url, { path, headers: { host } } as never)
  return { ask }
}

t.test('the upstream gets the rewritten path, with the query and as it was spelt', async t => {
  const { ask } = await echoing(t)
  for (const [path, there] of [
    ['/v1/items?a=/v1/%2F', '/internal/items?a=/v1/%2F'],
    ['/v1', '/internal'],
    ['/v1/', '/internal/'],
    ['//%761/./items%2B', '/internal/items%2B'],
    ['/v1/../v1x', '/v1x'],
    ['/a%40b', '/'],
    ['/a@b/../a%40b//x', '/x'],
  ] as const) {
    t.equal((await ask(path)).body, there, path)
  }
})

t.test('limits and records know the path that was asked for', async t => {
  const { ask } = await echoing(t)
  t.match(String((await ask('/v1/items')).headers['ratelimit-policy']), '"items.sustained"')
  t.match(String((await ask('/internal/items')).headers['ratelimit-policy']), '"others.sustained"')
})

t.test('no spelling of a path gets out of the added prefix, or asks for a second one', async t => {
  const { ask } = await echoing(t)
  const piece = fc.constantFrom('/', '//', '.', '..', '%2e', '%2E%2e', 'v1', 'x', '%40', ';', '%2525', '@')
  const path = fc.array(piece, { maxLength: 8 }).map(pieces => `/v1/${pieces.join('')}`)
  await fc.assert(
    fc.asyncProperty(path, async path => {
      const { body, headers, status } = await ask(path)
      if (status !== 200) return status === 400
      const isRewritten = /^\/internal(\/|$)/.test(body)
      const leaves = new URL(path.replaceAll(/\/{2,}/g, '/'), 'http://x').pathname
      const isClean = !/\/\/|\/\.{1,2}(\/|$)/.test(body)
      return isClean && headers.ratelimit !== undefined && isRewritten === /^\/v1(\/|$)/.test(leaves)
    }),
    { numRuns: 300 },
  )
})

t.test('redirects and cookies of the upstream lead where its clients reach it', async t => {
  const location = async (value: string, path = '/v1/x') => {
    const { ask } = await echoing(t, { location: value })
    return (await ask(path)).headers.location
  }
  t.equal(await location('/internal/login?next=/internal/x#y'), '/v1/login?next=/internal/x#y')
  t.equal(await location(`http://${HOST}/internal/login`), `http://${HOST}/v1/login`)
  t.equal(await location('HTTPS://ACME.localhost/internal?x'), 'HTTPS://ACME.localhost/v1?x')
  t.equal(await location(`http://${HOST}:80/internal/x`), `http://${HOST}:80/v1/x`)
  t.equal(await location(`http://${HOST}./internal/x`), `http://${HOST}./v1/x`)
  t.equal(await location(`https://${HOST}:80/internal/x`), `https://${HOST}:80/internal/x`, 'another port')
  t.equal(await location('https://other.test/internal/x'), 'https://other.test/internal/x')
  t.equal(await location('//other.test/internal/x'), '//other.test/internal/x')
  t.equal(await location('/elsewhere'), '/elsewhere', 'no path of the route')
  t.equal(await location('next'), 'next', 'relative to the path that the client knows')
  t.equal(await location('/login', '/a@b/x'), '/a@b/login')
  t.equal(await location('/login', '/plain'), '/login', 'a route without a rewrite')

  const cookies = ['a=1; Path=/internal; HttpOnly', 'b=2;path=/internal/x', 'c=/internal', 'd=4; Path=/other']
  const { ask } = await echoing(t, { 'set-cookie': cookies })
  t.same((await ask('/v1/x')).headers['set-cookie'], [
    ...['a=1; Path=/v1; HttpOnly', 'b=2;path=/v1/x', 'c=/internal', 'd=4; Path=/other'],
  ])
  const root = await echoing(t, { 'set-cookie': ['a=1; Path=/', '__Host-b=2; Path=/; Secure'] })
  t.same((await root.ask('/a@b/x')).headers['set-cookie'], ['a=1; Path=/a@b', '__Host-b=2; Path=/; Secure'])
  t.same((await root.ask('/plain')).headers['set-cookie'], ['a=1; Path=/', '__Host-b=2; Path=/; Secure'])
})

t.test('a WebSocket is opened at the rewritten path', async t => {
  let asked = ''
  const server = createServer().on('upgrade', (req, socket) => {
    asked = req.url ?? ''
    socket.end('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  const { url } = await testGateway(t, { upstream: `http://127.0.0.1:${port}`, routes: ROUTES })
  const client = await rawClient(Number(new URL(url).port))
  t.teardown(() => client.socket.destroy())
  client.send(
    `GET /v1/chat?x HTTP/1.1\r\nHost: ${HOST}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`,
  )
  t.match((await client.message()).line, /101/)
  t.equal(asked, '/internal/chat?x')
})
