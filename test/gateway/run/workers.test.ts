/** `listen.workers`: several processes on one port behave as one gateway, for clients and for operators. */
import { writeFileSync } from 'node:fs'
import { Agent, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { type GatewayProcess, gatewayProcess, writeConfig } from '../../helpers/gateway-process.js'
import { type Sent, send, startApp } from '../../helpers/http.js'
import { redisUrl } from '../../helpers/redis.js'
import { inProject } from '../../helpers/root.js'
import { waitUntil } from '../../helpers/wait.js'

const QUOTA = 50

const limits = (quota: number) => `version: 1
kind: project-limits
buckets: { scarce: [/scarce], again: [/again], forms: [/self-service/**], other: ["*"] }
limits:
  - for: [{ environments: [development, staging, production] }]
    quotas:
      scarce: { burst: 1000, sustained: ${QUOTA} }
      again: { burst: 1000, sustained: ${quota} }
      forms: { burst: 1000, sustained: 1000 }
      other: { burst: 10000, sustained: 100000 }
`
const IN_FLIGHT = `version: 1
kind: in-flight
rules: [{ id: held, match: [POST /held], key: [project], max: 20, mode: enforce }]
`

interface WorkerPool extends GatewayProcess {
  /** A request of the test's project, on a connection of its own. */
  ask(path: string, sent?: Sent): ReturnType<typeof send>
  admin<T>(path: string, method?: string): Promise<T>
  workers(): Promise<number[]>
  /** The value of a series, with its labels as written. */
  metric(series: string): Promise<number>
  edit(name: string, text: string): void
}

interface State {
  readonly revision: string
  readonly workers: readonly { readonly pid: number }[]
  readonly backends: readonly { readonly upstream: string; readonly requests: number }[]
}

async function startCrew(t: Test, redis: string, upstream: string, more = ''): Promise<WorkerPool> {
  const folder = writeConfig(
    t,
    `version: 1
listen: { host: 127.0.0.1, port: 0, workers: 2 }
admin: { host: 127.0.0.1, port: 0 }
redis: ${redis}
store: { deadline: 5s, onError: closed }
upstreams: { app: { url: "${upstream}" }, identity: { embedded: identity } }
routes: [{ path: /self-service/**, upstream: identity }, { path: /**, upstream: app }]
log: { decisions: all }
${more}`,
    { 'limits.yaml': limits(2), 'in-flight.yaml': IN_FLIGHT },
  )
  const schema = inProject('config', 'identity.schema.json')
  const gateway = await gatewayProcess(t, folder, { IDENTITY_SCHEMA: schema })
  const admin = async <T>(path: string, method = 'GET') =>
    (await send(gateway.adminUrl + path, { method })).json<object>() as T
  return {
    ...gateway,
    ask: (path, sent) =>
      send(gateway.url + path, { ...sent, agent: new Agent(), headers: { host: 'acme.localhost' } }),
    admin,
    workers: async () => (await admin<State>('/state')).workers.map(({ pid }) => pid),
    async metric(series) {
      const { body } = await send(`${gateway.adminUrl}/metrics`)
      const line = body.split('\n').find(one => one.startsWith(`${series} `))
      return Number(line?.slice(series.length + 1) ?? Number.NaN)
    },
    edit: (name, text) => writeFileSync(join(folder, name), text),
  }
}

/** Which workers decided by a rule, according to the log. */
function decidedBy({ out }: WorkerPool, rule: string): Set<number> {
  const lines = out()
    .split('\n')
    .filter(line => /"decision".*\}$/.test(line) && line.includes(`"rule":"${rule}"`))
  return new Set(lines.map(line => (JSON.parse(line) as { worker: number }).worker))
}

t.test('two workers', async t => {
  const redis = await redisUrl(t)
  if (redis === undefined) return
  const held: ServerResponse[] = []
  const upstream = await startApp(t, (req, res) => {
    req.resume()
    if (req.url === '/held') held.push(res)
    else res.end('done')
  })
  const crew = await startCrew(t, redis, upstream)

  t.test('are ready together, logged once, and both serve requests on one port', async t => {
    t.equal(crew.out().match(/Sluice is ready/g)?.length, 1)
    const pids = await crew.workers()
    t.equal(pids.length, 2)
    await waitUntil('both to have answered', async () => {
      await crew.ask('/other')
      return decidedBy(crew, 'other').size === 2
    })
    t.same([...decidedBy(crew, 'other')].sort(), pids.sort())
  })

  t.test('admit exactly the quota of 200 simultaneous requests, and sum up their metrics', async t => {
    const answers = await Promise.all(Array.from({ length: 200 }, () => crew.ask('/scarce')))
    t.equal(answers.filter(({ status }) => status === 200).length, QUOTA)
    t.equal(answers.filter(({ status }) => status === 429).length, 200 - QUOTA)
    await waitUntil('the log', () => decidedBy(crew, 'scarce').size === 2)
    const labels = 'rule="scarce",plan="growth",environment="production",mode="enforce",outcome='
    t.equal(await crew.metric(`sluice_decisions_total{${labels}"limited"}`), 200 - QUOTA)
    t.equal(await crew.metric('sluice_workers'), 2)
  })

  t.test('report slots and backends together', async t => {
    const asked = Array.from({ length: 8 }, () => crew.ask('/held', { method: 'POST' }))
    await waitUntil('all to be under way', () => held.length === 8)
    const { total, slots } = await crew.admin<{ total: number; slots: { rule: string }[] }>('/slots')
    t.equal(total, 8)
    t.same(new Set(slots.map(({ rule }) => rule)), new Set(['held']))
    t.equal(await crew.metric('sluice_inflight{rule="held"}'), 8)
    const { backends } = await crew.admin<State>('/state')
    t.equal(backends.find(({ upstream }) => upstream === 'app')?.requests, 8)
    for (const res of held.splice(0)) res.end()
    for (const { status } of await Promise.all(asked)) t.equal(status, 200)
    await waitUntil(
      'the slots to be given back',
      async () => (await crew.metric('sluice_inflight{rule="held"}')) === 0,
    )
  })

  t.test('reset a counter for both, and explain by what both have counted', async t => {
    const passed = async () => {
      const answers = await Promise.all(Array.from({ length: 20 }, () => crew.ask('/again')))
      return answers.filter(({ status }) => status === 200).length
    }
    t.equal(await passed(), 2)
    t.equal(await passed(), 0)
    t.match(await crew.admin('/counters/again?project=acme', 'DELETE'), { reset: 'again' })
    // Whichever worker gets them.
    t.same([(await crew.ask('/again')).status, (await crew.ask('/again')).status], [200, 200])
    t.equal(await passed(), 0)
    const audits = await waitUntil('the log', () => crew.out().match(/"audit":"counter-reset"/g))
    t.equal(audits.length, 1)
    const { counters } = await crew.admin<{ counters: { rule: string; counters: { used: number }[] }[] }>(
      '/projects/acme/counters',
    )
    t.match(counters.find(({ rule }) => rule === 'again')?.counters, [{ used: 2 }])
    t.match(await crew.admin('/policy?project=acme'), { project: 'acme' })
    t.match(await send(`${crew.adminUrl}/counters/nothing?project=acme`, { method: 'DELETE' }), {
      status: 404,
    })
    const body = JSON.stringify({ method: 'GET', target: '/again', project: 'acme' })
    const json = { 'content-type': 'application/json' }
    const explained = await send(`${crew.adminUrl}/explain`, { method: 'POST', headers: json, body })
    t.match(explained.json(), { live: true, answer: { status: 429, refused_by: ['again'] } })
  })

  t.test('take a reload together, and refuse one together', async t => {
    crew.edit('policies/limits.yaml', limits(12))
    const taken = await crew.admin<{ result: string; revision: string }>('/reload', 'POST')
    t.match(taken, { result: 'loaded', needsRestart: { length: 0 } })
    const answers = await Promise.all(Array.from({ length: 20 }, () => crew.ask('/again')))
    t.equal(
      answers.filter(({ status }) => status === 200).length,
      10,
      'ten more are admitted, because two were spent',
    )
    for (const { headers } of answers) t.match(headers['ratelimit-policy'], /"again.sustained";q=12;/)

    crew.edit('policies/limits.yaml', 'version: 1\n')
    const refused = await crew.admin('/reload', 'POST')
    t.match(refused, { status: 422, revision: taken.revision })
    t.equal((await crew.ask('/other')).status, 200)
    crew.edit('policies/limits.yaml', limits(12))
    crew.signal('SIGHUP')
    await waitUntil('the good file to be in force again', async () => {
      const { lastReload } = await crew.admin<{ lastReload: { result: string } }>('/state')
      return lastReload.result === 'loaded'
    })
    t.equal((await crew.workers()).length, 2)
  })

  t.test('share one embedded service', async t => {
    for (let i = 0; i < 4; i += 1) {
      const { status, body } = await crew.ask('/self-service/registration')
      t.equal(status, 200)
      t.match(body, /<form/)
    }
    await waitUntil('the log', () => decidedBy(crew, 'forms').size === 2)
  })

  t.test('serve on when one is killed, replace it, and let no counter fall', async t => {
    const series = 'sluice_request_duration_seconds_count'
    const before = await crew.metric(series)
    const [pid] = (await crew.workers()) as [number]
    process.kill(pid, 'SIGKILL')
    await waitUntil('the worker to be gone', async () => !(await crew.workers()).includes(pid))
    t.equal((await crew.ask('/other')).status, 200)
    t.equal((await send(`${crew.adminUrl}/readyz`)).status, 200)
    t.ok((await crew.metric(series)) >= before + 1)
    await waitUntil('another one', async () => (await crew.metric('sluice_workers')) === 2, 30_000)
    const told = new RegExp(`"worker":${pid},"code":null,"signal":"SIGKILL"`)
    await waitUntil('the log to say so', () => told.test(crew.out()))
    await waitUntil('the other one to serve', () => /A worker takes requests/.test(crew.out()))
    t.ok((await crew.metric(series)) >= before + 1)
  })

  t.test('finish open requests on SIGTERM, and exit without an error', async t => {
    const pids = await crew.workers()
    const asked = Array.from({ length: 8 }, () => crew.ask('/held', { method: 'POST' }))
    await waitUntil('all to be under way', () => held.length === 8)
    crew.signal('SIGTERM')
    await waitUntil('the drain', async () => (await send(`${crew.adminUrl}/readyz`)).status === 503)
    for (const res of held.splice(0)) res.end('whole')
    for (const { status, body } of await Promise.all(asked))
      t.match({ status, body }, { status: 200, body: 'whole' })
    t.same(await crew.exited(), [0, null])
    for (const pid of pids) t.throws(() => process.kill(pid, 0), { code: 'ESRCH' })
  })
})
