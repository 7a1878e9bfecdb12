import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import type { LiveSnapshot } from '../../../gateway/admin/live-snapshot.js'
import { Health, startAdmin } from '../../../gateway/admin/server.js'
import { WrongKeys } from '../../../gateway/admin/wrong-keys.js'
import { UnknownQuestion } from '../../../gateway/errors.js'
import { networkOf } from '../../../gateway/listen/client.js'
import { Metrics } from '../../../gateway/observe/metrics.js'
import { matchList } from '../../helpers/lists.js'

async function start(
  test: Pick<typeof t, 'teardown'>,
  changes: Partial<Parameters<typeof startAdmin>[0]> = {},
) {
  const health = new Health()
  const errors: object[] = []
  const log = {
    debug: () => {},
    info: () => {},
    warn: () => {},
    error: (fields: object) => void errors.push(fields),
  }
  const state = () => ({ revision: 'sha256:1', policies: [] })
  const reload = async () => ({ result: 'loaded', revision: 'sha256:2', needsRestart: [] }) as const
  const explain = async (asked: object) => ({ asked })
  const listen = { host: '127.0.0.1', port: 0 }
  const inspected = {
    policy: () => ({}),
    counters: async () => ({}),
    slots: () => ({}),
    reset: async () => ({}),
  }
  const wrongKeys = new WrongKeys({ networkOf, log })
  const access = {
    list: async () => ({}),
    put: async () => ({ created: true, entry: {} }),
    remove: async () => ({}),
  }
  const modes = { put: async () => ({ created: true, entry: {} }), remove: async () => ({}) }
  const troubles = (): string[] => []
  const live = {
    snapshot: () => ({}) as LiveSnapshot,
    history: () => ({ step_ms: 10_000, from: '', points: [] }),
    changes: () => null,
    overridden: () => ({ revision: '', changes: [] }),
    watch: () => () => undefined,
  }
  const more = {
    key: '',
    wrongKeys,
    inspected,
    access,
    live,
    modes,
    quotas: { ...modes, list: async () => ({}), of: async () => ({}) },
    credits: { add: async () => ({ repeated: false }), list: async () => ({}) },
    overrides: async () => [],
    troubles,
    routes: () => ({ total: 0, routes: [] }),
    usage: async function* () {},
    keys: async () => ({ file: null, trouble: null, total: 0, keys: [] }),
    documents: () => ({}),
  }
  const options = {
    ...listen,
    ...more,
    health,
    metrics: new Metrics('1.2.3'),
    state,
    reload,
    explain,
    log,
    ...changes,
  }
  const admin = await startAdmin(options)
  test.teardown(() => admin.close())
  const get = async (path: string, init?: RequestInit) => {
    const answer = await fetch(`http://${admin.host}:${admin.port}${path}`, init)
    const text = await answer.text()
    const type = answer.headers.get('content-type') ?? ''
    return {
      status: answer.status,
      type,
      headers: answer.headers,
      text,
      json: type.includes('json') ? JSON.parse(text) : undefined,
    }
  }
  return { admin, health, get, errors }
}

t.test('a process is alive from the start, and ready from listening until draining', async t => {
  const { health, get } = await start(t)
  t.equal((await get('/livez')).status, 200)
  const starting = await get('/readyz')
  t.equal(starting.status, 503)
  t.match(starting.type, 'application/problem+json')
  t.match(starting.json, { status: 503, title: 'Service Unavailable', detail: /Not ready, starting/ })
  health.ready()
  t.match(await get('/readyz'), { status: 200, json: { status: 'ready' } })
  health.draining()
  t.match(await get('/readyz'), { status: 503, json: { detail: /draining/ } })
  t.equal((await get('/livez')).status, 200)
  health.ready()
  t.equal((await get('/readyz')).status, 503, 'a draining process does not become ready again')
})

t.test('a service in trouble is reported as degraded, and the process stays ready', async t => {
  const { health, get } = await start(t, { troubles: () => ['the directory database has no room left'] })
  health.ready()
  const json = { status: 'degraded', detail: 'the directory database has no room left.' }
  t.match(await get('/readyz'), { status: 200, json })
})

t.test(
  'metrics are served in the Prometheus format and state as JSON, and neither may be cached',
  async t => {
    const { get } = await start(t)
    const metrics = await get('/metrics')
    t.match(metrics.type, /^text\/plain; version=0\.0\.4/)
    t.match(metrics.text, '# TYPE sluice_requests_total counter')
    t.match(await get('/state'), { status: 200, json: { revision: 'sha256:1' } })
    t.equal(metrics.headers.get('cache-control'), 'no-store')
    t.equal((await get('/metrics', { method: 'HEAD' })).status, 200)
  },
)

t.test('unknown paths, wrong methods and oversized requests get problem+json', async t => {
  const { get } = await start(t)
  for (const [path, init, status] of [
    ['/nothing', {}, 404],
    ['/state?x=1', { method: 'POST', body: '{}' }, 405],
    ['/livez', { method: 'DELETE' }, 405],
    ['/livez', { method: 'QUERY' }, 405],
    ['/nowhere', { method: 'QUERY' }, 404],
    [
      '/state',
      { method: 'POST', body: 'x'.repeat(5000), headers: { 'content-type': 'application/json' } },
      [405, 413],
    ],
    ['/%zz', {}, [400, 404]],
    ['/livez', { headers: { x: 'x'.repeat(20_000) } }, 431],
  ] as const) {
    const answer = await get(path, init)
    t.ok([status].flat().includes(answer.status as never), `${path}: ${answer.status}`)
    t.match(answer.type, 'application/problem+json', path)
    t.match(answer.json, { type: 'about:blank', status: answer.status, title: String, detail: String })
  }
  t.equal((await get('/readyz', { method: 'PUT' })).headers.get('allow'), 'GET, HEAD')
})

t.test('an internal error gets 500 without details, which are logged', async t => {
  const state = () => {
    throw new Error('canary')
  }
  const { get, errors } = await start(t, { state })
  const answer = await get('/state')
  t.equal(answer.status, 500)
  t.notMatch(answer.text, 'canary')
  matchList(t, errors, [{ err: { message: 'canary' } }])
})

t.test('closing ends idle connections', async t => {
  const { admin, get } = await start(t)
  const idle = connect(admin.port, admin.host)
  t.teardown(() => idle.destroy())
  await new Promise(resolve => idle.once('connect', resolve))
  const ended = new Promise(resolve => idle.once('close', resolve))
  await get('/livez')
  const start_ = performance.now()
  await admin.close()
  await ended
  t.ok(performance.now() - start_ < 2000)
})

t.test('starting on a taken port is rejected', async t => {
  const { admin } = await start(t)
  await t.rejects(start(t, { port: admin.port }), { code: 'EADDRINUSE' })
})

t.test('an invalid question gets 400, and one about something unknown 422', async t => {
  const explain = async ({ project }: { project?: string }) => {
    if (project === 'nobody') throw new UnknownQuestion('There is no project "nobody".')
    return { project }
  }
  const { get } = await start(t, { explain })
  const ask = (body: unknown, type = 'application/json') =>
    get('/explain', { method: 'POST', body: JSON.stringify(body), headers: { 'content-type': type } })
  t.match(await ask({ method: 'GET', target: '/', project: 'acme' }), {
    status: 200,
    json: { project: 'acme' },
  })
  t.match(await ask({ method: 'GET', target: '/', project: 'nobody' }), {
    status: 422,
    type: /problem\+json/,
    json: { detail: 'There is no project "nobody".' },
  })
  t.match(await ask({ method: 'GET' }), { status: 400, json: { detail: /target/ } })
  t.match(await ask({ method: 'GET', target: '/', headers: [['a']] }), { status: 400 })
  t.match(await ask('GET /'), { status: 400 })
  t.match(await ask({ method: 'GET', target: '/' }, 'text/plain'), { status: 400 })
  t.match(await ask({ method: 'GET', target: '/', body: 'x'.repeat(600_000) }), { status: 413 })
  t.match(await get('/explain'), { status: 405 })
})

t.test('an address that tries wrong keys gets 429, and the right key is still accepted', async t => {
  const key = 'a-key-of-the-admin-port'
  const { get } = await start(t, { key })
  const withKey = (one: string) => get('/state', { headers: { authorization: `Bearer ${one}` } })
  const tried: number[] = []
  for (let i = 0; i < 22; i += 1) tried.push((await withKey(`wrong-${i}`)).status)
  t.strictSame(tried, [...Array(20).fill(401), 429, 429])
  const refused = await withKey('wrong again')
  t.match(refused.headers.get('retry-after'), /^[1-9]\d?$/)
  t.match(refused.json, { status: 429, detail: /Too many wrong keys/ })
  t.equal((await withKey(key)).status, 200)
})

t.test('a response may take eleven seconds, and announces how long its connection is kept', async t => {
  const slow = async () => {
    await sleep(11_000)
    return { result: 'loaded', revision: 'sha256:3', needsRestart: [] } as const
  }
  const { get } = await start(t, { reload: slow })
  const headers = { 'content-type': 'application/json' }
  const answer = await get('/reload', { method: 'POST', headers })
  t.match(answer, { status: 200, json: { revision: 'sha256:3' } })
  t.equal(answer.headers.get('keep-alive'), 'timeout=5')
})
