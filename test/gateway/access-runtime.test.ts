/** Access entries of the admin port: in one process, and over Redis across all gateways and workers. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { mock } from 'node:test'
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { type TestGatewayOptions, testGateway } from '../helpers/gateway.js'
import { send, startApp } from '../helpers/http.js'
import { matchList } from '../helpers/lists.js'
import { oneBucket } from '../helpers/policies.js'
import { redisCommand, startRedis } from '../helpers/redis.js'
import { stores } from '../helpers/stores.js'
import { twoWorkers } from '../helpers/two-workers.js'
import { waitUntil } from '../helpers/wait.js'

const FILE = `version: 1
kind: access
rules: [{ id: written, networks: [192.0.2.7], action: deny, mode: enforce, since: 2026-11-01 }]
`

async function start(t: Test, settings: string, more: Partial<TestGatewayOptions> = {}) {
  const upstream = await startApp(t, (_req, res) => res.end('here'))
  const policies = { 'access.yaml': FILE, 'limits.yaml': oneBucket(100) }
  const gateway = await testGateway(t, {
    upstream,
    policies,
    ...more,
    settings: `${settings}\ntrustedProxies: [127.0.0.1]`,
  })
  return { ...gateway, ...callsOf(gateway) }
}

function callsOf({ url, adminUrl }: { url: string; adminUrl: string }) {
  return {
    from: async (client: string) =>
      (await send(url, { headers: { host: 'acme.localhost', 'x-forwarded-for': client } })).status,
    put: (id: string, body: object) =>
      send(`${adminUrl}/access/${id}`, {
        method: 'PUT',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      }),
    remove: (id: string) => send(`${adminUrl}/access/${id}?why=done&by=anna`, { method: 'DELETE' }),
    list: async () =>
      (await send(`${adminUrl}/access`)).json<{ entries: Record<string, unknown>[] }>().entries,
  }
}

const DENY = { networks: ['203.0.113.0/24'], action: 'deny', why: 'It scrapes.', by: 'anna' }

for (const store of stores) {
  t.test(`entries of the admin port, ${store.name}`, async t => {
    if ((await store.settings(t)) === undefined) return
    const startFresh = async (t: Test) => start(t, (await store.settings(t)) as string)

    t.test('apply at once, are listed with who set them and why, and can be removed', async t => {
      const { from, put, remove, list, lines, adminUrl } = await startFresh(t)
      t.equal(await from('203.0.113.9'), 200)
      const made = await put('scraper', DENY)
      t.equal(made.status, 201)
      t.match(made.json(), {
        id: 'scraper',
        action: 'deny',
        mode: 'enforce',
        src: '/access/scraper',
        in_force: true,
      })
      t.equal(await from('203.0.113.9'), 403)
      matchList(t, await list(), [
        { id: 'written', src: /access\.yaml:3$/, since: '2026-11-01', why: null },
        {
          id: 'scraper',
          networks: ['203.0.113.0/24'],
          why: 'It scrapes.',
          by: 'anna',
          since: /^2\d{3}-/,
          until: null,
        },
      ])
      t.match(
        lines.find(({ audit }) => audit === 'access-set'),
        { level: 'warn', id: 'scraper', why: 'It scrapes.', by: 'anna' },
      )
      const record = await waitUntil('a record', () => lines.find(({ decision }) => decision === 'deny'))
      t.match(record, { rule: 'scraper', src: '/access/scraper', would_status: 403 })
      t.match((await send(`${adminUrl}/metrics`)).body, /rule="run-time-access",.*outcome="limited"\} 1/)
      const explained = await send(`${adminUrl}/explain`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ method: 'GET', target: '/', host: 'acme.localhost', ip: '203.0.113.9' }),
      })
      t.match(explained.json(), { access: [{ entry: 'scraper', why: 'It scrapes.', set_by: 'anna' }] })

      t.equal((await put('scraper', { ...DENY, networks: ['203.0.113.9'], action: 'exempt' })).status, 200)
      t.equal(await from('203.0.113.9'), 200, 'the changed entry applies')
      t.equal((await put('scraper', DENY)).status, 200)
      t.equal((await remove('scraper')).status, 200)
      t.equal(await from('203.0.113.9'), 200)
      t.match(
        lines.find(({ audit }) => audit === 'access-removed'),
        { id: 'scraper', why: 'done', by: 'anna' },
      )
      t.equal((await remove('scraper')).status, 404)
    })

    t.test('share one lookup with the files, in which the longest network wins', async t => {
      const { from, put } = await startFresh(t)
      await put('wide', { ...DENY, networks: ['192.0.0.0/8'], action: 'exempt' })
      t.equal(await from('192.0.2.7'), 403, 'the file’s entry is more specific')
      await put('wide', { ...DENY, networks: ['192.0.2.7'], action: 'exempt' })
      t.equal(await from('192.0.2.7'), 403, 'deny wins between equal networks')
      await put('wide', { ...DENY, networks: ['192.0.2.0/24'] })
      t.equal(await from('192.0.2.8'), 403)
    })

    t.test('end at their time', async t => {
      const { from, put, list } = await startFresh(t)
      mock.timers.enable({ apis: ['Date'], now: Date.UTC(2100, 0, 1) })
      t.teardown(() => mock.timers.reset())
      t.equal((await put('short', { ...DENY, until: '2100-01-01' })).status, 201)
      t.equal(await from('203.0.113.9'), 403)
      mock.timers.setTime(Date.UTC(2100, 0, 2))
      t.equal(await from('203.0.113.9'), 200)
      t.match((await list()).at(-1), { id: 'short', in_force: false })
      await put('next', DENY)
      t.notOk(
        (await list()).some(({ id }) => id === 'short'),
        'an ended entry is dropped with the next change',
      )
    })

    t.test('are refused with a sentence when invalid', async t => {
      const { put, remove, adminUrl } = await startFresh(t)
      t.equal((await put('constructor', DENY)).status, 201, 'an entry may have the name of an Object member')
      for (const [id, body, status, detail] of [
        ['written', DENY, 409, /"written" is already used at .*access\.yaml:3/],
        ['all', DENY, 409, /"all" is already used at .*limits\.yaml:3/],
        ['x.trial', DENY, 422, /a name that does not end in ".trial"/],
        ['run-time-access', DENY, 422, /choose another name/],
        ['one', { ...DENY, why: undefined }, 400, /"why" is missing/],
        ['one', { ...DENY, networks: ['203.0.113.9/24'] }, 422, /Write "203.0.113.0\/24"/],
        ['one', { ...DENY, networks: ['here'] }, 422, /not an address or network/],
        ['one', { ...DENY, projects: ['acme'] }, 422, /either networks or projects/],
        ['one', { ...DENY, networks: undefined }, 422, /either networks or projects/],
        ['one', { ...DENY, networks: undefined, projects: ['acmee'] }, 404, /no project "acmee"/],
        ['one', { ...DENY, networks: undefined, projects: ['host:Any.Example'] }, 422, /in lowercase/],
        ['one', { ...DENY, until: 'tomorrow' }, 422, /"until" must be a day/],
        ['one', { ...DENY, until: '2020-01-01' }, 422, /is in the past/],
        ['one', { ...DENY, action: 'block' }, 400, /one of exempt, deny/],
        ['one', { ...DENY, until: '2100-12' }, 422, /"until" must be a day/],
        ['one', { ...DENY, why: ' \t' }, 400, /"why" in the body may not be blank/],
        ['one', { ...DENY, networks: [] }, 400, /"networks" in the body needs at least 1/],
        ['One', DENY, 400, /"id" in the path must begin with a lowercase letter/],
      ] as const) {
        const answer = await put(id, body)
        t.equal(answer.status, status, JSON.stringify(body))
        t.match(answer.json().detail, detail)
      }
      const body = '{"why":"done"}'
      const headers = { 'content-type': 'application/json', 'content-length': String(body.length) }
      const removal = { method: 'DELETE', headers, body }
      t.match(await send(`${adminUrl}/access/constructor`, removal), {
        status: 400,
        body: /put why and by into the query/,
      })
      t.equal((await remove('constructor')).status, 200)
    })
  })
}

t.test('entries of the admin port require its key', async t => {
  const { put } = await start(t, '', { adminKey: 'canary-0123456789abcdef' })
  t.equal((await put('scraper', DENY)).status, 401)
})

t.test('a thousand entries are kept, and one more gets 409', async t => {
  const { put } = await start(t, '')
  for (let i = 0; i < 1000; i += 1) {
    const { status } = await put(`entry-${i}`, { ...DENY, networks: [`10.0.${i >> 8}.${i & 255}`] })
    if (status !== 201) t.equal(status, 201, `entry ${i}`)
  }
  const beyond = await put('beyond', DENY)
  t.equal(beyond.status, 409)
  t.match(beyond.json().detail, 'There are 1000 entries')
  t.equal((await put('entry-7', DENY)).status, 200, 'an existing entry can still be changed')
})

t.test('two gateways share entries, even after a restart and while Redis is away', async t => {
  if (!redisCommand(t)) return
  const redis = await startRedis()
  t.teardown(() => redis.stop())
  const settings = `redis: ${redis.url}`
  const [one, other] = [await start(t, settings), await start(t, settings)]
  t.equal((await one.put('scraper', DENY)).status, 201)
  t.equal(await one.from('203.0.113.9'), 403)
  await waitUntil('the other follows', async () => (await other.from('203.0.113.9')) === 403, 3000)
  const third = await start(t, settings)
  t.equal(await third.from('203.0.113.9'), 403, 'the entry applies from the first request on')

  const client = new Redis(redis.url)
  await client.flushall()
  await waitUntil(
    'what was lost is put back',
    async () => (await client.hexists('sluice:1:access', 'scraper')) === 1,
  )
  client.disconnect()
  t.equal(await one.from('203.0.113.9'), 403)

  await redis.kill()
  t.equal(await other.from('203.0.113.9'), 403, 'the last known entries stay')
  const refused = await one.put('late', DENY)
  t.equal(refused.status, 503)
  t.match(refused.json().detail, 'Redis does not answer')
  await redis.restart()
  await waitUntil('Redis is back', async () => (await other.remove('scraper')).status === 200, 10_000)
  await waitUntil('all follow', async () => (await one.from('203.0.113.9')) === 200, 5000)
})

t.test(
  'when Redis does not answer a change, the refusal does not claim that nothing has changed',
  async t => {
    if (!redisCommand(t)) return
    const redis = await startRedis()
    t.teardown(() => redis.stop())
    const proxy = createServer(client => {
      const server = connect(redis.port, '127.0.0.1')
      server.on('error', () => client.destroy()).pipe(client)
      client.on('error', () => server.destroy()).on('close', () => server.destroy())
      client.on('data', bytes => {
        if (bytes.includes('$4\r\neval\r\n')) server.unpipe(client).resume()
        server.write(bytes)
      })
    })
    await once(proxy.listen(0, '127.0.0.1'), 'listening')
    t.teardown(() => proxy.close())
    const { port } = proxy.address() as AddressInfo
    const { from, put } = await start(t, `redis: redis://127.0.0.1:${port}`)
    const answer = await put('scraper', DENY)
    t.equal(answer.status, 503)
    t.match(answer.json().detail, 'the change may or may not have been made')
    await waitUntil('what Redis did is in force', async () => (await from('203.0.113.9')) === 403)
  },
)

t.test('entries stored in another form by another release are logged, and affect no request', async t => {
  if (!redisCommand(t)) return
  const redis = await startRedis()
  t.teardown(() => redis.stop())
  const client = new Redis(redis.url)
  t.teardown(() => client.disconnect())
  const { from, put, lines, adminUrl } = await start(t, `redis: ${redis.url}`)
  t.equal((await put('scraper', DENY)).status, 201)
  const kept = await client.hget('sluice:1:access', 'scraper')
  const other = { ...JSON.parse(kept ?? ''), networks: { v4: ['192.0.2.0/24'] } }
  await client.hset('sluice:1:access', { later: JSON.stringify(other), nothing: 'null', torn: '{"id":' })
  const modes = { all: 'null', written: '{"rule":"written","mode":"off","at":"","by":""}' }
  await client.hset('sluice:1:{sluice:1:access}:modes', modes)
  await client.hset('sluice:1:{sluice:1:access}:overrides', 'one', '7')
  const [, since, ids] = String(await client.hget('sluice:1:access', '#')).split('.')
  await client.hset('sluice:1:access', '#', `99.${since}.another,${ids}`)
  const unread = () => lines.filter(({ msg }) => /cannot be read/.test(String(msg)))
  await waitUntil('the log names them', () => unread().length === 6, 3000)
  t.same(
    unread()
      .map(({ collection, id }) => `${collection} ${id}`)
      .sort(),
    ['access later', 'access nothing', 'access torn', 'modes all', 'modes written', 'overrides one'],
  )
  t.equal(await from('198.51.100.1'), 200)
  t.equal(await from('203.0.113.9'), 403, 'readable entries still apply')
  for (const path of ['/access', '/overrides', '/live', '/state'])
    t.equal((await send(adminUrl + path)).status, 200, path)
})

t.test('an entry applies on all workers', async t => {
  const gateway = await twoWorkers(t, { 'limits.yaml': oneBucket(1000) }, { trustedProxies: ['127.0.0.1'] })
  if (gateway === undefined) return
  const { from, put } = callsOf(gateway)
  t.equal((await put('scraper', DENY)).status, 201)
  const answers = await Promise.all(Array.from({ length: 20 }, () => from('203.0.113.9')))
  t.same(answers, Array(20).fill(403), 'as soon as the call is answered')
  t.equal(await from('192.0.2.1'), 200)
})
