/** Redirects and fixed answers of routes: given by the gateway, after credentials and limits. */
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { testGateway } from '../helpers/gateway.js'
import { send } from '../helpers/http.js'
import { rawClient } from '../helpers/raw.js'

const HOST = 'acme.localhost'
const POLICY = `version: 1
kind: project-limits
buckets: { few: ["/few"], all: ["*"] }
limits: [{ for: [{}], quotas: { few: { sustained: 1 }, all: { sustained: 100000 } } }]
`
/** A value as it is written. */
const $ = (name: string) => `\${${name}}`
const ROUTES = [
  '{ host: old.test, path: /**, redirect: { to: "https://new.test{path}" } }',
  `{ host: "*.old.test", path: /**, redirect: { to: "https://${$('host')}{path}", status: 301 } }`,
  `{ path: /moved/**, redirect: { to: "/to/${$('project.id')}${$('path')}", status: 302 } }`,
  `{ path: /tls/**, redirect: { to: "https://${$('host')}{path}" } }`,
  '{ path: /robots.txt, respond: { body: "User-agent: *\\nDisallow: /\\n" } }',
  '{ path: /few, respond: { status: 200, type: application/json, body: "{}" }, headers: { response: { set: { x-own: "1", content-type: text/json }, add: { vary: X } } } }',
  '{ path: /gone/**, respond: { status: 410 } }',
  `{ path: /login/**, redirect: { to: "/sign-in?next={path}&for=${$('path')}#${$('path')}", status: 302 } }`,
  '{ path: /nothing, respond: { status: 204 } }',
  '{ path: /private, respond: { body: secret }, auth: required }',
  '{ path: "DELETE /ADMIN/**", respond: { status: 403 } }',
  '{ path: /**, upstream: app }',
]

async function answering(t: Test, settings = '') {
  // Nothing listens there: whatever reaches the upstream fails.
  const gateway = await testGateway(t, {
    upstream: 'http://127.0.0.1:1',
    upstreamSettings: 'caseInsensitivePaths: true, methodOverride: x-http-method-override',
    routes: ROUTES,
    policies: { 'limits.yaml': POLICY },
    settings: `identify: [host, api-key]\nlog: { decisions: all }\n${settings}`,
  })
  const ask = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
    send(gateway.url, { path, method, headers: { host: HOST, ...headers } } as never)
  return { gateway, ask }
}

t.test('a redirect keeps path and query as they were asked for', async t => {
  const { ask } = await answering(t)
  const to = async (host: string, path: string) => {
    const { status, headers, body } = await ask(path, { host })
    return [status, headers.location, body, headers['content-length']]
  }
  t.same(await to('old.test', '/a%2Bb/?x=%2F&y'), [308, 'https://new.test/a%2Bb/?x=%2F&y', '', '0'])
  t.same(await to('Old.test.:8080', '//evil.test/x'), [308, 'https://new.test/evil.test/x', '', '0'])
  t.same(await to('a.old.test:81', '/x'), [301, 'https://a.old.test/x', '', '0'])
  t.same(await to(HOST, '/moved/x?y'), [302, '/to/acme/moved/x', '', '0'])
  t.equal(
    (await to(HOST, '/login/a&b=c?d&e=%2F'))[1],
    '/sign-in?next=%2Flogin%2Fa%26b%3Dc%3Fd%26e%3D%252F&for=%2Flogin%2Fa%26b%3Dc#%2Flogin%2Fa%26b%3Dc',
    'in a query, nothing of a request is a parameter of its own',
  )
})

t.test('no path leads a redirect to another host, or ends its line', async t => {
  const { ask } = await answering(t)
  const piece = fc.oneof(
    fc.constantFrom(
      '/',
      '//',
      '@',
      ':',
      '%40',
      '%0d%0a',
      '%5C',
      '..',
      '.',
      '?',
      '#',
      '%2F',
      'evil.test',
      ';',
    ),
    fc.string({ maxLength: 3 }).map(encodeURI),
  )
  const path = fc.array(piece, { maxLength: 8 }).map(pieces => `/${pieces.join('')}`)
  await fc.assert(
    fc.asyncProperty(path, async path => {
      const { status, headers } = await ask(path, { host: 'old.test' })
      const { location = '' } = headers
      return status === 400 || (status === 308 && new URL(location).host === 'new.test')
    }),
    { numRuns: 300 },
  )
})

t.test('a fixed answer is sent as it is written', async t => {
  const { ask } = await answering(t)
  const robots = await ask('/robots.txt')
  t.match(robots, { status: 200, body: 'User-agent: *\nDisallow: /\n' })
  t.equal(robots.headers['content-type'], 'text/plain; charset=utf-8')
  t.match(await ask('/robots.txt', {}, 'HEAD'), { body: '', headers: { 'content-length': '26' } })
  t.match(await ask('/gone/x', {}, 'POST'), { status: 410, body: '' })
  const nothing = await ask('/nothing')
  t.match([nothing.status, nothing.headers['content-length']], [204, undefined])
})

t.test('limits, credentials and records are as for other routes', async t => {
  const { ask, gateway } = await answering(t)
  const first = await ask('/few')
  t.match(first, {
    status: 200,
    body: '{}',
    headers: { 'content-type': 'text/json', 'x-own': '1', vary: 'X' },
  })
  t.match(String(first.headers['ratelimit-policy']), '"few.sustained"')
  t.equal((await ask('/Few')).status, 429, 'in any letter case, as an upstream has it')
  t.equal((await ask('/private')).status, 401)
  const record = gateway.lines.find(({ route }) => route === '/few')
  t.match(record, { upstream: '', sent_status: 200, decision: 'allow', project: 'acme' })
})

t.test('an upgrade, and a body, get the same answer', async t => {
  const { gateway } = await answering(t)
  const client = await rawClient(Number(new URL(gateway.url).port))
  t.teardown(() => client.socket.destroy())
  const upgrade =
    'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: x\r\n'
  client.send(`GET /gone/ws HTTP/1.1\r\nHost: ${HOST}\r\n${upgrade}\r\n`)
  t.match((await client.message()).line, '410')
  const other = await rawClient(Number(new URL(gateway.url).port))
  t.teardown(() => other.socket.destroy())
  const chunked = 'Transfer-Encoding: chunked\r\n\r\n5\r\nGET /\r\n0\r\n\r\n'
  other.send(`POST /gone HTTP/1.1\r\nHost: ${HOST}\r\n${chunked}`)
  t.match((await other.message()).line, '410')
  other.send(`GET /robots.txt HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`)
  t.match((await other.message()).line, '200', 'the body is not read as a request')
})

t.test('no spelling that an upstream understands gets around a fixed answer', async t => {
  const { ask } = await answering(t)
  t.equal((await ask('/ADMIN/x', {}, 'DELETE')).status, 403)
  t.equal((await ask('/admin/x', {}, 'DELETE')).status, 403, 'the upstream ignores letter case')
  const named = { 'x-http-method-override': 'DELETE' }
  t.equal((await ask('/ADMIN/x', named, 'POST')).status, 403, 'and serves a POST as the method that it names')
  t.equal((await ask('/admin/x', named, 'POST')).status, 403)
  t.equal((await ask('/admin/x', {}, 'POST')).status, 502, 'other requests go there')
})

t.test('a redirect to the host that was asked for needs one', async t => {
  const { gateway } = await answering(t, '')
  const asked = async (path: string) => {
    const client = await rawClient(Number(new URL(gateway.url).port))
    t.teardown(() => client.socket.destroy())
    return (await client.send(`GET ${path} HTTP/1.0\r\n\r\n`).message()).line
  }
  t.match(await asked('/moved/x'), '302', 'HTTP/1.0 may lack a Host')
  t.match(await asked('/tls//evil.test'), '400')
})
