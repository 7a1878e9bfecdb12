/** Wrong keys for the embedded services and for the admin port of one gateway. */
import t from 'tap'
import { gatewayProcess, writeConfig } from '../../helpers/gateway-process.js'
import { redisUrl } from '../../helpers/redis.js'

const API_KEYS = 'a-management-key-0123'
const IDENTITY_ADMIN_KEYS = 'an-identity-key-0123'
const ADMIN_KEY = 'an-admin-port-key-0123'

const gateway = (more = '') => `version: 1
listen: { host: 127.0.0.1, port: 0 }
admin: { host: 127.0.0.1, port: 0, key: "\${ADMIN_KEY}" }
trustedProxies: [127.0.0.1/32]
upstreams: { directory: { embedded: directory }, identity: { embedded: identity } }
routes: [{ path: /api/**, upstream: directory }, { path: /**, upstream: identity }]
${more}`

const env = { API_KEYS, IDENTITY_ADMIN_KEYS, ADMIN_KEY }

/** A call by the client `from`, through a trusted proxy. */
async function call(url: string, authorization: string, from: string): Promise<Response> {
  const answer = await fetch(url, { headers: { authorization, 'x-forwarded-for': from } })
  await answer.arrayBuffer()
  return answer
}

t.test('wrong keys are throttled for each area and client, and the right key is still accepted', async t => {
  const { url, adminUrl, out } = await gatewayProcess(t, writeConfig(t, gateway(), {}), env)
  const made = await fetch(`${url}/api/v1/directory-sync`, {
    method: 'POST',
    headers: { authorization: `Api-Key ${API_KEYS}`, 'content-type': 'application/json' },
    body: JSON.stringify({ tenant: 'acme', product: 'crm' }),
  })
  const { data } = (await made.json()) as { data: { id: string; scim: { secret: string } } }
  const doors: [string, string, string][] = [
    ['management', `${url}/api/v1/directory-sync/${data.id}`, API_KEYS],
    ['scim', `${url}/api/scim/v2.0/${data.id}/Users`, data.scim.secret],
    ['identity', `${url}/admin/identities`, IDENTITY_ADMIN_KEYS],
  ]
  for (const [area, door, key] of doors) {
    const tried: number[] = []
    for (let i = 0; i < 21; i += 1) {
      tried.push((await call(door, `Bearer wrong-key-${i}`, '203.0.113.7')).status)
    }
    t.same(tried, [...Array(20).fill(401), 429], area)
    const refused = await call(door, 'Bearer wrong-again', `198.51.100.${tried.length}, 203.0.113.7`)
    t.equal(refused.status, 429, `${area}: addresses the client claims make no difference`)
    t.match(refused.headers.get('retry-after'), /^[1-9]\d?$/, area)
    t.equal(
      (await call(door, 'Bearer wrong-again', '203.0.113.8')).status,
      401,
      `${area}: another client is not throttled`,
    )
    t.equal(
      (await call(door, `Bearer ${key}`, '203.0.113.7')).status,
      200,
      `${area}: the right key is accepted`,
    )
    t.equal(
      (await call(door, '', '203.0.113.7')).status,
      401,
      `${area}: a missing key does not count as a guess`,
    )
  }
  const tried: number[] = []
  for (let i = 0; i < 21; i += 1) tried.push((await call(`${adminUrl}/state`, `Bearer no-${i}`, 'x')).status)
  t.same(tried, [...Array(20).fill(401), 429])

  const metrics = await fetch(`${adminUrl}/metrics`, { headers: { authorization: `Bearer ${ADMIN_KEY}` } })
  const text = await metrics.text()
  for (const [area, refused, throttled] of [
    ...doors.map(([name]) => [name, 21, 2] as const),
    ['admin', 20, 1] as const,
  ]) {
    t.match(text, `sluice_wrong_keys_total{area="${area}",outcome="refused"} ${refused}`)
    t.match(text, `sluice_wrong_keys_total{area="${area}",outcome="throttled"} ${throttled}`)
  }
  const lines = out()
    .split('\n')
    .filter(line => line.includes('Too many wrong keys'))
  t.equal(lines.length, 1, 'one line is logged in ten seconds')
  t.match(lines[0], /"area":"management","source":"203.0.113.7"/)
  t.notMatch(out(), /wrong-key-\d/, 'no log line holds a guessed key')
})

t.test('gateways on one Redis count wrong keys together', async t => {
  const redis = await redisUrl(t)
  if (redis === undefined) return
  const folder = writeConfig(t, gateway(`redis: ${redis}\nstore: { deadline: 2s }\n`), {})
  const workers = writeConfig(
    t,
    gateway(`redis: ${redis}\nstore: { deadline: 2s }\n`).replace('port: 0 }', 'port: 0, workers: 2 }'),
    {},
  )
  const [one, two] = [await gatewayProcess(t, folder, env), await gatewayProcess(t, workers, env)]
  const tried = async (url: string, times: number) => {
    const statuses: number[] = []
    for (let i = 0; i < times; i += 1) {
      statuses.push((await call(`${url}/admin/identities`, `Bearer ${url}-${i}`, '203.0.113.7')).status)
    }
    return statuses
  }
  t.same(await tried(one.url, 15), Array(15).fill(401))
  t.same(await tried(two.url, 6), [...Array(5).fill(401), 429])
  t.equal(
    (await call(`${one.url}/admin/identities`, `Bearer ${IDENTITY_ADMIN_KEYS}`, '203.0.113.7')).status,
    200,
  )
})
