/** `quotaPath`: the gateway tells callers what they have used of their own quotas. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { testGateway } from '../helpers/gateway.js'
import { send, startApp } from '../helpers/http.js'

const PATH = '/.well-known/quota'
const POLICY = `version: 1
kind: project-limits
buckets:
  writes: ["POST /**"]
  health: ["/health"]
  search: { match: ["/search"], key: [client-ip] }
  calls: { match: ["POST /rpc"], key: [project, json-rpc] }
  all: ["*"]
limits:
  - for: [{}]
    quotas:
      writes: { sustained: 3 }
      health: unlimited
      search: { sustained: 5 }
      calls: { sustained: 5 }
      all: { burst: 100, sustained: 1000, trial: { burst: 1 } }
`
const WATCHED = `version: 1
kind: project-limits
mode: report-only
buckets: { watched: ["/watched"], free: ["/free"] }
limits: [{ for: [{}], quotas: { watched: { sustained: 1 }, free: unlimited } }]
`
const LATER = `version: 1
kind: project-limits
enforceFor: 0%
buckets: { later: ["/later"] }
limits: [{ for: [{}], quotas: { later: { sustained: 1 } } }]
`
const VOLUMETRIC = `version: 1
kind: volumetric
rules:
  - { id: flood, match: ["*"], key: [client-ip], quota: { requests: 1, per: 60s }, reads: true }
`

interface Answer {
  readonly project: string
  readonly plan: string
  readonly environment: string
  readonly buckets: readonly { bucket: string; unlimited?: true; windows?: Record<string, unknown>[] }[]
}

interface Options {
  readonly settings?: string
  readonly routes?: readonly string[]
  readonly upstreamSettings?: string
  readonly policies?: Readonly<Record<string, string>>
}

/** A gateway, and the paths that reached its upstream. */
async function telling(t: Test, options: Options = {}) {
  const { settings = '', policies = {}, ...others } = options
  const reached: string[] = []
  const upstream = await startApp(t, (req, res) => {
    reached.push(`${req.method} ${req.url}`)
    res.end('upstream')
  })
  const gateway = await testGateway(t, {
    upstream,
    policies: { 'limits.yaml': POLICY, ...policies },
    settings: `quotaPath: ${PATH}\n${settings}`,
    ...others,
  })
  const ask = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
    send(gateway.url, { path, method, headers: { host: 'acme.localhost', ...headers } } as never)
  /** Of any host, so that tests need not wait for the next second. */
  const quota = async (headers: Record<string, string> = {}): Promise<Answer> =>
    JSON.parse((await ask(PATH, headers)).body)
  return { gateway, reached, ask, quota }
}

t.test('a caller sees what it has used of its enforced buckets, and asking costs it nothing', async t => {
  const policies = { 'watched.yaml': WATCHED, 'later.yaml': LATER }
  const { ask, quota, reached } = await telling(t, { policies })
  await ask('/a', {}, 'POST')
  await ask('/search')
  const { buckets, ...who } = await quota()
  t.same(who, { project: 'acme', plan: 'growth', environment: 'production' })
  t.same(
    buckets.map(one => [one.bucket, one.unlimited ?? one.windows?.map(({ window }) => window)]),
    [
      ['writes', ['sustained']],
      ['health', true],
      ['search', ['sustained']],
      ['all', ['burst', 'sustained']],
    ],
    'no trial, and nothing that only reports',
  )
  const resets = buckets[0]?.windows?.[0]?.resets as number
  t.ok(resets >= 59 && resets <= 60)
  t.same(buckets[0]?.windows, [{ window: 'sustained', quota: 3, used: 1, left: 2, resets }])
  t.match(
    buckets[2]?.windows,
    [{ quota: 5, used: 1, left: 4 }],
    'by client address, as the call comes from it',
  )
  t.same(
    buckets[3]?.windows?.map(({ quota, used, left, resets }) => [quota, used, left, resets]),
    [
      [100, 0, 100, 0],
      [1000, 0, 1000, 0],
    ],
    'a window of which nothing is used has nothing to wait for',
  )
  t.same(reached, ['POST /a', 'GET /search'])
})

t.test('what is used up is shown as used up', async t => {
  const { ask, quota } = await telling(t)
  for (let i = 0; i < 5; i += 1) await ask('/a', {}, 'POST')
  t.match((await quota()).buckets[0], { windows: [{ quota: 3, used: 3, left: 0 }] })
})

t.test('each project may ask once a second', async t => {
  const { ask, gateway } = await telling(t)
  t.match(await ask(PATH), {
    status: 200,
    headers: { 'content-type': 'application/json', 'cache-control': 'no-store' },
  })
  const second = await ask(PATH)
  t.match(second, { status: 429, headers: { 'retry-after': '1' } })
  t.match(JSON.parse(second.body), { code: 'quota-exceeded', 'violated-policies': ['quotaPath.burst'] })
  t.equal((await ask(PATH, { host: 'dev.localhost' })).status, 200)
  t.match(
    gateway.lines.find(line => line.decision === 'deny'),
    { project: 'acme', sent_status: 429, route: PATH },
  )
})

t.test('volumetric rules neither count it nor appear', async t => {
  const { ask, quota } = await telling(t, { policies: { 'flood.yaml': VOLUMETRIC } })
  t.notOk(JSON.stringify(await quota()).includes('flood'))
  t.equal((await ask('/a')).status, 200, 'the one request is still left')
  t.equal((await ask('/a')).status, 429)
})

t.test('HEAD gets no body, and other methods are refused by the gateway', async t => {
  const { ask, reached } = await telling(t)
  t.match(await ask(PATH, {}, 'HEAD'), { status: 200, body: '' })
  for (const [method, host] of [
    ['POST', 'dev.localhost'],
    ['DELETE', 'a.localhost'],
  ] as const) {
    const refused = await ask(PATH, { host }, method)
    t.match(refused, { status: 405, headers: { allow: 'GET, HEAD' } })
  }
  t.same(reached, [])
})

t.test('every spelling of the path is answered by the gateway, and no other path is', async t => {
  const { ask, reached } = await telling(t, { upstreamSettings: 'caseInsensitivePaths: true' })
  for (const path of [
    `${PATH}/`,
    `/x/..${PATH}`,
    '//.well-known/%71uota',
    '/.Well-Known/QUOTA',
    `${PATH}?a=b`,
  ])
    t.not((await ask(path)).body, 'upstream', path)
  t.same(reached, [])
  for (const path of [`${PATH}/more`, '/.well-known', '/quota', `${PATH};x`])
    t.equal((await ask(path)).body, 'upstream', path)
})

t.test('a route of a host does not come before it', async t => {
  const { ask } = await telling(t, {
    routes: ['{ host: acme.localhost, path: /**, upstream: app }', '{ path: /**, upstream: app }'],
  })
  t.match(JSON.parse((await ask(PATH)).body), { project: 'acme' })
})

t.test('an unknown caller sees its own counters, or is refused as on any route', async t => {
  const known = await telling(t)
  t.match(await known.quota({ host: 'nobody.test' }), { project: 'client:127.0.0.1', plan: 'developer' })
  const { ask } = await telling(t, { settings: 'unknownProject: reject' })
  const refused = await ask(PATH, { host: 'nobody.test' })
  t.match([refused.status, JSON.parse(refused.body).code], [404, 'unknown-project'])
})

t.test('who is denied is refused, and for who is exempt nothing is limited', async t => {
  const entry = (action: string) => ({
    policies: {
      'access.yaml': `version: 1\nkind: access\nrules: [{ id: one, action: ${action}, projects: [acme] }]\n`,
    },
  })
  const denied = await telling(t, entry('deny'))
  t.equal((await denied.ask(PATH)).status, 403)
  const { buckets } = await (await telling(t, entry('exempt'))).quota()
  t.same(
    buckets.flatMap(one => Object.keys(one)),
    Array(4).fill(['bucket', 'unlimited']).flat(),
  )
})

t.test('where a route requires a credential, so does this path', async t => {
  const { ask, reached } = await telling(t, {
    routes: ['{ path: /private, upstream: app, auth: required }', '{ path: /**, upstream: app }'],
    settings: 'identify: [host, api-key]',
  })
  const { status, headers } = await ask(PATH)
  t.equal(status, 401, 'the host alone names nobody')
  t.ok(headers['www-authenticate'])
  const wrong = { 'x-api-key': 'wrong' }
  const codes = new Set<string>()
  for (let i = 0; i < 40; i += 1) codes.add(JSON.parse((await ask(PATH, wrong)).body).code)
  t.ok(codes.has('credential-invalid'))
  t.ok(codes.has('wrong-credentials'), 'guesses are slowed down')
  t.same(reached, [])
})

t.test('pages of other origins may read it with cors: echo, and only then', async t => {
  const origin = 'https://page.test'
  const page = { origin, 'access-control-request-method': 'GET' }
  const open = await telling(t)
  const preflight = await open.ask(PATH, page, 'OPTIONS')
  t.match([preflight.status, preflight.headers['access-control-allow-origin']], [204, origin])
  t.match(String(preflight.headers['access-control-allow-headers']), 'Authorization')
  const { status, headers, body } = await open.ask(PATH, { origin })
  t.match([status, headers['access-control-allow-origin']], [200, origin], 'the preflight was no call')
  const { buckets } = JSON.parse(body) as Answer
  t.match(buckets[3], { bucket: 'all', windows: [{ used: 0 }, { used: 0 }] }, 'and no bucket counted it')
  t.equal((await open.ask(PATH, { origin })).headers['access-control-allow-origin'], origin)
  const none = await telling(t, { settings: 'cors: none' })
  t.equal((await none.ask(PATH, page, 'OPTIONS')).headers['access-control-allow-origin'], undefined)
  t.equal(
    (await none.ask(PATH, { origin, host: 'dev.localhost' })).headers['access-control-allow-origin'],
    undefined,
  )
  t.same([...open.reached, ...none.reached], [])
})

t.test('without the setting the path is like any other, and a reload may add it', async t => {
  const { ask, gateway } = await telling(t)
  const file = join(gateway.folder, 'gateway.yaml')
  const text = readFileSync(file, 'utf8')
  writeFileSync(file, text.replace(/^quotaPath.*$/m, ''))
  t.match(await send(`${gateway.adminUrl}/reload`, { method: 'POST' }), { status: 200 })
  t.equal((await ask(PATH)).body, 'upstream')
})
