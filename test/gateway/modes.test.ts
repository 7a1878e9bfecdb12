/** Temporary modes set through the admin port: in one process, and over Redis across all gateways and workers. */
import { writeFileSync } from 'node:fs'
import { mock } from 'node:test'
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { type TestGatewayOptions, testGateway } from '../helpers/gateway.js'
import { send, startApp } from '../helpers/http.js'
import { matchList } from '../helpers/lists.js'
import { redisCommand, startRedis } from '../helpers/redis.js'
import { stores } from '../helpers/stores.js'
import { twoWorkers } from '../helpers/two-workers.js'
import { waitUntil } from '../helpers/wait.js'

const POLICIES = {
  'limits.yaml': `version: 1
kind: project-limits
buckets: { all: ["*"], tight: [/tight/**], free: [/free] }
limits: [{ for: [{}], quotas: { all: { sustained: 3 }, tight: { sustained: 1 }, free: unlimited } }]
`,
  'tried.yaml': `version: 1
kind: project-limits
mode: report-only
buckets: { tried: [/tried] }
limits: [{ for: [{}], quotas: { tried: { sustained: 1 } } }]
`,
  'flood.yaml': `version: 1
kind: volumetric
rules:
  - { id: flood, match: [/flood], key: [project], quota: { requests: 1, per: 60s } }
  - { id: shared, match: [/shared], key: [client-ip], quota: { requests: 1, per: 60s }, enforceFor: 50% }
`,
  'slots.yaml': `version: 1
kind: in-flight
rules: [{ id: slow, match: [/slow], key: [project] }]
`,
  'access.yaml': `version: 1
kind: access
rules: [{ id: scraper, networks: [203.0.113.0/24], action: deny, mode: enforce, since: 2026-11-01 }]
`,
}

const REPORT = { mode: 'report-only', why: 'It refuses honest people.', by: 'anna' }
const ENFORCE = { mode: 'enforce', why: 'A flood.' }

type Told = Readonly<Record<string, unknown>>

async function start(t: Test, settings: string, more: Partial<TestGatewayOptions> = {}) {
  const upstream = await startApp(t, (_req, res) => res.end('here'))
  const gateway = await testGateway(t, {
    upstream,
    policies: POLICIES,
    ...more,
    settings: `${settings}\ntrustedProxies: [127.0.0.1]`,
  })
  return { ...gateway, ...callsOf(gateway) }
}

function callsOf({ url, adminUrl }: { url: string; adminUrl: string }) {
  const headers = { 'content-type': 'application/json' }
  const json = async <T = Record<string, Told[]>>(path: string) => (await send(adminUrl + path)).json<T>()
  return {
    get: (path: string, client = '192.0.2.1') =>
      send(url + path, { method: 'POST', headers: { host: 'acme.localhost', 'x-forwarded-for': client } }),
    put: (id: string, body: object) =>
      send(`${adminUrl}/rules/${id}/mode`, { method: 'PUT', headers, body: JSON.stringify(body) }),
    undo: (id: string) => send(`${adminUrl}/rules/${id}/mode?why=done&by=anna`, { method: 'DELETE' }),
    json,
    modes: async () => (await json('/state')).modes as Told[],
    overrides: async () => (await json('/overrides')).overrides as Told[],
    explain: async (target: string) =>
      (
        await send(`${adminUrl}/explain`, {
          method: 'POST',
          headers,
          body: JSON.stringify({ method: 'POST', target, host: 'acme.localhost' }),
        })
      ).json(),
  }
}

async function statuses(times: number, ask: () => Promise<{ status: number }>): Promise<number[]> {
  const all: number[] = []
  for (let i = 0; i < times; i += 1) all.push((await ask()).status)
  return all
}

for (const store of stores) {
  t.test(`temporary modes, ${store.name}`, async t => {
    if ((await store.settings(t)) === undefined) return
    const startFresh = async (t: Test) => start(t, (await store.settings(t)) as string)

    t.test(
      'a bucket made report-only stops refusing at once, still takes its requests, and can go back',
      async t => {
        const { get, put, undo, lines } = await startFresh(t)
        t.same(await statuses(2, () => get('/tight/a')), [200, 429])
        const made = await put('tight', REPORT)
        t.match(made, { status: 201 })
        t.match(made.json(), {
          rule: 'tight',
          mode: 'report-only',
          declared_mode: 'enforce',
          in_force: true,
          without_effect: null,
          src: '/rules/tight/mode',
          until: null,
          why: REPORT.why,
          by: 'anna',
        })
        t.same(await statuses(6, () => get('/tight/a')), [200, 200, 200, 200, 200, 200])
        t.equal((await get('/tight/a')).headers['ratelimit-policy'], undefined, 'no limit is enforced there')
        t.same(
          await statuses(4, () => get('/x')),
          [200, 200, 200, 429],
          'its requests did not use up the quota of "all"',
        )
        const record = await waitUntil('a record', () =>
          lines.find(({ decision, rule }) => decision === 'would_deny' && rule === 'tight'),
        )
        t.match(record, { mode: 'report-only', mode_src: '/rules/tight/mode', src: /limits\.yaml:4$/ })
        t.match(await undo('tight'), { status: 200 })
        t.equal((await get('/tight/a')).status, 429, 'what was counted before still counts')
        t.equal((await undo('tight')).status, 404)
      },
    )

    t.test('a temporary mode is shown next to the declared one wherever modes are shown', async t => {
      const { get, put, json, explain, modes, adminUrl } = await startFresh(t)
      await put('tight', REPORT)
      await put('flood', REPORT)
      await put('scraper', REPORT)
      const both = { mode: 'report-only', declared_mode: 'enforce' }
      const { buckets, rules } = await json('/policy?project=acme')
      t.match(
        buckets?.find(({ bucket }) => bucket === 'tight'),
        { ...both, mode_src: '/rules/tight/mode' },
      )
      t.match(rules?.[0], { rule: 'flood', ...both })
      t.notMatch(rules?.[1], { mode_src: String })
      t.match(await explain('/tight/a'), {
        bucket: { name: 'tight' },
        rules: [{ rule: 'tight', ...both, mode_src: '/rules/tight/mode' }],
      })
      await statuses(3, () => get('/tight/a'))
      t.match((await json('/projects/acme/counters')).counters?.[1], { rule: 'tight', ...both })
      t.match((await json('/access')).entries?.[0], { id: 'scraper', ...both })
      t.match(
        (await send(`${adminUrl}/metrics`)).body,
        /rule="tight".*mode="report-only",outcome="would_limit"\} 2/,
      )
      matchList(t, await modes(), [{ rule: 'tight', ...both }, { rule: 'flood' }, { rule: 'scraper' }])
      const live = (await json('/live')).rules?.filter(({ mode, declared_mode }) => mode !== declared_mode)
      matchList(t, live, [
        { id: 'flood', ...both },
        { id: 'tight', ...both },
        { id: 'scraper', ...both },
      ])
    })

    t.test('every kind of rule can be made report-only', async t => {
      const { get, put, undo } = await startFresh(t)
      t.same(await statuses(2, () => get('/flood')), [200, 429])
      t.equal((await get('/', '203.0.113.1')).status, 403)
      for (const id of ['flood', 'scraper', 'all']) t.equal((await put(id, REPORT)).status, 201, id)
      t.same(await statuses(5, () => get('/flood')), [200, 200, 200, 200, 200])
      t.same(await statuses(5, () => get('/', '203.0.113.1')), [200, 200, 200, 200, 200])
      for (const id of ['flood', 'scraper', 'all']) t.equal((await undo(id)).status, 200, id)
      t.equal((await get('/', '203.0.113.1')).status, 403)
      t.equal((await get('/flood')).status, 429)
    })

    t.test(
      'a report-only bucket that is enforced temporarily refuses in addition to the enforced one',
      async t => {
        const { get, put, undo } = await startFresh(t)
        t.same(await statuses(2, () => get('/tried')), [200, 200])
        await put('tried', ENFORCE)
        const [first, second] = [await get('/tried'), await get('/tried')]
        t.match(first, { status: 200, headers: { 'ratelimit-policy': /"all.*"tried/ } })
        t.match(second, { status: 429, body: /tried\.sustained/ })
        await undo('tried')
        t.same(
          await statuses(2, () => get('/tried')),
          [429, 429],
          '"all" refuses, because it has counted three',
        )
      },
    )

    t.test('a temporary mode ends at its time', async t => {
      const { get, put, modes } = await startFresh(t)
      await put('tight', REPORT)
      t.same(await statuses(2, () => get('/tight/a')), [200, 200])
      mock.timers.enable({ apis: ['Date'], now: Date.UTC(2100, 0, 1) })
      t.teardown(() => mock.timers.reset())
      t.equal((await put('tight', { ...REPORT, until: '2100-01-01T12:00:00Z' })).status, 200)
      t.same(await statuses(2, () => get('/tight/a')), [200, 200])
      mock.timers.setTime(Date.UTC(2100, 0, 1, 12))
      t.same(await statuses(2, () => get('/tight/a')), [200, 429])
      matchList(t, await modes(), [{ rule: 'tight', in_force: false }])
    })

    t.test('every override is listed with the call that undoes it, and logged', async t => {
      const { put, undo, overrides, adminUrl, lines } = await startFresh(t)
      await put('tight', { ...REPORT, until: '2100-01-01' })
      await send(`${adminUrl}/access/bot`, {
        method: 'PUT',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ networks: ['198.51.100.1'], action: 'deny', why: 'It scrapes.' }),
      })
      await send(`${adminUrl}/counters/all?project=acme&by=bob`, { method: 'DELETE' })
      matchList(t, await overrides(), [
        {
          kind: 'reset',
          what: 'Reset: a counter of "all" of project acme.',
          by: 'bob',
          undo: false,
          undo_call: null,
        },
        {
          kind: 'access',
          what: 'Denied: 198.51.100.1 ("bot").',
          by: '127.0.0.1',
          undo: true,
          undo_call: 'DELETE /access/bot',
        },
        {
          kind: 'mode',
          what: 'Made report-only: "tight" until 2100-01-01.',
          at: /^2\d{3}-/,
          by: 'anna',
          from: '127.0.0.1',
          why: REPORT.why,
          until: '2100-01-01',
          undo: true,
          undo_call: 'DELETE /rules/tight/mode',
        },
      ])
      await undo('tight')
      const after = await overrides()
      t.match(after[0], {
        what: 'Undone: "tight" is as its file says.',
        by: 'anna',
        why: 'done',
        undo: false,
      })
      t.match(after.at(-1), { undo: false }, 'an override that was undone cannot be undone again')
      t.same(
        lines.flatMap(({ audit }) => audit ?? []),
        ['mode-set', 'access-set', 'counter-reset', 'mode-removed'],
      )
    })

    t.test('an invalid mode is refused with a sentence', async t => {
      const { put, undo } = await startFresh(t)
      for (const [id, body, status, detail] of [
        ['tigth', REPORT, 404, 'Unknown rule "tigth". Did you mean "tight"?'],
        ['constructor', REPORT, 404, /Unknown rule "constructor"/],
        ['shared', ENFORCE, 422, /in force for a share of its keys/],
        ['tight', { mode: 'report-only' }, 400, /"why" is missing/],
        ['tight', { ...REPORT, mode: 'off' }, 400, /one of enforce, report-only/],
        ['tight', { ...REPORT, until: 'tomorrow' }, 422, /"until" must be a day/],
        ['tight', { ...REPORT, until: '2020-01-01' }, 422, /is in the past/],
        ['tight', { ...REPORT, mood: 1 }, 400, /"mood" is unknown/],
        ['x'.repeat(65), REPORT, 400, /"id" in the path/],
      ] as const) {
        const answer = await put(id, body)
        t.equal(answer.status, status, `${id} ${JSON.stringify(body)}`)
        t.match(answer.json().detail, detail)
      }
      t.match(await undo('tight'), { status: 404, body: /has set no mode/ })
    })
  })
}

t.test('a rule enforced for a share reports for all keys when it is made report-only', async t => {
  const { get, put } = await start(t, '')
  const refusedOf = async () => {
    const clients = Array.from({ length: 20 }, (_, i) => `192.0.2.${i + 10}`)
    for (const client of clients) await get('/shared', client)
    return (await Promise.all(clients.map(client => get('/shared', client)))).filter(({ body }) =>
      /"violated-policies":\["shared"\]/.test(body),
    ).length
  }
  await put('all', REPORT)
  const refused = await refusedOf()
  t.ok(refused > 0 && refused < 20, `${refused} of 20`)
  await put('shared', REPORT)
  t.equal(await refusedOf(), 0)
})

t.test('a slot is given back even when its rule’s mode has changed', async t => {
  const waiting: (() => void)[] = []
  const upstream = await startApp(t, (_req, res) => waiting.push(() => res.end('done')))
  const gateway = await testGateway(t, { upstream, policies: POLICIES })
  const { get, put, undo, json } = callsOf(gateway)
  const first = get('/slow')
  await waitUntil('the slot is taken', () => waiting.length === 1)
  t.equal((await get('/slow')).status, 429)
  await put('slow', REPORT)
  const others = [get('/slow'), get('/slow')]
  await waitUntil('both pass', () => waiting.length === 3)
  await undo('slow')
  t.equal((await get('/slow')).status, 429, 'the first request still holds its slot')
  for (const end of waiting) end()
  t.same(
    (await Promise.all([first, ...others])).map(({ status }) => status),
    [200, 200, 200],
  )
  await waitUntil('none is held', async () => (await json<{ total: number }>('/slots')).total === 0)
})

t.test('a mode survives reloads, and has no effect while its rule does not exist', async t => {
  const { get, put, modes, overrides, folder, reloader } = await start(t, '')
  const flood = `${folder}/policies/flood.yaml`
  await put('flood', REPORT)
  writeFileSync(flood, POLICIES['flood.yaml'].replace('id: flood', 'id: renamed'))
  await reloader.reload('admin')
  matchList(t, await modes(), [
    { rule: 'flood', declared_mode: null, in_force: false, without_effect: 'No rule is called "flood" now.' },
  ])
  t.same(await statuses(2, () => get('/flood')), [200, 429])
  matchList(t, await overrides(), [{ undo: true }], 'the mode can still be undone')
  writeFileSync(flood, POLICIES['flood.yaml'].replace('requests: 1', 'requests: 2'))
  await reloader.reload('admin')
  await put('all', REPORT)
  t.same(await statuses(4, () => get('/flood')), [200, 200, 200, 200])
})

t.test('a thousand modes are kept, and one more gets 409', async t => {
  const ids = Array.from({ length: 1001 }, (_, i) => `rule-${i}`)
  const rules = ids.map(
    id => `  - { id: ${id}, match: [/${id}], key: [project], quota: { requests: 1, per: 60s } }\n`,
  )
  const policies = { 'flood.yaml': `version: 1\nkind: volumetric\nrules:\n${rules.join('')}` }
  const { get, put, overrides } = await start(t, '', { policies })
  for (let i = 0; i < 1000; i += 50) {
    const made = await Promise.all(ids.slice(i, i + 50).map(id => put(id, REPORT)))
    if (made.some(({ status }) => status !== 201)) t.fail(`not all of ${i} to ${i + 49} were kept`)
  }
  t.match(await put('rule-1000', REPORT), { status: 409, body: /There are 1000 modes/ })
  t.equal((await put('rule-7', REPORT)).status, 200, 'an existing mode can still be changed')
  t.equal((await overrides()).length, 200, 'the list of overrides is bounded')
  t.same(await statuses(3, () => get('/rule-999')), [200, 200, 200])
  t.same(await statuses(2, () => get('/rule-1000')), [200, 429])
})

t.test('gateways on one Redis share modes, even when Redis lost its data', async t => {
  if (!redisCommand(t)) return
  const redis = await startRedis()
  t.teardown(() => redis.stop())
  const settings = `redis: ${redis.url}`
  const [one, other] = [await start(t, settings), await start(t, settings)]
  t.equal((await one.put('tight', REPORT)).status, 201)
  t.match(await other.undo('tight'), { status: 200 }, 'the other gateway knows the mode at once')
  t.equal((await other.put('tight', REPORT)).status, 201)
  await waitUntil('the first follows', async () => (await one.modes()).length === 1, 3000)
  const third = await start(t, settings)
  t.same(
    await statuses(3, () => third.get('/tight/a')),
    [200, 200, 200],
    'the mode applies from the first request on',
  )
  t.same(await third.overrides(), await other.overrides(), 'all gateways list the same overrides')

  const set = (gateway: typeof one, id: string) => gateway.put(id, REPORT)
  t.same(
    (await Promise.all([set(one, 'all'), set(other, 'flood'), set(third, 'scraper'), one.undo('tight')])).map(
      ({ status }) => status,
    ),
    [201, 201, 201, 200],
    'simultaneous changes all succeed',
  )
  await waitUntil(
    'all agree',
    async () => (await one.modes()).length === 3 && (await other.modes()).length === 3,
  )
  const overrides = (await one.overrides()).length
  const client = new Redis(redis.url)
  await client.flushall()
  await waitUntil(
    'what was lost is put back',
    async () => (await client.keys('sluice:1:*modes')).length === 1,
  )
  client.disconnect()
  await waitUntil('all still agree', async () => (await third.modes()).length === 3)
  await waitUntil('on all overrides, too', async () => (await other.overrides()).length === overrides)

  await redis.kill()
  const away = await one.put('tight', REPORT)
  t.equal(away.status, 503)
  t.match(away.json().detail, 'Redis does not answer: nothing has changed.')
  t.equal((await one.modes()).length, 3, 'the last known modes stay')
  t.equal((await one.overrides()).length, overrides, 'an override that failed is not listed')
})

t.test('a mode applies on all workers, including one started later', async t => {
  const gateway = await twoWorkers(t, POLICIES)
  if (gateway === undefined) return
  const { get, put, json, overrides } = callsOf(gateway)
  const passes = async () => (await statuses(8, () => get('/tight/a'))).every(status => status === 200)
  t.notOk(await passes())
  t.equal((await put('tight', REPORT)).status, 201)
  t.ok(await passes(), 'as soon as the call is answered')
  t.match((await json('/policy?project=acme')).buckets?.[1], { bucket: 'tight', mode: 'report-only' })
  const pids = async () => ((await json('/state')).workers ?? []).map(({ pid }) => Number(pid))
  const [killed] = (await pids()) as [number]
  process.kill(killed, 'SIGKILL')
  const isReplaced = async () => {
    const now = await pids()
    return now.length === 2 && !now.includes(killed)
  }
  await waitUntil('another takes its place', isReplaced, 20_000)
  t.ok(await passes())
  matchList(t, await overrides(), [{ kind: 'mode' }])
})
