/** Health checks of a running gateway: whom they leave out, what operators see, and what a reload keeps. */
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { LiveSnapshot } from '../../../gateway/admin/live-snapshot.js'
import { type TestGateway, testGateway } from '../../helpers/gateway.js'
import { gatewayProcess, writeConfig } from '../../helpers/gateway-process.js'
import { send, startApp } from '../../helpers/http.js'
import { matchList } from '../../helpers/lists.js'
import { oneBucket } from '../../helpers/policies.js'
import { rawUpstream } from '../../helpers/raw.js'
import { redisUrl } from '../../helpers/redis.js'
import { waitUntil } from '../../helpers/wait.js'

const host = { host: 'acme.localhost' }
const CHECKED = 'health: { path: /healthz, every: 1s, timeout: 1s, healthy: 1, unhealthy: 1 }'

/** An app whose answer is its name, and whose health a test decides. */
async function startChecked(t: Test, name: string) {
  const app = { url: '', status: 200, checks: 0 }
  app.url = await startApp(t, (req, res) => {
    if (req.url !== '/healthz') return void res.end(name)
    app.checks += 1
    res.statusCode = app.status
    res.end()
  })
  return app
}

const answerOf = async ({ url }: TestGateway) => (await send(`${url}/`, { headers: host })).body
const metricsOf = async ({ adminUrl }: TestGateway) => (await send(`${adminUrl}/metrics`)).body
const upstreamsOf = async ({ adminUrl }: Pick<TestGateway, 'adminUrl'>) =>
  (await send(`${adminUrl}/live`)).json<LiveSnapshot>().upstreams
const stateOf = async (gateway: TestGateway) => (await upstreamsOf(gateway))[0]?.addresses[0]?.state

t.test('an address that fails its checks is left out, and used again when it passes them', async t => {
  const [ill, well] = [await startChecked(t, 'ill'), await startChecked(t, 'well')]
  ill.status = 503
  const gateway = await testGateway(t, { upstream: ill.url, others: [well.url], upstreamSettings: CHECKED })
  await waitUntil('it to be unhealthy', async () => (await stateOf(gateway)) === 'unhealthy')
  for (let i = 0; i < 6; i++) t.equal(await answerOf(gateway), 'well')
  const [upstream] = await upstreamsOf(gateway)
  t.match(upstream, { name: 'app', state: 'ok' }, 'it has an address that is well')
  t.match(upstream?.addresses[0], { cause: 'answered 503 to the health check', since: /^\d{4}-/ })

  const metrics = await metricsOf(gateway)
  const labels = `upstream="app",backend="${ill.url}"`
  t.match(metrics, `sluice_backend_unhealthy{${labels}} 1`)
  t.match(metrics, `sluice_upstream_reachable{${labels}} 1`, 'it can be reached')
  t.match(metrics, new RegExp(`sluice_health_checks_total{${labels},result="failed"} [1-9]`))
  t.notMatch(metrics, /sluice_requests_total\{.*503/, 'checks are not requests')
  t.match(metrics, 'sluice_requests_total{upstream="app",method="GET",code="200",source="upstream"} 6')

  ill.status = 204
  await waitUntil('it to be well', async () => (await stateOf(gateway)) === 'ok')
  t.same(new Set([await answerOf(gateway), await answerOf(gateway)]), new Set(['ill', 'well']))
  t.match(await metricsOf(gateway), `sluice_backend_unhealthy{${labels}} 0`)
  matchList(
    t,
    gateway.lines.filter(({ backend }) => backend !== undefined).map(({ msg, backend }) => [msg, backend]),
    [
      ['backend fails its health checks', ill.url],
      ['backend passes its health checks again', ill.url],
    ],
    'only changes are logged',
  )
})

t.test('an only address that fails its checks still gets requests, and is shown', async t => {
  const app = await startChecked(t, 'app')
  app.status = 500
  const gateway = await testGateway(t, { upstream: app.url, upstreamSettings: CHECKED })
  await waitUntil('it to be unhealthy', async () => (await stateOf(gateway)) === 'unhealthy')
  t.equal(await answerOf(gateway), 'app')
  matchList(t, await upstreamsOf(gateway), [
    { state: 'unhealthy', cause: 'answered 500 to the health check', since: String },
  ])
})

t.test('an address that is away is noticed without a request, and so is its return', async t => {
  const dead = await rawUpstream()
  await dead.stop()
  const gateway = await testGateway(t, { upstream: dead.url, upstreamSettings: CHECKED })
  await waitUntil('it to be unreachable', async () => (await stateOf(gateway)) === 'unreachable')
  t.match(await metricsOf(gateway), `sluice_upstream_reachable{upstream="app",backend="${dead.url}"} 0`)
  await startApp(t, (_req, res) => res.end('here'), dead.port)
  await waitUntil('its return', async () => (await stateOf(gateway)) === 'ok')
})

t.test('nonsense, silence and endless answers to checks are logged once and hurt nobody', async t => {
  const bodies = {
    nonsense: 'NONSENSE\r\n\r\n',
    silence: '',
    endless: `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${`8000\r\n${'x'.repeat(32_768)}\r\n`.repeat(4)}`,
  }
  const strange = await Promise.all(
    Object.values(bodies).map(bytes =>
      rawUpstream(async peer => {
        await peer.message()
        peer.send(bytes)
      }),
    ),
  )
  t.teardown(() => Promise.all(strange.map(upstream => upstream.stop())))
  const well = await startChecked(t, 'well')
  const [first, ...others] = strange.map(({ url }) => url)
  const gateway = await testGateway(t, {
    upstream: first ?? '',
    others: [...others, well.url],
    upstreamSettings: CHECKED,
  })
  const checked = () => strange.every(({ connections }) => connections.length >= 3) && well.checks >= 3
  await waitUntil('several checks of each', checked)
  const logged = (url = '') =>
    gateway.lines.filter(({ backend }) => backend === url).map(({ msg, reason }) => [msg, reason])
  const failing = 'backend fails its health checks'
  matchList(t, logged(strange[0]?.url), [[failing, /not valid HTTP/]])
  matchList(t, logged(strange[1]?.url), [[failing, /^no answer .*1000 ms/]])
  matchList(t, logged(strange[2]?.url), [
    ['the answer to the health check is longer than what is read of it', undefined],
  ])
  t.match((await upstreamsOf(gateway))[0]?.addresses.at(-1), { address: well.url, state: 'ok' })
})

t.test('a reload keeps what is known of an address that it does not change', async t => {
  const [ill, well, added] = [
    await startChecked(t, 'ill'),
    await startChecked(t, 'well'),
    await startChecked(t, 'added'),
  ]
  ill.status = 503
  const settings = CHECKED.replace('healthy: 1, unhealthy: 1', 'healthy: 1, unhealthy: 2')
  const gateway = await testGateway(t, { upstream: ill.url, others: [well.url], upstreamSettings: settings })
  await waitUntil('it to be unhealthy', async () => (await stateOf(gateway)) === 'unhealthy')
  const since = (await upstreamsOf(gateway))[0]?.addresses[0]?.since
  const file = join(gateway.folder, 'gateway.yaml')
  writeFileSync(file, readFileSync(file, 'utf8').replace(`"${well.url}"`, `"${well.url}","${added.url}"`))
  t.match(await gateway.reloader.reload('admin'), { result: 'loaded' })
  const [upstream] = await upstreamsOf(gateway)
  t.match(upstream?.addresses, [{ state: 'unhealthy', since }, { state: 'ok' }, { state: 'ok' }])
  const answers = []
  for (let i = 0; i < 6; i++) answers.push(await answerOf(gateway))
  t.same(new Set(answers), new Set(['well', 'added']))

  writeFileSync(file, readFileSync(file, 'utf8').replace(`, ${settings}`, ''))
  t.match(await gateway.reloader.reload('admin'), { result: 'loaded' })
  t.equal(await stateOf(gateway), 'ok', 'without checks nothing is known')
})

t.test('checks are sent by the protocol of the upstream', async t => {
  const server = createServer((req, res) => {
    paths.push(`${req.httpVersion} ${req.headers[':authority']} ${req.url}`)
    res.writeHead(req.url === '/healthz' ? 503 : 200).end()
  })
  const paths: string[] = []
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const authority = `127.0.0.1:${(server.address() as AddressInfo).port}`
  const gateway = await testGateway(t, {
    upstream: `http://${authority}`,
    upstreamSettings: `protocol: h2c, ${CHECKED}`,
  })
  await waitUntil('it to be unhealthy', async () => (await stateOf(gateway)) === 'unhealthy')
  t.match(paths[0], `2.0 ${authority} /healthz`)
  t.match(await metricsOf(gateway), /sluice_upstream_reachable\{.*\} 1/)
})

t.test('each of several workers checks by itself, and a reload keeps what both know', async t => {
  const redis = await redisUrl(t)
  if (redis === undefined) return
  const [ill, well] = [await startChecked(t, 'ill'), await startChecked(t, 'well')]
  ill.status = 503
  const health = { path: '/healthz', every: '1s', timeout: '1s', healthy: 1, unhealthy: 1 }
  const settings = {
    listen: { workers: 2 },
    redis,
    upstreams: { app: { urls: [ill.url, well.url], health } },
    routes: [{ path: '/**', upstream: 'app' }],
  }
  const folder = writeConfig(t, settings, { 'limits.yaml': oneBucket(10_000) })
  const gateway = await gatewayProcess(t, folder)
  // Each request is a connection of its own, so that both workers get some.
  const answers = async () => {
    const ask = () => send(gateway.url, { headers: { ...host, connection: 'close' } })
    return new Set((await Promise.all(Array.from({ length: 20 }, ask))).map(({ body }) => body))
  }
  await waitUntil('both workers to know', async () => (await answers()).size === 1)
  matchList(t, (await upstreamsOf(gateway))[0]?.addresses ?? [], [{ state: 'unhealthy' }, { state: 'ok' }])
  t.equal((await send(`${gateway.adminUrl}/reload`, { method: 'POST' })).status, 200)
  t.same(await answers(), new Set(['well']))
  ill.status = 204
  await waitUntil('its return', async () => (await answers()).size === 2)
})
