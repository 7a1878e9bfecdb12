/** A proxy that is missing in `trustedProxies` is noticed, without any client's address. */
import t from 'tap'
import { factsOf } from '../../../gateway/listen/written.js'
import { ForwardingWatch, latestOf, seldom, warnOf } from '../../../gateway/observe/untrusted-forwarding.js'
import { testGateway } from '../../helpers/gateway.js'
import { send, startApp } from '../../helpers/http.js'

t.test('one line a minute, and a state as long as it goes on', async t => {
  let now = 1_700_000_000_000
  let counted = 0
  const lines: object[] = []
  const log = { debug() {}, info() {}, error() {}, warn: (fields: object) => lines.push(fields) }
  const watch = new ForwardingWatch(
    warnOf(log),
    () => {
      counted += 1
    },
    () => now,
  )
  const see = (fields: Record<string, string>, trusted = false) => {
    const facts = factsOf(
      { id: '', method: 'GET', path: '/', client: '203.0.113.7', trusted },
      new Map(Object.entries(fields)),
    )
    watch.observer().finished({ facts } as never)
  }
  see({})
  see({ 'x-forwarded-for': '192.0.2.1' }, true)
  t.same([counted, lines, watch.report()], [0, [], null])
  for (let i = 0; i < 100; i += 1) see({ 'x-forwarded-for': '192.0.2.1' })
  see({ forwarded: 'for=192.0.2.1' })
  see({ 'x-real-ip': '192.0.2.1' })
  t.same([counted, lines], [102, [{ field: 'x-forwarded-for', from: '203.0.113.0/24' }]])
  now += 59_999
  see({ forwarded: 'for=192.0.2.1' })
  t.equal(lines.length, 1)
  now += 1
  see({ forwarded: 'for=192.0.2.1' })
  t.same(lines[1], { field: 'forwarded', from: '203.0.113.0/24' })
  const told = watch.report()
  t.match(told, { field: 'forwarded', at: now })
  t.equal(latestOf([null, told, { field: 'x-real-ip', from: '', at: 1 }]), told)
  now += 60_000
  t.equal(watch.report(), null)
  now -= 3_600_000
  t.equal(watch.report(), null, 'a clock that is set back prolongs nothing')
  see({ 'x-real-ip': '192.0.2.1' })
  t.same(lines.slice(2), [{ field: 'x-real-ip', from: '203.0.113.0/24' }], 'and silences nothing')
})

t.test('processes that tell in one place write one line a minute together', async t => {
  const lines: object[] = []
  const log = { debug() {}, info() {}, error() {}, warn: (fields: object) => lines.push(fields) }
  const tell = seldom(warnOf(log))
  const seen = (from: string, at: number) => tell({ field: 'forwarded', from, at })
  for (const [from, at] of [
    ['one', 0],
    ['two', 30_000],
    ['one', 60_000],
    ['two', 90_000],
  ] as const)
    seen(from, at)
  t.same(lines, [
    { field: 'forwarded', from: 'one' },
    { field: 'forwarded', from: 'one' },
  ])
})

t.test('the log, the state, the live data and the metrics tell of it', async t => {
  const upstream = await startApp(t, (_req, res) => res.end())
  const { url, adminUrl, lines } = await testGateway(t, { upstream })
  const state = async () => (await send(`${adminUrl}/state`)).json().untrustedForwarding
  t.equal(await state(), null)
  for (let i = 0; i < 3; i += 1)
    await send(url, { headers: { host: 'acme.localhost', 'x-forwarded-for': '198.51.100.77' } })
  t.match(await state(), { field: 'x-forwarded-for', from: '127.0.0.0/24' })
  const live = (await send(`${adminUrl}/live`)).json()
  t.match(live.untrusted_forwarding, { field: 'x-forwarded-for', from: '127.0.0.0/24' })
  t.match((await send(`${adminUrl}/metrics`)).body, 'sluice_untrusted_forwarding_total 3\n')
  const warned = lines.filter(({ msg }) => String(msg).includes('trustedProxies'))
  t.equal(warned.length, 1)
  t.notMatch(JSON.stringify(warned), /198\.51\.100\.77|127\.0\.0\.1"/)

  const behind = await testGateway(t, { upstream, settings: 'trustedProxies: [127.0.0.1]' })
  await send(behind.url, { headers: { host: 'acme.localhost', 'x-forwarded-for': '198.51.100.77' } })
  t.match((await send(`${behind.adminUrl}/metrics`)).body, 'sluice_untrusted_forwarding_total 0\n')
})
