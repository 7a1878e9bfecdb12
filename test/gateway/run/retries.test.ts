/** Retries of a running gateway: a request that is sent twice is charged, recorded and counted once. */
import { once } from 'node:events'
import { createServer as createHttp2, type Http2Server } from 'node:http2'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { testGateway } from '../../helpers/gateway.js'
import { send, startApp } from '../../helpers/http.js'

const host = { host: 'acme.localhost' }
const POLICIES = {
  'limits.yaml': `version: 1
kind: project-limits
buckets: { all: ["*"] }
limits: [{ for: [{}], quotas: { all: { burst: 5, sustained: 100 } } }]
`,
}
const RETRIES = 'balance: round-robin, retries: { attempts: 2, on: [connect, 503], budget: 50% }'

async function startHttp2(t: Test, status: number): Promise<string> {
  const server: Http2Server = createHttp2((_req, res) => res.writeHead(status).end('answer'))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const startHttp1 = (t: Test, status: number) =>
  startApp(t, (_req, res) => {
    res.statusCode = status
    res.end('answer')
  })

for (const [protocol, start] of [
  ['http1', startHttp1],
  ['h2c', startHttp2],
] as const) {
  t.test(`a request that is sent twice is charged and counted once, over ${protocol}`, async t => {
    const gateway = await testGateway(t, {
      upstream: await start(t, 503),
      others: [await start(t, 200)],
      upstreamSettings: `protocol: ${protocol}, ${RETRIES}`,
      policies: POLICIES,
    })
    const answers = []
    for (let i = 0; i < 6; i++) answers.push(await send(`${gateway.url}/`, { headers: host }))
    t.same(
      answers.map(({ status }) => status),
      [200, 200, 200, 200, 200, 429],
      'five requests use the burst of five',
    )
    t.ok(answers.slice(0, 5).every(({ body }) => body === 'answer'))
    const metrics = (await send(`${gateway.adminUrl}/metrics`)).body
    t.match(metrics, 'sluice_retries_total{upstream="app",reason="503",result="sent"} 3')
    t.match(metrics, 'sluice_requests_total{upstream="app",method="GET",code="200",source="upstream"} 5')
    t.notMatch(metrics, /sluice_requests_total\{.*code="503"/)
    t.match(metrics, 'sluice_requests_total{upstream="app",method="GET",code="429",source="gateway"} 1')
  })
}
