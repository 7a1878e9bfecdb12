/** Negotiated limits set on the admin port of one gateway: what they do to requests, and where they are shown. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { mock } from 'node:test'
import t from 'tap'
import { send } from '../../helpers/http.js'
import { matchList } from '../../helpers/lists.js'
import { stores } from '../../helpers/stores.js'
import { waitUntil } from '../../helpers/wait.js'
import { POLICIES, PROJECTS, type Reported, start, WHY } from './negotiating.js'

const ALL = '/projects/acme/overrides/all'

for (const store of stores) {
  t.test(`a negotiated limit, ${store.name}`, async t => {
    if ((await store.settings(t)) === undefined) return
    const startFresh = async () => start(t, (await store.settings(t)) as string)

    t.test('is in force at once, keeps what was used, and goes back when it is undone', async t => {
      const { admitted, get, put, undo, lines } = await startFresh()
      t.equal(await admitted('/x'), 3)
      const made = await put('acme', 'all', { sustained: 10, until: '2100-01-01' })
      t.match(made, { status: 201 })
      t.match(made.json(), {
        ...{ project: 'acme', bucket: 'all', quota: { sustained: 10 }, listed: true, until: '2100-01-01' },
        ...{ in_force: true, without_effect: null, src: ALL, since: /^2\d{3}-/, ...WHY },
      })
      t.equal(await admitted('/x'), 7, 'three of ten were used')
      t.equal(await admitted('/x', 'dev'), 3, 'other projects keep their limit')
      const denied = await waitUntil('its record', () =>
        lines.find(({ decision, src }) => decision === 'deny' && src === ALL),
      )
      t.match(denied, { rule: 'all', project: 'acme', counters: [{ policy: 'all.sustained', q: 10 }] })
      t.match(await put('acme', 'all', { sustained: 4 }), { status: 200 })
      t.match(await get('/x'), { status: 429, headers: { 'ratelimit-policy': /q=4;/ } })
      t.match(await put('acme', 'all', { unlimited: true }), { status: 200 })
      t.equal(await admitted('/x'), 60)
      t.match(await undo('acme', 'all'), { status: 200 })
      t.equal(await admitted('/x'), 0, 'what was counted before still counts')
      t.match(await undo('acme', 'all'), { status: 404, body: /has set no limit of project \\"acme\\"/ })
    })

    t.test('is laid over that of projects.yaml, and what it leaves out stays', async t => {
      const { get, put, undo, json } = await startFresh()
      const policies = async () => (await get('/x', 'big')).headers['ratelimit-policy']
      t.match(await policies(), /"all.burst";q=40;.*"all.sustained";q=3;/)
      const window = { name: 'daily', requests: 1000, per: '1d' }
      await put('big:corp', 'all', { sustained: 20, windows: [{ ...window, per: 'day' }] })
      t.match(await policies(), /"all.burst";q=40;.*"all.sustained";q=20;.*"all.daily";q=1000;/)
      matchList(t, (await json<{ overrides: object[] }>('/projects/big:corp/overrides')).overrides, [
        { bucket: 'all', quota: { burst: 40 }, src: /projects\.yaml:5$/, why: null, in_force: true },
        { bucket: 'all', quota: { sustained: 20 }, src: '/projects/big:corp/overrides/all', by: 'anna' },
      ])
      await undo('big:corp', 'all')
      t.match(await undo('big:corp', 'all'), {
        status: 404,
        body: /The one of the files is written at .*projects\.yaml:5/,
      })
    })

    t.test('of every shape counts as it would in projects.yaml', async t => {
      const { admitted, put, get } = await startFresh()
      await put('acme', 'all', { burst: 50 })
      t.match((await get('/x')).headers['ratelimit-policy'], /burst";q=50;.*sustained";q=3;/)
      await put('acme', 'search', { windows: [{ name: 'hour', requests: 2, per: '1h' }] })
      t.equal(await admitted('/search/x'), 2, 'a bucket that its plan has no quota for takes its requests')
      await put('acme', 'search', { sustained: 6, algorithm: 'token-bucket' })
      t.equal(await admitted('/search/x'), 6, 'the hour is no longer counted')
      await put('acme', 'search', { sustained: 9, trial: { sustained: 1 } })
      t.match(await get('/search/x'), { status: 200 })
    })

    t.test('ends at its time', async t => {
      const { admitted, get, put, set } = await startFresh()
      await put('acme', 'all', { sustained: 5 })
      t.equal(await admitted('/x'), 5)
      mock.timers.enable({ apis: ['Date'], now: Date.UTC(2100, 0, 1) })
      t.teardown(() => mock.timers.reset())
      t.equal((await put('acme', 'all', { sustained: 8, until: '2100-01-01T12:00:00Z' })).status, 200)
      t.equal(await admitted('/x'), 3)
      mock.timers.setTime(Date.UTC(2100, 0, 1, 12))
      t.match(await get('/x'), { status: 429, headers: { 'ratelimit-policy': /q=3;/ } })
      t.match(await set(), [{ in_force: false, without_effect: null }])
    })

    t.test('is shown wherever limits and overrides are', async t => {
      const { get, put, undo, json, overrides, explain, lines } = await startFresh()
      await put('acme', 'all', { sustained: 10, until: '2100-01-01' })
      await get('/x')
      const explained = await explain('/x', { project: 'acme' })
      t.match(explained, {
        rules: [{ rule: 'all', src: ALL, negotiated: { why: WHY.why, set_by: 'anna', until: '2100-01-01' } }],
      })
      t.notMatch(await explain('/x', { project: 'dev' }), { rules: [{ negotiated: Object }] })
      t.match(await json('/policy?project=acme'), { buckets: [{ bucket: 'all', sustained: 10, src: ALL }] })
      t.match(await json('/projects/acme/counters'), {
        counters: [{ rule: 'all', src: ALL, counters: [{ q: 10, used: 1 }] }],
      })
      t.match(await json('/state'), { quotas: [{ project: 'acme', bucket: 'all', in_force: true }] })
      const what = 'Negotiated: "all" for project acme, sustained 10 until 2100-01-01.'
      matchList(t, await overrides(), [
        { kind: 'quota', what, ...WHY, until: '2100-01-01', undo: true, undo_call: `DELETE ${ALL}` },
      ])
      await undo('acme', 'all')
      matchList(t, await overrides(), [
        {
          kind: 'quota',
          what: 'Undone: "all" for project acme is as the files say.',
          by: 'bob',
          undo: false,
        },
        { what, undo: false },
      ])
      t.match(
        lines.filter(({ audit }) => audit !== undefined),
        [
          { audit: 'quota-set', project: 'acme', bucket: 'all' },
          { audit: 'quota-removed', by: 'bob' },
        ],
      )
    })

    t.test('can be reset like another', async t => {
      const { admitted, put, adminUrl } = await startFresh()
      await put('acme', 'all', { sustained: 5 })
      t.equal(await admitted('/x'), 5)
      t.match(await send(`${adminUrl}/counters/all?project=acme`, { method: 'DELETE' }), { status: 200 })
      t.equal(await admitted('/x'), 5)
    })

    t.test('is combined with a mode that is set for its bucket', async t => {
      const { admitted, put, adminUrl, json } = await startFresh()
      await put('acme', 'all', { sustained: 5 })
      await send(`${adminUrl}/rules/all/mode`, {
        method: 'PUT',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ mode: 'report-only', why: 'Try' }),
      })
      t.equal(await admitted('/x'), 60)
      t.match(await json('/policy?project=acme'), {
        buckets: [{ bucket: 'all', sustained: 5, mode: 'report-only', declared_mode: 'enforce' }],
      })
      await send(`${adminUrl}/rules/all/mode`, { method: 'DELETE' })
      t.equal(await admitted('/x'), 5, 'what only reports has a counter of its own')
    })
  })
}

t.test('what cannot be negotiated is refused with a sentence', async t => {
  const { put, set, adminUrl } = await start(t)
  const windows = (count: number) =>
    Array.from({ length: count }, (_, i) => ({ name: `w${i}`, requests: 1, per: '1h' }))
  for (const [project, bucket, body, status, detail] of [
    ['acmee', 'all', { burst: 1 }, 422, 'Unknown project "acmee". Did you mean "acme"?'],
    ['__proto__', 'all', { burst: 1 }, 422, /^Unknown project "__proto__"/],
    ['client:203.0.113.7', 'all', { burst: 1 }, 422, /is a caller without a project/],
    ['acme', 'al', { burst: 1 }, 422, 'Unknown bucket "al". Did you mean "all"?'],
    ['acme', 'constructor', { burst: 1 }, 422, /^Unknown bucket "constructor"/],
    ['acme', '__proto__', { burst: 1 }, 422, /^Unknown bucket "__proto__"/],
    ['acme', 'all/x', { burst: 1 }, 422, /^Unknown bucket "all\/x"/],
    ['acme', 'all', {}, 422, /Give the quota: burst, sustained or windows, or "unlimited": true/],
    ['acme', 'all', { brust: 1 }, 422, 'brust: Unknown key "brust". Did you mean "burst"?'],
    ['acme', 'all', { burst: 0 }, 422, /^burst: Must be a whole number from 1 to 1000000000, but it is 0/],
    ['acme', 'all', { burst: '5' }, 422, /^burst: Must be a whole number.*Write it without quotes/],
    ['acme', 'all', { burst: null }, 422, /^burst: Must be a whole number/],
    ['acme', 'all', { burst: 1.5 }, 422, /^burst: Must be a whole number/],
    ['acme', 'all', { unlimited: true, burst: 1 }, 422, /has no quota: remove burst/],
    ['acme', 'all', { unlimited: false }, 422, '"unlimited" can only be true: leave it out for a quota.'],
    [
      'acme',
      'all',
      { windows: windows(8) },
      422,
      /at most 8 windows, burst and sustained among them; these are 9/,
    ],
    [
      'acme',
      'all',
      { windows: [...windows(1), ...windows(1)] },
      422,
      /^windows\[1\]\.name: The window "w0" is written twice/,
    ],
    [
      'acme',
      'all',
      { windows: [{ name: 'w', requests: 1, per: '40d' }] },
      422,
      /^windows\[0\]\.per: Must be day, week, month or lifetime/,
    ],
    [
      'acme',
      'search',
      { algorithm: 'token-bucket' },
      422,
      /"search" has no quota for growth\/production, so an override must give a window/,
    ],
    ['acme', 'export', { burst: 4 }, 422, /costs 5 could never pass: "export.burst" would admit 4/],
    ['acme', 'all', { burst: 1, why: '' }, 400, /"why" in the body may not be empty/],
    ['acme', 'all', { burst: 1, why: 1 }, 400, /"why" in the body must be text/],
    ['acme', 'all', { burst: 1, by: true }, 400, /"by" in the body must be text/],
    ['acme', 'all', { burst: 1, until: 2027 }, 400, /"until" in the body must be text/],
    ['acme', 'all', { burst: 1, until: 'soon' }, 422, /"until" must be a day/],
    ['acme', 'all', { burst: 1, until: '2020-01-01' }, 422, /is in the past/],
    ['x'.repeat(259), 'all', { burst: 1 }, 400, /"id" in the path may have at most 258 characters/],
  ] as const) {
    const answer = await put(project, bucket, body)
    t.equal(answer.status, status, JSON.stringify([project, bucket, body]))
    t.match(answer.json().detail, detail)
  }
  const call = `${adminUrl}/projects/acme/overrides/all`
  const headers = { 'content-type': 'application/json' }
  t.equal((await send(call, { method: 'PUT', headers, body: '[1]' })).status, 400)
  t.equal((await send(call, { method: 'PUT', headers, body: `{"a":"${'a'.repeat(9000)}"}` })).status, 413)
  t.equal((await send(call)).status, 405)
  t.equal((await send(`${adminUrl}/projects/acmee/overrides`)).status, 404)
  t.same(await set(), [])
})

t.test('it survives reloads, and is said to be without effect while the files leave it none', async t => {
  const { admitted, put, undo, set, json, overrides, folder, reloader } = await start(t)
  const write = (limits: string, projects = PROJECTS) => {
    writeFileSync(join(folder, 'policies/limits.yaml'), limits)
    writeFileSync(join(folder, 'projects.yaml'), projects)
    return reloader.reload('admin')
  }
  const limits = POLICIES['limits.yaml']
  await put('acme', 'all', { burst: 50 })
  await put('acme', 'export', { sustained: 5 })
  await write(limits.replace('sustained: 3', 'sustained: 6'))
  t.equal(await admitted('/x'), 6, 'what it leaves out is as in the new files')
  matchList(t, await set(), [{ in_force: true }, { in_force: true }])

  await write(limits, PROJECTS.replace('id: acme', 'id: renamed'))
  const gone = 'No project is called "acme" now.'
  matchList(t, await set(), [{ in_force: false, without_effect: gone }, { without_effect: gone }])
  t.equal(await admitted('/x'), 3)
  t.match(await json('/projects/acme/overrides'), { overrides: [{ without_effect: gone }, {}] })

  await write(limits.replaceAll('all:', 'every:'), PROJECTS.replace('all:', 'every:'))
  matchList(t, await set(), [{ without_effect: 'No bucket is called "all" now.' }, { in_force: true }])
  t.equal(await admitted('/y'), 3)

  await write(limits.replace('cost: 5', 'cost: 7'))
  matchList(t, await set(), [
    { in_force: true },
    { in_force: false, without_effect: /costs 7 could never pass/ },
  ])
  t.equal(await admitted('/export'), 1, 'as its file says')
  matchList(t, await overrides(), [{ undo: true }, { undo: true }])
  t.equal((await undo('acme', 'export')).status, 200)
  t.match(await put('acme', 'export', { sustained: 5 }), { status: 422 })
})

t.test('a share of the bucket’s file stays, and a trial of its own is listed beside the rule', async t => {
  const limits = POLICIES['limits.yaml'].replace(
    'kind: project-limits',
    'kind: project-limits\nenforceFor: 50%',
  )
  const ids = Array.from({ length: 12 }, (_, i) => `p${i}`)
  const projects = ids.map(
    id => `  - { id: ${id}, plan: growth, environment: production, hosts: [${id}.localhost] }\n`,
  )
  const { put, admitted, json } = await start(t, '', {
    policies: { 'limits.yaml': limits },
    projects: `version: 1\nprojects:\n${projects.join('')}`,
  })
  const before = await Promise.all(ids.map(id => admitted('/x', id)))
  for (const id of ids) await put(id, 'all', { sustained: 5, trial: { sustained: 4 } })
  t.same(new Set(before), new Set([3, 60]))
  for (const [i, id] of ids.entries()) {
    t.equal(await admitted('/x', id), before[i] === 3 ? 2 : 60, `${id} is inside the share or not, as before`)
  }
  const { rules } = await json<{ rules: Reported[] }>('/live')
  t.match(
    rules.find(({ id }) => id === 'all.trial'),
    { trial: true, mode: 'report-only' },
  )
})

t.test('a project has as many as its buckets, of a thousand in all, and one more gets 409', async t => {
  const ids = Array.from({ length: 1001 }, (_, i) => `p${i}`)
  const projects = ids.map(
    id => `  - { id: ${id}, plan: growth, environment: production, hosts: [${id}.localhost] }\n`,
  )
  const { put, admitted, overrides, set, get } = await start(t, '', {
    projects: `version: 1\nprojects:\n${projects.join('')}`,
  })
  for (let i = 0; i < 1000; i += 50) {
    const made = await Promise.all(ids.slice(i, i + 50).map(id => put(id, 'all', { sustained: 7 })))
    if (made.some(({ status }) => status !== 201)) t.fail(`not all of ${i} to ${i + 49} were kept`)
  }
  t.match(await put('p1000', 'all', { burst: 1 }), { status: 409, body: /There are 1000 negotiated limits/ })
  t.equal((await put('p7', 'all', { sustained: 8 })).status, 200, 'one that is set can still be changed')
  t.equal((await overrides()).length, 200)
  t.equal((await set()).length, 1000)
  t.equal(await admitted('/x', 'p999'), 7)
  t.equal(await admitted('/x', 'p7'), 8)
  t.equal(await admitted('/x', 'p1000'), 3)
  t.equal((await get('/x', 'p5')).status, 200)
})
