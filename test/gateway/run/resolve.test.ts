/** Upstreams by name: resolved for each connection, or anew after an interval. */
import dns from 'node:dns'
import { once } from 'node:events'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import type { LiveSnapshot } from '../../../gateway/admin/live-snapshot.js'
import { canMakeCertificates, makeCertificate } from '../../helpers/certificates.js'
import { testGateway } from '../../helpers/gateway.js'
import { send, startApp } from '../../helpers/http.js'
import { matchList } from '../../helpers/lists.js'
import { rawUpstream } from '../../helpers/raw.js'
import { waitUntil } from '../../helpers/wait.js'

const host = { host: 'acme.localhost' }

t.test('with `resolve` the addresses of a name are used and shown by themselves', async t => {
  const { port } = new URL(await startApp(t, (_req, res) => res.end('here')))
  const gateway = await testGateway(t, {
    upstream: `http://localhost:${port}`,
    upstreamSettings: 'resolve: 1s',
  })
  const address = `http://127.0.0.1:${port}`
  const addresses = async () =>
    (await send(`${gateway.adminUrl}/live`)).json<LiveSnapshot>().upstreams[0]?.addresses ?? []
  await waitUntil('the name to be resolved', async () =>
    (await addresses()).some(one => one.address === address),
  )
  t.equal((await send(`${gateway.url}/`, { headers: host })).body, 'here')
  t.match(
    (await send(`${gateway.adminUrl}/metrics`)).body,
    `sluice_upstream_reachable{upstream="app",backend="${address}"} 1`,
  )
})

t.test('a name that cannot be resolved is logged once and shown', async t => {
  const gateway = await testGateway(t, {
    upstream: 'http://no-such-name.invalid:3000',
    upstreamSettings: 'resolve: 1s',
  })
  const state = async () => (await send(`${gateway.adminUrl}/state`)).json<{ backends: object[] }>().backends
  await waitUntil('the failure', async () => JSON.stringify(await state()).includes('name_fault'))
  matchList(t, await state(), [
    { backend: 'http://no-such-name.invalid:3000', name_fault: { cause: /no-such-name/, since: String } },
  ])
  t.equal((await send(`${gateway.url}/`, { headers: host })).status, 502)
  matchList(
    t,
    gateway.lines.filter(({ name }) => name === 'no-such-name.invalid'),
    [{ level: 'warn', msg: 'name not resolved: its last addresses stay in use', reason: /no-such-name/ }],
  )
})

if (canMakeCertificates(t)) {
  t.test('the certificate of a resolved address is verified against its name', async t => {
    const own = makeCertificate(t.testdir(), 'own')
    const names: unknown[] = []
    const server = createServer(own, (_req, res) => res.end('secure'))
    server.on('secureConnection', socket => names.push((socket as { servername?: string }).servername))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.teardown(() => server.close())
    const { port } = server.address() as AddressInfo
    const gateway = await testGateway(t, {
      upstream: `https://localhost:${port}`,
      ca: own.certFile,
      upstreamSettings: 'resolve: 1s',
    })
    await waitUntil('the name to be resolved', async () =>
      (await send(`${gateway.adminUrl}/state`)).body.includes(`https://127.0.0.1:${port}`),
    )
    t.equal((await send(`${gateway.url}/`, { headers: host })).body, 'secure')
    t.same(new Set(names), new Set(['localhost']))
  })
}

t.test('without `resolve` a name is reached by whichever of its addresses answers', async t => {
  const { port } = new URL(await startApp(t, (_req, res) => res.end('here')))
  const silent = await rawUpstream()
  await silent.stop()
  const { lookup } = dns
  t.teardown(() => {
    dns.lookup = lookup
  })
  const answer = [
    { address: '::1', family: 6 },
    { address: '127.0.0.1', family: 4 },
  ]
  // What node:net asks for a name.
  dns.lookup = ((name: string, options: object, done: (...all: unknown[]) => void) =>
    name === 'two.test' ? done(null, answer) : lookup(name, options, done)) as typeof lookup
  const gateway = await testGateway(t, { upstream: `http://two.test:${port}` })
  t.equal((await send(`${gateway.url}/`, { headers: host })).body, 'here')
  const gone = await testGateway(t, { upstream: `http://two.test:${silent.port}` })
  t.equal((await send(`${gone.url}/`, { headers: host })).status, 502)
  const { upstreams } = (await send(`${gone.adminUrl}/live`)).json<LiveSnapshot>()
  t.match(upstreams[0], { state: 'unreachable', cause: /::1:\d+.*; connect ECONNREFUSED 127.0.0.1/ })
})
