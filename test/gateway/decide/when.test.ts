/** Which clients' requests a rule applies to, as clients experience it: a whole gateway, on each counter store. */
import { createHash } from 'node:crypto'
import t, { type Test } from 'tap'
import { testGateway } from '../../helpers/gateway.js'
import { send, startApp } from '../../helpers/http.js'
import { onEachStore } from '../../helpers/stores.js'
import { waitUntil } from '../../helpers/wait.js'
import { rulesOf } from './volumes.js'

t.jobs = 4

const API_KEY = 'key-of-globex'
const PROJECTS = `version: 1
projects:
  - { id: acme, plan: growth, environment: production, hosts: [acme.localhost] }
  - { id: acme-staging, plan: growth, environment: staging, hosts: [staging.localhost] }
  - { id: globex, plan: enterprise, environment: production, hosts: [globex.localhost], apiKeyHashes: [${createHash('sha256').update(API_KEY).digest('hex')}] }
`
const once = 'quota: { requests: 1, per: 1m }, mode: enforce'

type Headers = Record<string, string>

/** Each rule admits one request per key, so two requests in a row show whether it applies. */
async function begin(t: Test, settings: string | undefined, policies: Headers) {
  const upstream = await startApp(t, (req, res) => {
    req.resume()
    if (req.headers['x-slow'] === undefined) res.end('done')
    else setTimeout(() => res.end('done'), 1000)
  })
  const gateway = await testGateway(t, {
    upstream,
    settings: `trustedProxies: [127.0.0.1]\n${settings}`,
    projects: PROJECTS,
    timeouts: '{ connect: 20s, head: 20s, idle: 20s }',
    policies,
  })
  const ask = async (path: string, headers: Headers = {}, method = 'POST') =>
    (await send(gateway.url + path, { method, headers: { host: 'acme.localhost', ...headers } })).status
  const applies = async (path: string, headers?: Headers, method?: string) => {
    await ask(path, headers, method)
    return (await ask(path, headers, method)) === 429
  }
  return { gateway, ask, applies }
}

onEachStore(t, 'a rule applies to requests that meet every condition of its "when"', async (t, store) => {
  const rule = (path: string, when: string) =>
    `id: ${path}, match: [POST /${path}], key: [project, client-ip], when: { ${when} }, ${once}`
  const { applies } = await begin(t, await store.settings(t), {
    'volumetric.yaml': rulesOf(
      rule('anonymous', 'authenticated: false'),
      rule('present', 'authenticated: true'),
      rule('project', 'projects: [acme, "host:new.localhost"]'),
      rule('plan', 'plans: [enterprise, scale]'),
      rule('environment', 'environments: [staging]'),
      rule('network', 'networks: [203.0.113.0/24, "2001:db8::/32"]'),
      rule(
        'all',
        'plans: [growth], environments: [production], networks: [198.51.100.7], authenticated: true',
      ),
    ),
  })
  const bearer = { authorization: 'Bearer made up' }
  const from = (address: string) => ({ 'x-forwarded-for': address })
  const host = (name: string) => ({ host: `${name}.localhost` })
  t.equal(await applies('/anonymous'), true)
  t.equal(await applies('/anonymous', bearer), false)
  t.equal(await applies('/present'), false)
  t.equal(await applies('/present', bearer), true, 'any credential counts, even an invented one')
  t.equal(await applies('/project'), true)
  t.equal(await applies('/project', host('globex')), false)
  t.equal(await applies('/project', host('new')), true)
  t.equal(await applies('/plan'), false)
  t.equal(await applies('/plan', host('globex')), true)
  t.equal(await applies('/environment'), false)
  t.equal(await applies('/environment', host('staging')), true)
  t.equal(await applies('/network', from('203.0.114.1')), false)
  t.equal(await applies('/network', from('203.0.113.255')), true)
  t.equal(
    await applies('/network', from('::ffff:203.0.113.4')),
    true,
    'an IPv4 address matches however it is written',
  )
  t.equal(await applies('/network', from('2001:db8:ffff::1')), true)
  t.equal(await applies('/network', from('2001:db9::1')), false)
  const whole = { ...bearer, ...from('198.51.100.7') }
  t.equal(await applies('/all', { ...whole, ...host('staging') }), false)
  t.equal(await applies('/all', from('198.51.100.7')), false)
  t.equal(await applies('/all', { ...whole, ...from('198.51.100.8') }), false)
  t.equal(await applies('/all', whole), true)
})

onEachStore(
  t,
  'authenticated: verified matches only credentials that an identifier has checked',
  async (t, store) => {
    const { ask, applies, gateway } = await begin(
      t,
      `identify: [{ plugin: api-key, header: x-globex }, host]\nlog: { decisions: all }\n${await store.settings(t)}`,
      {
        'volumetric.yaml': rulesOf(
          `id: verified, match: [POST /verified], key: [project], when: { authenticated: verified }, ${once}`,
          `id: anonymous, match: [POST /anonymous], key: [project], when: { authenticated: false }, ${once}`,
          `id: by-auth, match: [POST /auth], key: [auth], ${once}`,
        ),
      },
    )
    const key = { 'x-globex': API_KEY }
    const madeUp = { 'x-globex': 'made up', authorization: 'Bearer made up', host: 'globex.localhost' }
    t.equal(await applies('/verified', madeUp), false, 'a credential that is only present does not count')
    t.equal(await applies('/verified', key), true)
    t.equal(
      await applies('/anonymous', key),
      false,
      'a credential that identified a project counts as authenticated',
    )
    t.equal(await applies('/anonymous'), true)
    t.equal(await ask('/auth', key), 200)
    t.equal(await ask('/auth', madeUp), 429, 'both requests count as authenticated')
    t.equal(await ask('/auth'), 200)
    await waitUntil('the records', () => gateway.lines.some(({ rule }) => rule === 'verified'))
    t.match(
      gateway.lines.find(({ rule }) => rule === 'verified'),
      { auth: 'authenticated', verified: true },
    )
  },
)

onEachStore(t, 'only requests their rule applies to hold slots', async (t, store) => {
  const { ask } = await begin(t, await store.settings(t), {
    'in-flight.yaml': `version: 1
kind: in-flight
rules:
  - { id: free, match: [POST /slow], key: [project], when: { plans: [growth] } }
  - { id: reading, match: [GET /slow], key: [project], reads: true }
`,
  })
  const two = async (headers: Headers, method?: string) =>
    (await Promise.all([1, 2].map(() => ask('/slow', { 'x-slow': '1', ...headers }, method)))).sort()
  t.same(await two({}), [200, 429])
  t.same(await two({ host: 'globex.localhost' }), [200, 200])
  t.same(await two({}, 'GET'), [200, 429])
})

onEachStore(t, 'reads count only for rules with reads: true, preflights among them', async (t, store) => {
  const { ask, applies } = await begin(t, await store.settings(t), {
    'volumetric.yaml': rulesOf(
      `id: reads, match: [/pages/**, GET /list], key: [path], reads: true, ${once}`,
      `id: writes, match: [/items/**, GET /items], key: [path], ${once}`,
    ),
  })
  t.equal(await applies('/pages/1', {}, 'GET'), true)
  t.equal(await applies('/list', {}, 'POST'), false)
  t.equal(await ask('/list', {}, 'GET'), 200)
  t.equal(await ask('/list', {}, 'HEAD'), 429, 'HEAD counts as GET')
  t.equal(await ask('/pages/2', {}, 'OPTIONS'), 429)
  const preflight = { origin: 'https://app.example', 'access-control-request-method': 'POST' }
  t.equal(await ask('/pages/2', preflight, 'OPTIONS'), 429)
  for (const method of ['GET', 'HEAD', 'OPTIONS']) t.equal(await applies('/items', {}, method), false, method)
  t.equal(await applies('/items', {}, 'PUT'), true)
})

t.test('the credentials setting decides which requests are authenticated', async t => {
  const { applies } = await begin(t, 'credentials: { headers: [x-token], cookies: [sid, "app_*_id"] }', {
    'volumetric.yaml': rulesOf(
      `id: known, match: ["POST /{case}"], key: [full-path], when: { authenticated: true }, ${once}`,
    ),
  })
  for (const [headers, authenticated] of [
    [{ 'x-token': 'a' }, true],
    [{ 'x-token': '' }, false],
    [{ authorization: 'Bearer x' }, false],
    [{ cookie: 'a=1; SID=2' }, true],
    [{ cookie: 'sid=' }, false],
    [{ cookie: 'sids=1; xsid=1; session=1' }, false],
    [{ cookie: 'App_main_Id=1' }, true],
    [{ cookie: 'app_id=1' }, false],
  ] as const) {
    const path = `/${encodeURIComponent(JSON.stringify(headers)).replace(/%/g, '')}`
    t.equal(await applies(path, headers), authenticated, JSON.stringify(headers))
  }
})

onEachStore(t, 'a request with cost 3 is charged three units', async (t, store) => {
  const { ask } = await begin(t, await store.settings(t), {
    'volumetric.yaml': rulesOf(
      'id: heavy, match: [POST /export], key: [project], cost: 3, quota: { requests: 10, per: 1m }, mode: enforce',
    ),
  })
  const seen: number[] = []
  for (let i = 0; i < 4; i += 1) seen.push(await ask('/export'))
  t.same(seen, [200, 200, 200, 429])
})

t.test('counters of a rule with a "when" are found and reset by their key alone', async t => {
  const { gateway, ask } = await begin(t, '', {
    'volumetric.yaml': rulesOf(
      `id: narrow, match: [POST /narrow], key: [client-ip], when: { networks: [203.0.113.0/24], authenticated: true, plans: [growth] }, ${once}`,
    ),
  })
  const headers = { 'x-forwarded-for': '203.0.113.9', authorization: 'Bearer x' }
  t.same([await ask('/narrow', headers), await ask('/narrow', headers)], [200, 429])
  const counters = await send(`${gateway.adminUrl}/projects/acme/counters?ip=203.0.113.9`)
  t.match(counters.body, /"rule":"narrow"[^\]]*"used":1,"attempted":2/)
  const reset = await send(`${gateway.adminUrl}/counters/narrow?ip=203.0.113.9`, { method: 'DELETE' })
  t.equal(reset.status, 200)
  t.equal(await ask('/narrow', headers), 200)
})
