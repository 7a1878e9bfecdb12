/** What an operator can ask a running gateway's admin port: policy, counters, slots and resets; and who may ask. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { sluice } from '../../helpers/command.js'
import { testGateway } from '../../helpers/gateway.js'
import { send, startApp } from '../../helpers/http.js'
import { matchList } from '../../helpers/lists.js'
import { redisCommand, redisUrl, startRedis } from '../../helpers/redis.js'
import { waitUntil } from '../../helpers/wait.js'
import { KEY, start } from './operated.js'

t.test('/policy shows the effective policy of a plan and environment, or of a project', async t => {
  const { ask } = await start(t)
  const answer = await ask('/policy?plan=growth&environment=production')
  t.match(answer, { status: 200 })
  const { revision, buckets, rules } = answer.json<Record<string, Record<string, unknown>[] | string>>()
  t.match(revision, /^sha256:/)
  matchList(t, buckets, [
    { bucket: 'all', patterns: ['*'], burst: 100, sustained: 3, mode: 'enforce', src: /limits\.yaml:4$/ },
    { bucket: 'reads', patterns: ['GET /reads'], burst: 9, sustained: 90 },
  ])
  matchList(t, rules, [
    {
      rule: 'flood',
      kind: 'volumetric',
      key: ['project'],
      settings: { quota: { requests: 1, per: 60_000 } },
    },
    {},
    {},
    { rule: 'slow', kind: 'in-flight', match: ['/slow/**'], key: ['project', 'full-path'], mode: 'enforce' },
  ])
  t.match((await ask('/policy?project=acme')).json(), { project: 'acme', plan: 'growth' })
  t.equal((await ask('/policy?project=nobody')).status, 404)
  t.equal((await ask('/policy?plan=gold&environment=production')).status, 404)
  for (const wrong of ['', '?plan=growth', '?project=acme&x=1']) {
    t.match(await ask(`/policy${wrong}`), { status: 400, headers: { 'content-type': /problem\+json/ } })
  }
})

for (const [name, redis] of [
  ['in this process', async () => ''],
  ['in Redis', redisUrl],
] as const) {
  t.test(`counters of a project are shown, and one can be reset, ${name}`, async t => {
    const url = await redis(t)
    if (url === undefined) return
    const { ask, post, lines } = await start(t, `redis: "${url}"\nstore: { deadline: 2s }`)
    const used = async () => {
      const { counters } = (await ask('/projects/acme/counters')).json<{
        counters: { counters: { policy: string; used: number; left: number }[] }[]
      }>()
      return Object.fromEntries(
        counters.flatMap(one => one.counters.map(({ policy, used }) => [policy, used])),
      )
    }
    t.match(await used(), { 'all.sustained': 0, 'reads.sustained': 0, flood: 0 })
    t.equal(await post('/flood'), 200)
    t.equal(await post('/a'), 200)
    for (let i = 0; i < 3; i++) t.match(await used(), { 'all.sustained': 2, 'reads.sustained': 0, flood: 1 })
    t.equal(await post('/a'), 200)
    t.equal(await post('/a'), 429)
    t.match(await used(), { 'all.sustained': 3 })

    t.match(await ask('/counters/all?project=acme', 'DELETE'), { status: 200 })
    t.match(await used(), { 'all.sustained': 0, flood: 1 }, 'only that counter is reset')
    t.equal(await post('/a'), 200, 'a cached refusal is cleared too')
    matchList(
      t,
      lines.filter(line => line.audit !== undefined),
      [{ level: 'warn', audit: 'counter-reset', rule: 'all', project: 'acme', by: '127.0.0.1' }],
    )

    t.equal(await post('/flood'), 429)
    await ask('/counters/flood?project=acme', 'DELETE')
    t.equal(await post('/flood'), 200)
    t.equal(await post('/ip'), 200)
    await ask('/counters/all?project=acme', 'DELETE')
    t.equal(await post('/ip'), 429)
    t.match(await ask('/counters/by-ip?ip=127.0.0.1', 'DELETE'), { status: 200 })
    t.equal(await post('/ip'), 200)
    t.same((await ask('/projects/acme/counters')).json().not_shown, ['by-ip', 'by-header', 'slow'])
  })
}

t.test('while Redis is away a reset gets 503, and counters are still shown', async t => {
  if (redisCommand(t) === undefined) return
  const redis = await startRedis()
  t.teardown(() => redis.stop())
  const { ask } = await start(t, `redis: "${redis.url}"\nstore: { deadline: 200ms }`)
  await redis.kill()
  t.match(await ask('/counters/all?project=acme', 'DELETE'), { status: 503, body: /Redis does not answer/ })
  t.match(await ask('/projects/acme/counters'), { status: 200 }, 'the counters of this process are shown')
})

t.test('ids of the longest allowed length are accepted in any escaping, and longer ones get 400', async t => {
  const upstream = await startApp(t, (_req, res) => res.end('done'))
  const id = `${'a.b_c-d:'.repeat(15)}12345678`
  const rule = `r${'.long-name'.repeat(6)}123`
  const { adminUrl } = await testGateway(t, {
    upstream,
    settings: 'unknownProject: { plan: developer, environment: production, countBy: host }',
    projects: `version: 1\nprojects: [{ id: "${id}", plan: growth, environment: production }]\n`,
    policies: {
      'limits.yaml': `version: 1\nkind: project-limits\nbuckets: { ${rule}: ["*"] }\nlimits: [{ for: [{}], quotas: { ${rule}: { burst: 1 } } }]\n`,
    },
  })
  t.match([id.length, rule.length], [128, 64])
  const host = `host:${'h'.repeat(63)}.${'o'.repeat(63)}.${'s'.repeat(63)}.${'t'.repeat(61)}`
  t.equal(host.length, 258)
  const encoded = (text: string) => [...text].map(one => `%${one.charCodeAt(0).toString(16)}`).join('')
  const ask = async (path: string, method = 'GET', body = '') => {
    const headers = { 'content-type': 'application/json' }
    const answer = await send(adminUrl + path, { method, ...(body && { headers, body }) })
    return `${answer.status} ${answer.json().detail ?? ''}`
  }
  for (const name of [id, encoded(id), host, encoded(host)]) {
    t.equal(await ask(`/projects/${name}/counters`), '200 ')
    t.equal(await ask(`/policy?project=${name}`), '200 ')
    t.equal(await ask(`/counters/${rule}?project=${name}`, 'DELETE'), '200 ')
    t.equal(await ask(`/counters/${encoded(rule)}?project=${name}`, 'DELETE'), '200 ')
  }
  t.equal(await ask(`/rules/${encoded(rule)}/mode`, 'PUT', '{"mode":"enforce","why":"Here"}'), '201 ')
  t.equal(await ask(`/rules/${rule}/mode`, 'DELETE'), '200 ')
  const body = JSON.stringify({ projects: [id, host], action: 'deny', why: 'Here' })
  t.equal(await ask(`/access/${rule}x`.slice(0, -2), 'PUT', body), '201 ')
  t.match(await ask('/projects/nobody/counters'), '404 There is no project')
  const sentence = (name: string, most: number) =>
    `400 "${name}" in the path may have at most ${most} characters.`
  t.equal(await ask(`/projects/${host}x/counters`), sentence('id', 258))
  t.equal(await ask(`/projects/${encoded('x').repeat(5000)}/counters`), sentence('id', 258))
  t.equal(await ask(`/counters/${rule}x?project=${id}`, 'DELETE'), sentence('rule', 64))
  t.match(await ask(`/access/${rule}x`, 'DELETE'), /^400 "id" in the path/)
  t.match(await ask(`/rules/${rule}x/mode`, 'DELETE'), sentence('id', 64))
  t.match(await ask('/projects/%zz/counters'), /^400 /)
})

t.test('a reset of an unknown or incompletely named counter is refused with a sentence', async t => {
  const { ask } = await start(t)
  const reset = async (path: string) => {
    const { status, body } = await ask(`/counters/${path}`, 'DELETE')
    return `${status} ${JSON.parse(body).detail}`
  }
  t.match(await reset('nothing?project=acme'), '404 There is no bucket or rule "nothing" here.')
  t.match(await reset('all'), /^404 .*Name the project of a bucket/)
  t.match(await reset('all?project=nobody'), '404 There is no project "nobody" in this configuration.')
  t.equal(await reset('slow?project=acme'), '422 Give path: "slow" counts by project and full-path.')
  t.equal(await reset('by-header'), '422 Give header (x-device: …): "by-header" counts by header:x-device.')
  t.match(await reset('by-header?header=x-device'), '422 "x-device" is not a header: write name: value.')
  t.match(await reset('by-ip?ip=localhost'), '422 "localhost" is not an IP address.')
  t.match(await reset('slow?project=acme&path=/%zz'), /^422 The request GET/)
})

t.test('slots are listed with their ages, and a stuck one can be freed', async t => {
  const { ask, post, finish } = await start(t)
  const first = post('/slow/1')
  const slots = async () => (await ask('/slots')).json<{ total: number; slots: Record<string, unknown>[] }>()
  await waitUntil('the slot is taken', async () => (await slots()).total === 1)
  await waitUntil('the slot to age', async () => Number((await slots()).slots[0]?.age_ms) >= 20)
  t.match((await slots()).slots, [
    { rule: 'slow', kind: 'in-flight', mode: 'enforce', key: /\{acme\}.*:slow:/, route: '/slow/**' },
  ])
  t.equal(await post('/slow/1'), 429)
  t.match(await ask('/counters/slow?project=acme&path=/slow/1', 'DELETE'), { status: 200 })
  const second = post('/slow/1')
  await waitUntil('the second is admitted', async () => (await slots()).total === 2)
  finish()
  t.same(await Promise.all([first, second]), [200, 200])
  await waitUntil('none is held', async () => (await slots()).total === 0)
})

t.test(
  'with a key everything but health and its own description requires it, and no log holds it',
  async t => {
    const upstream = await startApp(t, (_req, res) => res.end('done'))
    const gateway = await testGateway(t, { upstream, adminKey: KEY })
    const status = async (path: string, authorization?: string, method = 'GET') =>
      (await send(gateway.adminUrl + path, { method, ...(authorization && { headers: { authorization } }) }))
        .status
    for (const path of ['/livez', '/readyz']) t.equal(await status(path), 200, path)
    for (const path of ['/openapi.json', '/docs']) t.equal(await status(path), 200, `${path} needs no key`)
    for (const path of ['/', '/state', '/metrics', '/slots', '/policy?project=acme', '/nothing']) {
      t.equal(await status(path), 401, path)
      t.equal(await status(path, `Bearer ${KEY}x`), 401, path)
      t.not(await status(path, `Bearer ${KEY}`), 401, path)
    }
    t.equal(await status('/reload', undefined, 'POST'), 401)
    t.equal(await status('/counters/all', undefined, 'DELETE'), 401)
    t.equal(await status('/state', `Api-Key ${KEY}`), 200)
    t.match((await send(`${gateway.adminUrl}/state`)).headers['www-authenticate'], /^Bearer/)
    t.notMatch(JSON.stringify(gateway.lines), KEY)

    const explained = await sluice(['explain', 'GET', '/', '--live', gateway.adminUrl], {
      env: { ADMIN_KEY: KEY },
    })
    t.match(explained, { code: 0, out: /GET \// })
    t.match(await sluice(['explain', 'GET', '/', '--live', gateway.adminUrl]), {
      code: 1,
      err: /set ADMIN_KEY/,
    })
  },
)

t.test('a host other than loopback requires a key', async t => {
  const folder = t.testdir({
    policies: {},
    'projects.yaml': 'version: 1\nprojects: []\n',
  })
  const check = async (admin: string, env: NodeJS.ProcessEnv = {}) => {
    writeFileSync(
      join(folder, 'gateway.yaml'),
      `version: 1\nadmin: { ${admin} }\nupstreams: { a: { embedded: identity } }\nroutes: [{ path: /**, upstream: a }]\n`,
    )
    const { code, err } = await sluice(['check', '--config', folder], { env })
    return `${code} ${err}`
  }
  for (const host of ['127.0.0.1', '127.1.2.3', '"::1"', 'localhost']) {
    t.match(await check(`host: ${host}`), /^0 /, host)
  }
  for (const host of ['0.0.0.0', '"::"', '10.0.0.1', 'example.com', '127.example.com']) {
    t.match(
      await check(`host: ${host}`),
      /^1 .*admin\.host: The admin port on .* needs a key: set admin\.key/,
      host,
    )
    t.match(await check(`host: ${host}, key: "\${ADMIN_KEY}"`, { ADMIN_KEY: KEY }), /^0 /, host)
  }
  const short = await check(`key: "\${ADMIN_KEY}"`, { ADMIN_KEY: 'too-short' })
  t.match(short, /admin\.key: Must be empty, or a key of 16 to 256 characters/)
  t.notMatch(short, 'too-short')
})

t.test('/openapi.json describes every route, and /docs shows them on a page', async t => {
  const { ask } = await start(t)
  t.match((await ask('/')).json(), { document: '/openapi.json', page: '/docs' })
  const { paths } = (await ask('/openapi.json')).json<{
    paths: Record<string, Record<string, { security?: object }>>
  }>()
  t.same(Object.keys(paths).sort(), [
    '/access',
    '/access/{id}',
    '/changes',
    '/counters/{rule}',
    '/explain',
    '/keys',
    '/live',
    '/live/events',
    '/live/history',
    '/livez',
    '/metrics',
    '/overrides',
    '/overrides/changes',
    '/policy',
    '/projects/overrides',
    '/projects/{id}/counters',
    '/projects/{id}/credit',
    '/projects/{id}/overrides',
    '/projects/{id}/overrides/{bucket}',
    '/readyz',
    '/reload',
    '/routes',
    '/rules/{id}/mode',
    '/slots',
    '/state',
    '/usage',
  ])
  t.notOk(paths['/livez']?.get?.security, 'health requires no key')
  t.match(paths['/state']?.get, { security: [{ adminKey: [] }], summary: String })
  const page = await ask('/docs')
  t.match(page, { status: 200, headers: { 'content-type': /html/ } })
  t.match(page.body, /<code>POST \/explain<\/code>[^<]*nothing is charged/)
  t.notMatch(page.body, /<script|src=/, 'the page needs one request only')
  t.match(await ask('/slots', 'DELETE'), { status: 405, headers: { allow: /GET/ } })
  t.equal((await ask('/projects/acme/counters', 'POST')).status, 405)
})
