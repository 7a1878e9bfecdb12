/** A route to several upstreams: each project, or the network of an unknown client, always goes to the same one. */
import t, { type Test } from 'tap'
import { compileSplit } from '../../gateway/policy/split.js'
import type { Facts, Project } from '../../gateway/types.js'
import { testGateway } from '../helpers/gateway.js'
import { send, startApp } from '../helpers/http.js'

const named = (t: Test, name: string) => startApp(t, (_req, res) => res.end(name))

function splitOf(...shares: readonly number[]) {
  const portions = shares.map((share, i) => ({ upstream: `u${i}`, share }))
  const split = compileSplit(portions, new Map(), [])
  const of = (id: string, network = '192.0.2.1') =>
    split?.upstreamFor({ network } as Facts, { id } as Project) ?? ''
  return of
}
const IDS = Array.from({ length: 10_000 }, (_, i) => `project-${i}`)

t.test('each upstream gets its share of the projects', async t => {
  const of = splitOf(90, 9.5, 0.5, 0)
  const counts = [0, 0, 0, 0]
  for (const id of IDS) counts[Number(of(id)[1])] = (counts[Number(of(id)[1])] ?? 0) + 1
  const [most = 0, some = 0, few = 0, none] = counts
  t.ok(most > 8850 && most < 9150, `${most}`)
  t.ok(some > 800 && some < 1100, `${some}`)
  t.ok(few > 20 && few < 90, `${few}`)
  t.equal(none, 0)
})

t.test('a project keeps its upstream while the other’s share grows up to it', async t => {
  const [before, after] = [splitOf(95, 5), splitOf(90, 10)]
  const moved = IDS.filter(id => before(id) !== after(id))
  t.ok(moved.length > 350 && moved.length < 650, `${moved.length} of 10,000`)
  t.ok(
    moved.every(id => before(id) === 'u0'),
    'nobody comes back',
  )
})

t.test('unknown callers are told apart by network, not by the host that they choose', async t => {
  const of = splitOf(50, 50)
  const networks = Array.from({ length: 200 }, (_, i) => `198.51.100.${i}`)
  for (const network of networks) {
    const chosen = ['host:a.test', 'host:b.test', 'unknown:all', `client:${network}`].map(id =>
      of(id, network),
    )
    t.equal(new Set(chosen).size, 1)
  }
  t.equal(new Set(networks.map(network => of('unknown:all', network))).size, 2)
})

t.test('requests and records name the upstream that was chosen', async t => {
  const upstream = await named(t, 'app')
  const gateway = await testGateway(t, {
    upstream,
    upstreams: { canary: await named(t, 'canary') },
    routes: ['{ path: /**, split: [{ upstream: app, share: 50% }, { upstream: canary, share: 50% }] }'],
    settings: 'log: { access: all }',
    projects: `version: 1\nprojects:\n${Array.from(
      { length: 30 },
      (_, i) => `  - { id: p${i}, plan: growth, environment: production, hosts: [p${i}.test] }`,
    ).join('\n')}\n`,
  })
  const seen = new Map<string, Set<string>>()
  for (let round = 0; round < 3; round++) {
    for (let i = 0; i < 30; i++) {
      const host = `p${i}.test`
      const { body } = await send(`${gateway.url}/${round}`, { headers: { host } })
      seen.set(host, (seen.get(host) ?? new Set()).add(body))
    }
  }
  t.ok([...seen.values()].every(bodies => bodies.size === 1))
  t.same(new Set([...seen.values()].flatMap(bodies => [...bodies])), new Set(['app', 'canary']))
  const logged = gateway.lines.filter(({ msg }) => msg === 'request').map(({ upstream }) => upstream)
  t.same(new Set(logged), new Set(['app', 'canary']))
})
