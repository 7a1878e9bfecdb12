/** `auth: required` on every kind of request, and what an operator sees of credentials in logs and metrics. */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import t, { type Test } from 'tap'
import WebSocket, { WebSocketServer } from 'ws'
import { sluice } from '../../helpers/command.js'
import { type TestGatewayOptions, testGateway } from '../../helpers/gateway.js'
import { send, startApp } from '../../helpers/http.js'
import { oneBucket } from '../../helpers/policies.js'
import { OK, type RawPeer } from '../../helpers/raw.js'
import { waitUntil } from '../../helpers/wait.js'
import { ask, onBothWires } from '../listen/http2-scene.js'

const KEY = 'canary-of-a-right-key'
const WRONG = 'canary-of-a-wrong-key'
const RIGHT = { 'x-api-key': KEY }

const options = (more: Partial<TestGatewayOptions> = {}): Partial<TestGatewayOptions> => ({
  projects: `version: 1
projects:
  - { id: acme, plan: growth, environment: production, apiKeyHashes: ["${createHash('sha256').update(KEY).digest('hex')}"] }
  - { id: dev, plan: developer, environment: development, hosts: [dev.localhost] }
`,
  policies: { 'limits.yaml': oneBucket(100) },
  routeSettings: 'auth: required',
  settings: 'identify: [api-key, host]\nlog: { decisions: all }\n',
  ...more,
})

async function start(t: Test, more: Partial<TestGatewayOptions> = {}) {
  const upstream = await startApp(t, (req, res) => res.end(String(req.headers['x-sluice-project'])))
  const gateway = await testGateway(t, { upstream, ...options(more) })
  const get = (headers: Record<string, string>) => send(`${gateway.url}/x`, { headers })
  const about = (msg: string) => gateway.lines.filter(line => line.msg === msg)
  return { ...gateway, get, about }
}

t.test('an upgrade needs the credential as any request does', async t => {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  t.teardown(() => server.close())
  await once(server, 'listening')
  server.on('connection', socket => socket.send('hello'))
  const { port } = server.address() as { port: number }
  const { url } = await testGateway(t, { upstream: `http://127.0.0.1:${port}`, ...options() })
  const open = (headers: Record<string, string>) =>
    new Promise<string>(resolve => {
      const socket = new WebSocket(`${url.replace('http', 'ws')}/x`, { headers })
      socket.on('message', text => {
        resolve(String(text))
        socket.close()
      })
      socket.on('unexpected-response', (_, answer) => {
        answer.resume()
        resolve(`${answer.statusCode} ${answer.headers['www-authenticate']}`)
      })
    })
  t.equal(await open({}), '401 Api-Key')
  t.equal(await open({ 'x-api-key': WRONG }), '401 Api-Key')
  t.equal(await open(RIGHT), 'hello')
})

onBothWires(t, (t, { scene }) => {
  t.test('HTTP/2 requests need it too, each on its own', async t => {
    const script = async (peer: RawPeer) => {
      for (;;) {
        await peer.message()
        peer.send(OK)
      }
    }
    const { session } = await scene(t, script, options())
    const [none, wrong, right] = await Promise.all([
      ask(session, {}),
      ask(session, { 'x-api-key': WRONG }),
      ask(session, RIGHT),
    ])
    t.match(none, { status: 401, headers: { 'www-authenticate': 'Api-Key' }, body: /credential-missing/ })
    t.match(wrong, { status: 401, body: /credential-invalid/ })
    t.match(right, { status: 200 })
  })
})

t.test('a preflight is not let through: an upstream may rely on the route', async t => {
  const { url } = await start(t)
  const preflight = await send(`${url}/x`, {
    method: 'OPTIONS',
    headers: { origin: 'https://app.example', 'access-control-request-method': 'GET' },
  })
  t.equal(preflight.status, 401)
})

t.test('logs say how the caller was found, and what was wrong with a credential', async t => {
  const { get, about, lines } = await start(t)
  t.equal((await get(RIGHT)).body, 'acme')
  t.equal((await get({})).status, 401)
  t.equal((await get({ 'x-api-key': WRONG, host: 'dev.localhost' })).status, 401)
  await waitUntil('the lines', () => about('request').length === 1 && about('decision').length === 1)
  t.match(about('decision'), [
    { project: 'acme', verified: true, credential: 'verified', identifier: 'api-key' },
  ])
  t.match(
    about('request'),
    [
      {
        status: 401,
        error: 'credential-invalid',
        credential: 'invalid',
        credential_fault: 'unknown key',
        identifier: 'api-key',
        project: null,
      },
    ],
    'a request without a credential is no failure',
  )
  t.notMatch(JSON.stringify(lines), /canary/)
})

t.test('on a route that requires none, the record says that the credential was wrong', async t => {
  const { get, about, lines } = await start(t, { routeSettings: 'auth: optional' })
  t.equal((await get({ 'x-api-key': WRONG, host: 'dev.localhost' })).body, 'dev')
  await get({ host: 'dev.localhost' })
  await waitUntil('both records', () => about('decision').length === 2)
  t.match(about('decision'), [
    {
      project: 'dev',
      verified: false,
      credential: 'invalid',
      credential_fault: 'unknown key',
      identifier: 'host',
    },
    { project: 'dev', verified: false, credential: 'none', identifier: 'host' },
  ])
  t.notMatch(JSON.stringify(lines), /canary/)
})

t.test('metrics count what was found of credentials, by identifier', async t => {
  const { get, adminUrl } = await start(t)
  for (const headers of [RIGHT, RIGHT, { 'x-api-key': WRONG }, {}])
    await get(headers as Record<string, string>)
  const text = (await send(`${adminUrl}/metrics`)).body
  const series = text.split('\n').filter(line => line.startsWith('sluice_credentials_total'))
  t.same(series.sort(), [
    'sluice_credentials_total{identifier="api-key",result="invalid"} 1',
    'sluice_credentials_total{identifier="api-key",result="verified"} 2',
  ])
  t.notMatch(text, /canary/)
})

t.test('explain says what a route requires, and what is wrong with a credential', async t => {
  const { adminUrl } = await start(t, { routeSettings: 'auth: required, scopes: [a]' })
  const ask = async (...more: string[]) =>
    (await sluice(['explain', 'GET', '/x', '--live', adminUrl, ...more])).out
  t.match(
    await ask(),
    /requires: a credential that is checked that allows a\n.*project: nobody \(api-key: nobody\)/,
  )
  t.match(await ask(), /401 credential-missing.*WWW-Authenticate: Api-Key/s)
  const wrong = await ask('--header', `x-api-key: ${WRONG}`)
  t.match(wrong, /project: nobody \(api-key: unknown key\).*401 credential-invalid/s)
  t.notMatch(wrong, /canary/)
  t.match(
    await ask('--header', `x-api-key: ${KEY}`),
    /project: acme, growth.*found by api-key.*403 insufficient-scope/s,
  )
  t.match(
    await ask('--project', 'acme'),
    /project: acme.*as you say/,
    'who names a project supposes its credential',
  )
})
