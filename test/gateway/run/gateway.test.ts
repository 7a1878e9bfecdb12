/** What a whole gateway tells clients, upstreams and operators, independent of its limits. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import t from 'tap'
import { WebSocket, WebSocketServer } from 'ws'
import { testGateway } from '../../helpers/gateway.js'
import { send, startApp } from '../../helpers/http.js'
import { shipped } from '../../helpers/policies.js'
import { waitUntil } from '../../helpers/wait.js'

t.test('the project is identified by host, and by header only from a trusted hop', async t => {
  const seen: (string | undefined)[] = []
  const upstream = await startApp(t, (req, res) => {
    seen.push(`${req.headers['x-sluice-project']}/${req.headers['x-sluice-plan']}`)
    res.end()
  })
  const headers = { host: 'nowhere.localhost', 'x-sluice-project': 'acme' }
  const open = await testGateway(t, {
    upstream,
    settings: 'identify: [header, host]\ntrustedProxies: [127.0.0.1]',
  })
  const closed = await testGateway(t, { upstream, settings: 'identify: [header, host]' })
  await send(open.url, { headers })
  await send(closed.url, { headers })
  await send(closed.url, { headers: { host: 'DEV.localhost:99' } })
  t.strictSame(seen, ['acme/growth', 'host:nowhere.localhost/developer', 'dev/developer'])

  const strict = await testGateway(t, { upstream, settings: 'unknownProject: reject' })
  const refused = await send(strict.url, { headers: { host: 'nowhere.localhost' } })
  t.match(
    { status: refused.status, body: refused.json() },
    { status: 404, body: { code: 'unknown-project' } },
  )
})

t.test(
  'a missing upstream gets 502, a silent one 504, a malformed path 400, each as a problem with a code',
  async t => {
    const silent = await startApp(t, () => {})
    const gone = await testGateway(t, { upstream: 'http://127.0.0.1:1' })
    const slow = await testGateway(t, { upstream: silent })
    const cases: [string, number, string][] = [
      [gone.url, 502, 'upstream-unreachable'],
      [slow.url, 504, 'upstream-timeout'],
      [`${slow.url}/a%2fb`, 400, 'bad-target'],
    ]
    for (const [url, status, code] of cases) {
      const answer = await send(url)
      t.match(
        { status: answer.status, type: answer.headers['content-type'], body: answer.json() },
        {
          status,
          type: 'application/problem+json',
          body: { code, status, instance: /^urn:uuid:/ },
        },
      )
      t.notMatch(answer.body, /127\.0\.0\.1/, 'the response reveals no upstream address')
    }
  },
)

t.test(
  'an upstream of which no address answers is logged once for each address, not for each request',
  async t => {
    const gateway = await testGateway(t, { upstream: 'http://127.0.0.1:1', others: ['http://127.0.0.1:2'] })
    for (let i = 0; i < 10; i += 1) t.equal((await send(gateway.url)).status, 502)
    const told = gateway.lines.filter(({ msg }) => msg === 'upstream unreachable').map(({ reason }) => reason)
    t.same(told.sort(), ['connect ECONNREFUSED 127.0.0.1:1', 'connect ECONNREFUSED 127.0.0.1:2'])
  },
)

t.test('health and metrics are on the admin port only', async t => {
  const upstream = await startApp(t, (_req, res) => res.writeHead(418).end())
  const gateway = await testGateway(t, { upstream, policies: shipped })
  t.equal((await send(`${gateway.url}/metrics`)).status, 418)
  t.equal((await send(`${gateway.url}/%`)).status, 400)
  const noHttp = connect(Number(new URL(gateway.url).port), '127.0.0.1')
    .end('no http\r\n\r\n')
    .resume()
  await once(noHttp, 'close')
  t.equal((await send(`${gateway.adminUrl}/livez`)).status, 200)
  t.equal((await send(`${gateway.adminUrl}/readyz`)).status, 200)
  const metrics = (await send(`${gateway.adminUrl}/metrics`)).body
  t.match(metrics, /sluice_requests_total\{[^}]*upstream="app"[^}]*\} 1/)
  t.match(metrics, /sluice_decisions_total\{[^}]*rule="catch-all"[^}]*outcome="allowed"[^}]*\} 1/)
  t.match(metrics, /sluice_requests_total\{upstream="",method="other",code="400",source="gateway"\} 1/)
  t.match(metrics, /sluice_requests_total\{upstream="",method="GET",code="400",source="gateway"\} 1/)
  t.match(metrics, /sluice_policy_info\{rev="sha256:/)
})

t.test('a WebSocket passes, is charged for its handshake, and is refused like any request', async t => {
  const server = createServer()
  new WebSocketServer({ server }).on('connection', socket =>
    socket.on('message', text => socket.send(`${text}!`)),
  )
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.closeAllConnections())
  t.teardown(() => server.close())
  const upstream = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const gateway = await testGateway(t, { upstream, policies: shipped })
  const open = () =>
    new WebSocket(`${gateway.url.replace('http', 'ws')}/scim/live`, { headers: { host: 'dev.localhost' } })

  const first = open()
  await once(first, 'open')
  first.send('hello')
  t.equal(String((await once(first, 'message'))[0]), 'hello!')
  const second = open()
  const [, refusal] = await once(second, 'unexpected-response')
  t.equal(refusal.statusCode, 429)
  t.match(refusal.headers, { 'retry-after': '1', 'content-type': 'application/problem+json' })
  refusal.resume()
  first.close()
  await once(first, 'close')
  const counted = /sluice_requests_total\{[^}]*code="101",source="upstream"\} 1/
  await waitUntil('the WebSocket to be counted', async () =>
    counted.test((await send(`${gateway.adminUrl}/metrics`)).body),
  )
})
