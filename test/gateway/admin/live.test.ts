/** What an operator sees of a running gateway: `/live`, its stream, its history, and what a reload changed. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import t from 'tap'
import type { LiveChanges, LiveHistory, LiveSnapshot } from '../../../gateway/admin/live-snapshot.js'
import { send } from '../../helpers/http.js'
import { matchList } from '../../helpers/lists.js'
import { openLive } from '../../helpers/live.js'
import { redisCommand, redisUrl, startRedis } from '../../helpers/redis.js'
import { waitUntil } from '../../helpers/wait.js'
import { KEY, POLICIES, start } from './operated.js'

for (const [name, redis] of [
  ['in this process', async () => ''],
  ['in Redis', redisUrl],
] as const) {
  t.test(`a stream shows rules, projects, counters and slots as they are used, ${name}`, async t => {
    const url = await redis(t)
    if (url === undefined) return
    const { adminUrl, ask, post, finish, lines } = await start(t, `redis: "${url}"\nstore: { deadline: 2s }`)
    const live = await openLive(t, adminUrl)
    const first = await live.next('a snapshot at once')
    t.match(first, {
      revision: /^sha256:/,
      workers: { length: 0 },
      process: { pid: process.pid, rss_bytes: Number },
      missing: { length: 0 },
      reload: null,
      store: { kind: url === '' ? 'memory' : 'redis', state: 'ok' },
      closest: { length: 0 },
    })
    t.same(
      first.rules.map(({ id, kind, mode, trial }) => [id, kind, mode, trial]),
      [
        ['flood', 'volumetric', 'enforce', false],
        ['by-ip', 'volumetric', 'enforce', false],
        ['by-header', 'volumetric', 'enforce', false],
        ['slow', 'in-flight', 'enforce', false],
        ['all', 'project-limits', 'enforce', false],
        ['reads', 'project-limits', 'enforce', false],
      ],
      'rules are in the order of the files',
    )
    t.match(first.rules[0], { src: /flood\.yaml:4$/, key: ['project'], declared_mode: 'enforce' })

    const slow = post('/slow/1')
    t.equal(await post('/flood'), 200)
    t.equal(await post('/flood'), 429)
    const seen = await live.next(
      'what was asked',
      ({ rates, slots }) => rates.refused > 0 && slots.length > 0,
    )
    t.match(
      seen.rules.find(({ id }) => id === 'flood'),
      { last_hour: { allowed: 0, near: 1, limited: 1, would_limit: 0, error: 0 } },
    )
    matchList(t, seen.projects, [{ id: 'acme', plan: 'growth', environment: 'production' }])
    t.match(seen.projects[0]?.last_hour, { refused: 1, would_refuse: 0 })
    t.match(seen.closest[0], {
      rule: 'flood',
      policy: 'flood',
      project: 'acme',
      key: /^[\w-]{16}$/,
      quota: 1,
      window_ms: 60_000,
    })
    matchList(t, seen.slots, [{ rule: 'slow', held: 1 }])
    matchList(t, seen.upstreams, [{ name: 'app', addresses: [{ state: 'ok', in_flight: 1 }] }])
    t.equal(seen.in_flight, 1)
    finish()
    t.equal(await slow, 200)
    await live.next('the slot is back', ({ slots, in_flight }) => slots.length === 0 && in_flight === 0)
    t.match(
      (await ask('/live')).json<LiveSnapshot>().rules.length,
      6,
      '/live returns one snapshot without a stream',
    )
    t.notOk(lines.some(({ level }) => level === 'error'))
  })
}

t.test('a Redis that is away is reported with its time, even without requests', async t => {
  if (redisCommand(t) === undefined) return
  const redis = await startRedis()
  t.teardown(() => redis.stop())
  const admin = new Redis(redis.url)
  await admin.config('SET', 'requirepass', 'canary-password')
  admin.disconnect()
  const address = redis.url.replace('redis://', 'redis://:canary-password@')
  const { adminUrl, ask } = await start(t, `redis: "${address}"\nstore: { deadline: 200ms }`)
  const live = await openLive(t, adminUrl)
  t.match(await live.next('a snapshot'), { store: { kind: 'redis', address: redis.url, state: 'ok' } })
  const killed = new Date().toISOString()
  await redis.kill()
  const told = (wanted: string) =>
    waitUntil(`that it is ${wanted}`, () => {
      const { store } = live.snapshots.at(-1) as LiveSnapshot
      return store.state === wanted && store
    })
  t.ok((await told('away')).since >= killed)
  t.match((await ask('/metrics')).body, 'sluice_store_fallback_active 1\n')
  await redis.restart()
  await told('ok')
  t.match((await ask('/metrics')).body, 'sluice_store_fallback_active 0\n')
  redis.pause()
  await told('away')
  redis.resume()
  await told('ok')
  t.notMatch(JSON.stringify(live.snapshots), 'canary')
})

t.test('the history of an unused rule is empty, and that of an unknown one gets 404', async t => {
  const { ask } = await start(t)
  const nothing = { from: String, step_ms: 10_000, points: [] }
  t.matchOnly((await ask('/live/history?rule=reads')).json<LiveHistory>(), nothing)
  t.matchOnly((await ask('/live/history')).json<LiveHistory>(), nothing)
  t.match(await ask('/live/history?rule=nothing'), { status: 404, body: /no bucket or rule \\"nothing\\"/ })
  t.match(await ask('/live/history?project=nobody'), { status: 404 })
  for (const wrong of ['?rule=all&project=acme', '?rule=', '?since=1']) {
    t.equal((await ask(`/live/history${wrong}`)).status, 400, wrong)
  }
})

t.test('a reload reports what it changed, or what was wrong', async t => {
  const { adminUrl, ask, folder } = await start(t)
  const live = await openLive(t, adminUrl)
  const { revision } = await live.next('a snapshot')
  t.equal((await ask('/changes')).json(), null)
  const file = join(folder, 'policies', 'flood.yaml')
  writeFileSync(file, POLICIES['flood.yaml'].replace('requests: 1,', 'requests: 5,'))
  t.equal((await ask('/reload', 'POST')).status, 200)
  const next = await live.next('the new revision', one => one.revision !== revision)
  t.match(next, { reload: { result: 'loaded', problems: { length: 0 } } })
  const { at: _, ...told } = (await ask('/changes')).json<LiveChanges>()
  t.same(told, {
    from: revision,
    to: next.revision,
    changes: [
      { heading: 'Endpoint rules', change: 'changed', sentence: 'flood: quota 1 per 60 s → 5 per 60 s' },
    ],
  })
  writeFileSync(file, 'version: 1\nkind: volumetric\nrules: 5\n')
  await ask('/reload', 'POST')
  const { reload } = await live.next('the problem', one => one.reload?.result === 'refused')
  matchList(t, reload?.problems, [{ file, line: 3, column: 8, path: 'rules', sentence: String }])
  t.match((await ask('/changes')).json<LiveChanges>(), { to: next.revision })
})

t.test('an override that can be undone is listed, however many followed it', async t => {
  const { adminUrl, ask } = await start(t)
  const set = await send(`${adminUrl}/rules/all/mode`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ mode: 'report-only', why: 'imports' }),
  })
  t.equal(set.status, 201)
  for (let i = 0; i < 60; i++) await ask('/counters/all?project=acme', 'DELETE')
  const { overrides } = (await ask('/live')).json<LiveSnapshot>()
  t.equal(overrides.length, 51)
  t.match(overrides.at(-1), { kind: 'mode', undo_call: 'DELETE /rules/all/mode' })
})

t.test('a stream requires the key, at most twenty are open, and a drain ends them', async t => {
  const { adminUrl, ask, drain } = await start(t, '', KEY)
  t.equal((await openLive(t, adminUrl)).status, 401)
  t.equal((await openLive(t, adminUrl, `${KEY}x`)).status, 401)
  const streams = await Promise.all(Array.from({ length: 20 }, () => openLive(t, adminUrl, KEY)))
  t.ok(streams.every(({ status }) => status === 200))
  const headers = { authorization: `Bearer ${KEY}` }
  t.match(await send(`${adminUrl}/live/events`, { headers }), { status: 503, body: /close one/ })
  t.equal((await ask('/live/events', 'HEAD', headers)).status, 405)
  t.equal((await ask('/live', 'GET', headers)).status, 200)
  streams[0]?.close()
  await waitUntil('another may come', async () => (await openLive(t, adminUrl, KEY)).status === 200)
  await drain()
  await waitUntil('all are over', () => streams.every(one => one.ended()))
})
