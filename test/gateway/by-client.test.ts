/** Buckets that count by client address, on each counter store. */
import t from 'tap'
import { testGateway } from '../helpers/gateway.js'
import { send, startApp } from '../helpers/http.js'
import { stores } from '../helpers/stores.js'

const POLICY = `version: 1
kind: project-limits
buckets:
  search: { match: [/search], key: [client-ip] }
  items: { match: [/items], key: [project, client-ip] }
  rest: ["*"]
limits:
  - for: [{}]
    quotas:
      search: { sustained: 2 }
      items: { sustained: 2 }
      rest: { sustained: 2 }
`

for (const store of stores) {
  t.test(`buckets by client ${store.name}`, async t => {
    const settings = await store.settings(t)
    if (settings === undefined) return
    const upstream = await startApp(t, (_req, res) => res.end())
    const gateway = await testGateway(t, {
      upstream,
      settings: `${settings}\ntrustedProxies: [127.0.0.1]`,
      policies: { 'limits.yaml': POLICY },
    })
    const ask = async (path: string, client: string, project: string) => {
      const headers = { host: `${project}.localhost`, 'x-forwarded-for': client }
      return (await send(gateway.url + path, { headers })).status
    }
    // Documentation addresses (RFC 3849), random because a shared Redis may know them from another run.
    const part = Math.floor(Math.random() * 65_536)
    const [one, two] = [`2001:db8:${part.toString(16)}:1::1`, `2001:db8:${part.toString(16)}:2::1`]

    t.same([await ask('/search', one, 'dev'), await ask('/search', one, 'acme')], [200, 200])
    t.equal(await ask('/search', one, 'dev'), 429, 'a client’s requests to all projects share its counter')
    t.equal(await ask('/search', two, 'dev'), 200, 'another client has its own counter')

    t.same([await ask('/items', one, 'dev'), await ask('/items', one, 'dev')], [200, 200])
    t.equal(await ask('/items', one, 'dev'), 429)
    t.equal(
      await ask('/items', one, 'acme'),
      200,
      'with both parts in the key another project has its own counter',
    )

    const headers = { host: 'dev.localhost', 'x-forwarded-for': one }
    const refused = await send(`${gateway.url}/search`, { headers })
    t.match(
      refused.json().detail,
      'Bucket search admits 2 requests per minute from each client address, and they are used up.',
    )
    const told = await send(`${gateway.adminUrl}/projects/dev/counters`)
    t.same(told.json().not_shown, ['search', 'items'], 'counters by address are not shown without an address')
    const named = await send(`${gateway.adminUrl}/projects/dev/counters?ip=${encodeURIComponent(one)}`)
    const { counters, not_shown } = named.json<{ counters: { rule: string }[]; not_shown: string[] }>()
    t.same(
      counters.map(({ rule }) => rule),
      ['search', 'items', 'rest'],
    )
    t.match(counters[0], { counters: [{ used: 2, left: 0 }] })
    t.same(not_shown, [])
  })
}
