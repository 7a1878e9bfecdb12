/** What operators see of an upstream that cannot be reached: everywhere its name, the cause, and since when. */
import t, { type Test } from 'tap'
import type { LiveSnapshot } from '../../../gateway/admin/live-snapshot.js'
import { sluice } from '../../helpers/command.js'
import { type TestGateway, testGateway } from '../../helpers/gateway.js'
import { send, startApp } from '../../helpers/http.js'
import { matchList } from '../../helpers/lists.js'
import { rawUpstream } from '../../helpers/raw.js'

const host = { host: 'acme.localhost' }

/** An address on which no server listens. */
async function deadUrl(): Promise<{ url: string; port: number }> {
  const upstream = await rawUpstream()
  await upstream.stop()
  return upstream
}

const statusOf = async ({ url }: TestGateway) => (await send(`${url}/`, { headers: host })).status
const snapshotOf = async ({ adminUrl }: TestGateway) => (await send(`${adminUrl}/live`)).json<LiveSnapshot>()
const metricsOf = async ({ adminUrl }: TestGateway) => (await send(`${adminUrl}/metrics`)).body

const refused = (port: number) => new RegExp(`connect ECONNREFUSED 127.0.0.1:${port}`)
/** A moment of this test, as JSON writes it. */
const sinceOf = (t: Test, since: string | undefined, begun: number) => {
  const at = Date.parse(since ?? '')
  t.ok(at >= begun && at <= Date.now(), `${since} is when the first request failed`)
}

t.test('an upstream whose only address refuses connections is unreachable until it answers', async t => {
  const dead = await deadUrl()
  const gateway = await testGateway(t, { upstream: dead.url })
  t.match(await metricsOf(gateway), `sluice_upstream_reachable{upstream="app",backend="${dead.url}"} 1`)
  const begun = Date.now()
  t.equal(await statusOf(gateway), 502)

  const { upstreams, rates } = await snapshotOf(gateway)
  const cause = refused(dead.port)
  matchList(t, upstreams, [{ name: 'app', state: 'unreachable', cause }])
  matchList(t, upstreams[0]?.addresses ?? [], [{ address: dead.url, state: 'unreachable', cause }])
  sinceOf(t, upstreams[0]?.since, begun)
  t.ok(rates.errors_of_upstreams > 0, 'its 502 is an error of the upstream')
  t.equal(rates.errors_of_ours, 0, 'and not one of the gateway')

  const state = (await send(`${gateway.adminUrl}/state`)).json<{ backends: object[]; upstreams: object[] }>()
  matchList(t, state.backends, [{ backend: dead.url, state: 'unreachable', cause, since: String }])
  matchList(t, state.upstreams, [{ name: 'app', state: 'unreachable', cause, since: String }])
  t.match(await metricsOf(gateway), `sluice_upstream_reachable{upstream="app",backend="${dead.url}"} 0`)
  const top = (await sluice(['top', '--once', '--live', gateway.adminUrl])).out
  t.match(top, /^Upstream app UNREACHABLE since \d\d:\d\d:\d\d: connect ECONNREFUSED/m)
  t.match(top, /^app +http:\S+ +UNREACHABLE +0 +0 +connect ECONNREFUSED/m)

  await startApp(t, (_req, res) => res.end('ok'), dead.port)
  t.equal(await statusOf(gateway), 200)
  t.match((await snapshotOf(gateway)).upstreams, [{ state: 'ok', cause: undefined, since: undefined }])
  t.match(await metricsOf(gateway), `sluice_upstream_reachable{upstream="app",backend="${dead.url}"} 1`)
  matchList(
    t,
    gateway.lines
      .filter(({ backend, code }) => (backend ?? code) !== undefined)
      .map(({ level, msg }) => [level, msg]),
    [
      ['warn', 'upstream unreachable'],
      ['info', 'backend answers again'],
    ],
  )
})

t.test('an upstream that still has an address is not unreachable, and the other one is named', async t => {
  const dead = await deadUrl()
  const alive = await startApp(t, (_req, res) => res.end('ok'))
  const gateway = await testGateway(t, { upstream: dead.url, others: [alive] })
  for (let i = 0; i < 2; i++) t.equal(await statusOf(gateway), 200)
  const cause = refused(dead.port)
  t.match(await snapshotOf(gateway), {
    upstreams: [{ name: 'app', state: 'ok', addresses: [{ state: 'unreachable', cause }, { state: 'ok' }] }],
  })
  for (let i = 0; i < 6; i++) t.equal(await statusOf(gateway), 200)
  t.match(await snapshotOf(gateway), {
    upstreams: [{ state: 'ok', addresses: [{ state: 'ejected', cause }, { state: 'ok' }] }],
    rates: { errors_of_upstreams: 0, errors_of_ours: 0 },
  })
})

t.test('an only address that accepts connections and gives no answer is unreachable after three', async t => {
  const silent = await rawUpstream(() => {})
  t.teardown(() => silent.stop())
  const gateway = await testGateway(t, { upstream: silent.url, timeouts: '{ head: 100ms }' })
  const states: unknown[] = []
  for (let i = 0; i < 3; i++) {
    t.equal(await statusOf(gateway), 504)
    states.push((await snapshotOf(gateway)).upstreams[0]?.state)
  }
  t.same(states, ['ok', 'ok', 'unreachable'], 'one slow answer says nothing')
  const { upstreams, rates } = await snapshotOf(gateway)
  t.match(upstreams[0]?.cause, /no answer within 100 ms/)
  t.equal(rates.errors_of_ours, 0)
})
