/** What an operator asks the admin port of a gateway that runs: policy, counters, slots, resets, and who may. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { sluice } from '../../helpers/command.js'
import { type TestGateway, testGateway } from '../../helpers/gateway.js'
import { type Received, send, startApp } from '../../helpers/http.js'
import { redisCommand, redisUrl, startRedis } from '../../helpers/redis.js'
import { waitUntil } from '../../helpers/wait.js'

const POLICIES = {
  'limits.yaml': `version: 1
kind: project-limits
buckets: { all: ["*"], reads: [GET /reads] }
limits: [{ for: [{}], quotas: { all: { burst: 100, sustained: 3 }, reads: { burst: 9, sustained: 90 } } }]
`,
  'in-flight.yaml': `version: 1
kind: in-flight
rules: [{ id: slow, match: [/slow/**], key: [project, full-path] }]
`,
  'flood.yaml': `version: 1
kind: volumetric
rules:
  - { id: flood, match: [/flood], key: [project], quota: { requests: 1, per: 60s } }
  - { id: by-ip, match: [/ip], key: [client-ip], quota: { requests: 1, per: 60s } }
  - { id: by-header, match: [/header], key: [header:x-device], missing: skip, quota: { requests: 1, per: 60s } }
`,
}
const KEY = 'canary-0123456789abcdef'

interface Asked extends TestGateway {
  post(path: string): Promise<number>
  ask(path: string, method?: string, headers?: Record<string, string>): Promise<Received>
  /** Lets the requests under `/slow` end. */
  finish(): void
}

async function start(t: Test, settings = '', adminKey = ''): Promise<Asked> {
  const waiting: (() => void)[] = []
  let isFinished = false
  const upstream = await startApp(t, (req, res) => {
    if (!isFinished && req.url?.startsWith('/slow')) waiting.push(() => res.end('done'))
    else res.end('done')
  })
  const gateway = await testGateway(t, { upstream, settings, adminKey, policies: POLICIES })
  return {
    ...gateway,
    post: async path =>
      (await send(gateway.url + path, { method: 'POST', headers: { host: 'acme.localhost' } })).status,
    ask: (path, method = 'GET', headers = {}) => send(gateway.adminUrl + path, { method, headers }),
    finish() {
      isFinished = true
      for (const end of waiting) end()
    },
  }
}

t.test('the effective policy, of a plan and environment or of a project', async t => {
  const { ask } = await start(t)
  const answer = await ask('/policy?plan=growth&environment=production')
  t.match(answer, { status: 200 })
  const { revision, buckets, rules } = answer.json<Record<string, Record<string, unknown>[] | string>>()
  t.match(revision, /^sha256:/)
  t.match(buckets, [
    { bucket: 'all', patterns: ['*'], burst: 100, sustained: 3, mode: 'enforce', src: /limits\.yaml:4$/ },
    { bucket: 'reads', patterns: ['GET /reads'], burst: 9, sustained: 90 },
  ])
  t.match(rules, [
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
  for (const wrong of ['', '?plan=growth', '?plan=gold&environment=production', '?project=acme&x=1']) {
    t.match(await ask(`/policy${wrong}`), { status: 400, headers: { 'content-type': /problem\+json/ } })
  }
})

t.test('what is wrong with a question is said in a sentence', async t => {
  const gateway = await start(t)
  const detailOf = async (path: string, init: RequestInit = {}) => {
    const answer = await fetch(gateway.adminUrl + path, init)
    const { detail } = (await answer.json()) as { detail: string }
    return `${answer.status} ${detail}`
  }
  const explain = (asked: unknown) => {
    const headers = { 'content-type': 'application/json' }
    return detailOf('/explain', { method: 'POST', headers, body: JSON.stringify(asked) })
  }
  for (const query of ['', '?plan=growth', '?project=acme&plan=growth&environment=production']) {
    t.equal(await detailOf(`/policy${query}`), '400 Name a project, or a plan and an environment.')
  }
  t.equal(await detailOf('/policy?projct=acme'), '400 "projct" is unknown in the query.')
  t.match(
    await detailOf('/policy?plan=gold'),
    '400 "plan" in the query must be one of developer, production,',
  )
  t.equal(await explain({ method: 'GET' }), '400 "target" is missing in the body.')
  t.equal(await explain([]), '400 The body must be a JSON object.')
  t.equal(await explain({ method: 'GET', target: '/', hdrs: [] }), '400 "hdrs" is unknown in the body.')
  t.match(
    await explain({ method: 'GET', target: 'x'.repeat(9000) }),
    '400 "target" in the body must NOT have more',
  )
  t.equal(await explain({ method: 'GE T', target: '/' }), '422 "GE T" is not a method.')
  t.equal(await explain({ method: 'GET', target: '/', ip: 'here' }), '422 "here" is no IP address.')
  for (const field of [
    ['a b', 'c'],
    ['a', 'b\r\nc: d'],
  ]) {
    t.match(
      await explain({ method: 'GET', target: '/', headers: [field] }),
      '422 A field of "headers" cannot be sent',
    )
  }
  t.match(
    await detailOf('/explain', { method: 'POST', body: new URLSearchParams('a=b') }),
    '415 Send JSON, and say so',
  )
  t.equal(await explain('x'.repeat(1_000_000)), '413 The body is too large.')
})

t.test('without a key, a site that lets its own name lead to this machine is told nothing', async t => {
  const { ask } = await start(t)
  const port = 8081
  for (const host of [
    'localhost',
    `localhost:${port}`,
    `127.0.0.1:${port}`,
    `[::1]:${port}`,
    'sluice.localhost',
  ]) {
    t.equal((await ask('/state', 'GET', { host })).status, 200, host)
  }
  for (const host of [
    'evil.example',
    `evil.example:${port}`,
    'localhost.evil.example',
    '127.0.0.1.evil.example',
  ]) {
    for (const path of ['/state', '/metrics', '/policy?project=acme', '/none']) {
      t.equal((await ask(path, 'GET', { host })).status, 421, `${host} ${path}`)
    }
    t.equal((await ask('/counters/all?project=acme', 'DELETE', { host })).status, 421)
    t.equal((await ask('/livez', 'GET', { host })).status, 200, 'health tells nothing')
  }
  const { ask: askWithKey } = await start(t, '', KEY)
  const headers = { host: 'sluice.example', authorization: `Bearer ${KEY}` }
  t.equal((await askWithKey('/state', 'GET', headers)).status, 200, 'who has the key may use any name')
})

for (const [name, redis] of [
  ['in this process', async () => ''],
  ['in Redis', redisUrl],
] as const) {
  t.test(`live counters of a project, and the reset of one, ${name}`, async t => {
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
    t.match(await used(), { 'all.sustained': 0, flood: 1 }, 'that one, and no other')
    t.equal(await post('/a'), 200, 'also where a refusal was remembered')
    t.match(
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

t.test('while Redis is away a reset says that nothing was reset', async t => {
  if (redisCommand(t) === undefined) return
  const redis = await startRedis()
  t.teardown(() => redis.stop())
  const { ask } = await start(t, `redis: "${redis.url}"\nstore: { deadline: 200ms }`)
  await redis.kill()
  t.match(await ask('/counters/all?project=acme', 'DELETE'), { status: 503, body: /Redis cannot be told/ })
  t.match(await ask('/projects/acme/counters'), { status: 200 }, 'what is counted here is told')
})

t.test('a counter that is not there or not named is told of', async t => {
  const { ask } = await start(t)
  const reset = async (path: string) => {
    const { status, body } = await ask(`/counters/${path}`, 'DELETE')
    return `${status} ${JSON.parse(body).detail}`
  }
  t.match(await reset('nothing?project=acme'), '404 There is no bucket or rule "nothing" here.')
  t.match(await reset('all'), /^404 .*Name the project of a bucket/)
  t.match(await reset('all?project=nobody'), '404 There is no project "nobody" in this configuration.')
  t.equal(await reset('slow?project=acme'), '422 Give path: "slow" counts by project and full-path.')
  t.match(await reset('by-header'), /^422 The key of "by-header" has the part "header:x-device"/)
  t.match(await reset('by-ip?ip=localhost'), '422 "localhost" is no IP address.')
  t.match(await reset('slow?project=acme&path=/%zz'), /^422 There can be no request GET/)
})

t.test('slots are listed with their ages, and one that is stuck can be freed', async t => {
  const { ask, post, finish } = await start(t)
  const first = post('/slow/1')
  const slots = async () => (await ask('/slots')).json<{ total: number; slots: Record<string, unknown>[] }>()
  await waitUntil('the slot is taken', async () => (await slots()).total === 1)
  await waitUntil('it ages', async () => Number((await slots()).slots[0]?.age_ms) >= 20)
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

t.test('with a key nothing but health answers without it, and no log holds it', async t => {
  const upstream = await startApp(t, (_req, res) => res.end('done'))
  const gateway = await testGateway(t, { upstream, adminKey: KEY })
  const status = async (path: string, authorization?: string, method = 'GET') =>
    (await send(gateway.adminUrl + path, { method, ...(authorization && { headers: { authorization } }) }))
      .status
  for (const path of ['/livez', '/readyz']) t.equal(await status(path), 200, path)
  for (const path of ['/openapi.json', '/docs']) t.equal(await status(path), 200, `${path} tells nothing`)
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
})

t.test('beyond loopback there is no admin port without a key', async t => {
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

t.test(
  'the port tells what it offers: an OpenAPI document of every route, a page, and the services’ documents',
  async t => {
    const { ask } = await start(t)
    t.match((await ask('/')).json(), { document: '/openapi.json', page: '/docs', services: {} })
    const { paths } = (await ask('/openapi.json')).json<{
      paths: Record<string, Record<string, { security?: object }>>
    }>()
    t.same(Object.keys(paths).sort(), [
      '/counters/{rule}',
      '/explain',
      '/livez',
      '/metrics',
      '/policy',
      '/projects/{id}/counters',
      '/readyz',
      '/reload',
      '/slots',
      '/state',
    ])
    t.notOk(paths['/livez']?.get?.security, 'health is open')
    t.match(paths['/state']?.get, { security: [{ adminKey: [] }], summary: String })
    const page = await ask('/docs')
    t.match(page, { status: 200, headers: { 'content-type': /html/ } })
    const [, script] = /src="([^"]*swagger-ui-bundle\.js)"/.exec(page.body) ?? []
    t.equal((await ask(new URL(script as string, 'http://a/docs/').pathname)).status, 200)
    t.match(await ask('/slots', 'DELETE'), { status: 405, headers: { allow: /GET/ } })
    t.equal((await ask('/projects/acme/counters', 'POST')).status, 405)
  },
)

t.test('health says the same to people and to machines', async t => {
  const { adminUrl } = await start(t)
  const folder = (port: string) =>
    t.testdir({
      'gateway.yaml': `version: 1\nadmin: { port: ${port} }\nupstreams: { a: { embedded: identity } }\nroutes: [{ path: /**, upstream: a }]\n`,
      'projects.yaml': 'version: 1\nprojects: []\n',
      policies: {},
    })
  const there = folder(new URL(adminUrl).port)
  t.same(await sluice(['health', '--config', there]), { code: 0, out: 'ready\n', err: '' })
  t.match(await sluice(['health', '--config', there, '--json']), {
    code: 0,
    out: '{"ready":true,"fault":null}\n',
  })
  const nowhere = folder('9')
  t.match(await sluice(['health', '--config', nowhere]), {
    code: 1,
    out: '',
    err: /^Nothing answers on http/,
  })
  const { code, out } = await sluice(['health', '--config', nowhere, '--json'])
  t.equal(code, 1)
  t.match(JSON.parse(out), { ready: false, fault: /^Nothing answers on http/ })
})
